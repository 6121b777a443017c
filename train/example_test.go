package train_test

import (
	"context"
	"fmt"
	"log"

	"overcomplete/cpu"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

func ExampleFit() {
	ctx := context.Background()
	x, source, err := vectors.Read(ctx, "../testdata/godoc.50d.txt.gz", vectors.ReadOptions{MaxWords: 1000})
	if err != nil {
		log.Fatal(err)
	}
	h := model.Defaults()
	h.Method, h.Atoms, h.Epochs, h.Center = "B", 100, 3, true
	m, err := train.Fit(ctx, x, h, cpu.Device{}, train.Options{Source: source, Epoch: func(e model.Epoch) {
		fmt.Printf("epoch %d: error %.1f, %.0f %% zeros\n", e.Epoch, e.Error, 100*e.Sparsity)
	}})
	if err != nil {
		log.Fatal(err)
	}
	// m.Save("small.model", false) would write it.
	fmt.Println(m.Codes.Rows, "words,", m.Codes.Cols, "dimensions, like", m.Codes.Words[:3])
	// Output:
	// epoch 1: error 14.0, 72 % zeros
	// epoch 2: error 12.8, 69 % zeros
	// epoch 3: error 11.2, 67 % zeros
	// 1000 words, 100 dimensions, like [the a to]
}
