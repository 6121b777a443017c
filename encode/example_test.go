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

// What the README's first model makes of a phrase.
func Example() {
	ctx := context.Background()
	x, _, err := vectors.Read(ctx, "testdata/godoc.50d.txt.gz", vectors.ReadOptions{})
	check(err)
	phrase := &vectors.Dense{Words: []string{"garbage collector"}, Dim: x.Dim, Data: make([]float32, x.Dim)}
	for i, word := range x.Words {
		if word == "garbage" || word == "collector" {
			for j, v := range x.Row(i) {
				phrase.Data[j] += v / 2
			}
		}
	}

	m, err := model.Open("godoc.model")
	check(err)
	encoded, err := encode.Model(ctx, m, phrase, cpu.Device{}, encode.Defaults(m.Info))
	check(err)

	index := interpret.NewIndex(m.Codes)
	columns, values := encoded.Codes.Row(0)
	for _, n := range index.NearestTo(columns, values, 4) {
		fmt.Printf("%.2f %s\n", n.Cosine, m.Codes.Words[n.Row])
	}
	for _, d := range index.Explain(columns, values, 5, 6) {
		fmt.Printf("%.3f %d %v\n", d.Weight, d.Dimension, d.Words)
	}
	// Output:
	// 0.96 garbage
	// 0.93 collector
	// 0.63 finalizer
	// 0.61 pointers
	// 0.129 276 [gc queued cleanups allocated swept garbage]
	// 0.093 432 [during garbage atomically barrier phase cycle]
	// 0.088 358 [variables variable these stack runtime global]
	// 0.080 368 [panic recover stopped preemption stop exit]
	// 0.073 103 [prevent background force idle latency weak]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
