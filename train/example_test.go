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

func ExampleRun() {
	ctx := context.Background()
	x, source, err := vectors.Read(ctx, "../testdata/godoc.50d.txt.gz", vectors.ReadOptions{MaxWords: 1000})
	if err != nil {
		log.Fatal(err)
	}
	h := model.Defaults()
	h.Method, h.Atoms, h.Epochs, h.Center = "B", 100, 3, true
	m, err := train.NewModel(x, source, h)
	if err != nil {
		log.Fatal(err)
	}
	b, err := cpu.New(train.Spec(m.Info.Training, x.Dim), x.Data, cpu.Options{Seed: h.Seed})
	if err != nil {
		log.Fatal(err)
	}
	observe := func(p train.Progress) error {
		e := p.Epochs[len(p.Epochs)-1]
		fmt.Printf("epoch %d: error %.1f, %.0f %% zeros\n", e.Epoch, e.Error, 100*e.Sparsity)
		return nil
	}
	if err := train.Run(ctx, b, m, train.Progress{}, observe); err != nil {
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
