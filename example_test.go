package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/interpret"
	"overcomplete/interpret/explore"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// The program of docs/go.md.
func Example() {
	const file = "testdata/godoc.50d.txt.gz"
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}

	// 1. Vectors, from any format that the commands read.
	x, source, err := vectors.Read(ctx, file, vectors.ReadOptions{})
	check(err)

	// 2. and 3. A recipe with its defaults, and a model.
	recipe := train.Best()
	recipe.Atoms = 300
	m, err := train.Fit(ctx, x, recipe, cpu.Device{}, train.Options{Source: source})
	check(err)

	// 4. and 5. To a directory and back, here without the codes.
	check(m.Save("small.model", false))
	defer os.RemoveAll("small.model")
	dictionary, err := model.OpenDictionary("small.model")
	check(err)

	// 6. Codes of vectors in memory. The dictionary need not have seen them.
	first := &vectors.Dense{Words: x.Words[:100], Dim: x.Dim, Data: x.Data[:100*x.Dim]}
	encoded, err := encode.Model(ctx, dictionary, first, cpu.Device{}, encode.Defaults(m.Info))
	check(err)

	// 7. Codes of a whole file, which need not fit in memory.
	info, _, err := encode.File(ctx, dictionary, file, "all.model", cpu.Device{}, encode.Defaults(m.Info), encode.FileOptions{})
	check(err)
	defer os.RemoveAll("all.model")
	fmt.Println(info.Words(), "words of", info.Encoding.Input.Name)

	// 8. What dimensions mean.
	index := interpret.NewIndex(m.Codes)
	word := 74
	code := interpret.NewIndex(encoded.Codes).Code(word)
	fmt.Println(encoded.Codes.Words[word])
	for _, w := range code.Weights()[:2] {
		fmt.Printf("%.2f %v\n", w.Value, index.Words(w.Pole(), 6))
	}

	// 9. Which dimensions of two models are the same.
	recipe.Seed = 2
	again, err := train.Fit(ctx, x, recipe, cpu.Device{}, train.Options{})
	check(err)
	matches, err := interpret.MatchAtoms(ctx, m.Dictionary.Atoms, again.Dictionary.Atoms, x.Dim)
	check(err)
	there := 0
	for _, match := range matches {
		if match.Cosine > 0.9 {
			there++
		}
	}
	fmt.Printf("%d in 10 dimensions are there again\n", 10*there/len(matches))

	// 10. The explorer, for a server of one's own.
	explorer, err := explore.New(m, "small", explore.Options{})
	check(err)
	page := explorer.Handler("localhost:8080")
	_ = http.Server{Addr: "localhost:8080", Handler: page} // and ListenAndServe
	// Output:
	// 5000 words of godoc.50d.txt.gz
	// time
	// 0.84 [seconds nanoseconds clock time wall duration]
	// 0.42 [year month hour day january utc]
	// 8 in 10 dimensions are there again
}
