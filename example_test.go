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

// The program of docs/guides/go.md.
func Example() {
	const file = "testdata/godoc.50d.txt.gz"
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}

	// 1. Read vectors in any format that the commands read.
	x, source, err := vectors.Read(ctx, []string{file}, vectors.ReadOptions{})
	check(err)

	// 2. and 3. Train a model by a recipe.
	recipe := train.Best()
	recipe.Atoms = 300
	m, err := train.Fit(ctx, x, recipe, cpu.Device{}, train.Options{Source: source})
	check(err)

	// 4. and 5. Save the model, and open its dictionary.
	check(m.Save("small.model", false))
	defer os.RemoveAll("small.model")
	dictionary, err := model.OpenDictionary("small.model")
	check(err)

	// 6. Encode vectors in memory. They need not be training rows.
	encoded, err := encode.Model(ctx, dictionary, x.Slice(0, 100), cpu.Device{}, encode.Defaults(m.Info))
	check(err)

	// 7. Encode a file, which may be larger than memory.
	info, _, err := encode.File(ctx, dictionary, []string{file}, "all.model", cpu.Device{}, encode.Defaults(m.Info), encode.FileOptions{})
	check(err)
	defer os.RemoveAll("all.model")
	fmt.Println(info.Rows(), "words of", info.Encoding.Input.Name)

	// 8. List the words of the strongest dimensions of a word.
	index := interpret.NewIndex(m.Codes)
	word := 74
	code := interpret.NewIndex(encoded.Codes).Code(word)
	fmt.Println(encoded.Codes.IDs[word])
	for _, w := range code.Weights()[:2] {
		fmt.Printf("%.2f %v\n", w.Value, index.Words(w.Pole(), 6)) // a pole is the positive or negative side of a dimension
	}

	// 9. Match dimensions between two models.
	recipe.Seed = 2
	again, err := train.Fit(ctx, x, recipe, cpu.Device{}, train.Options{})
	check(err)
	matches, err := interpret.MatchAtoms(ctx, m.Dictionary.Atoms, again.Dictionary.Atoms, x.Dim)
	check(err)
	stable := 0
	for _, match := range matches {
		if match.Cosine > 0.9 {
			stable++
		}
	}
	fmt.Printf("%d in 10 dimensions are stable across seeds\n", 10*stable/len(matches))

	// 10. Serve the explorer.
	explorer, err := explore.New(m, "small", explore.Options{})
	check(err)
	page := explorer.Handler("localhost:8080")
	_ = http.Server{Addr: "localhost:8080", Handler: page} // then call its ListenAndServe
	// Output:
	// 5000 words of godoc.50d.txt.gz
	// time
	// 0.85 [seconds nanoseconds clock time wall duration]
	// 0.54 [year utc january day month seconds]
	// 8 in 10 dimensions are stable across seeds
}
