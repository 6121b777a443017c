package encode_test

import (
	"context"
	"fmt"
	"log"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Encode a phrase, the mean of two word vectors, with the README's first model.
func Example() {
	ctx := context.Background()
	x, _, err := vectors.Read(ctx, []string{"testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{})
	check(err)
	m, err := model.Open("godoc.model")
	check(err)
	index := interpret.NewIndex(m.Codes)

	garbage, _ := index.Row("garbage")
	collector, _ := index.Row("collector")
	phrase := &vectors.Dense{IDs: []string{"garbage collector"}, Dim: x.Dim}
	for j := range x.Dim {
		phrase.Data = append(phrase.Data, (x.Row(garbage)[j]+x.Row(collector)[j])/2)
	}

	encoded, err := encode.Model(ctx, m, phrase, cpu.Device{}, encode.Defaults(m.Info))
	check(err)
	code := interpret.NewIndex(encoded.Codes).Code(0)
	for _, w := range code.Weights()[:5] {
		fmt.Printf("%.3f %d %v\n", w.Value, w.Dimension, index.Words(w.Pole(), 6))
	}
	// Output:
	// 0.282 415 [objects gc garbage heap allocator malloc]
	// 0.223 40 [gc background assists cycle mark sweep]
	// 0.221 220 [ever freed frees garbage collector tiny]
	// 0.181 495 [spans objects frees counted allocated span]
	// 0.147 67 [safe gc preemption gp barriers potentially]
}

// Encode all rows of a file, as "overcomplete encode" does. The new model records its input.
func ExampleFile() {
	m, err := model.OpenDictionary("godoc.model")
	check(err)
	info, _, err := encode.File(context.Background(), m, []string{"testdata/godoc.50d.txt.gz"}, "all.model", cpu.Device{}, encode.Defaults(m.Info), encode.FileOptions{})
	check(err)
	fmt.Printf("%d words of %s, %.1f nonzeros\n", info.Rows(), info.Encoding.Input.Name, (1-info.Encoding.Sparsity)*float64(m.Dictionary.Len()))
	// Output:
	// 5000 words of godoc.50d.txt.gz, 15.0 nonzeros
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
