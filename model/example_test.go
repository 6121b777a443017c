package model_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// The example saves a model, opens it, and reconstructs a dense vector from a code.
func Example() {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "animals.model")

	h := train.Paper()
	h.Atoms, h.Epochs = 3, 20
	training := model.Training{Input: model.Input{Rows: 2, Dim: 2}, Recipe: h}
	m := &model.Model{
		Info: model.Info{Training: training, Encoding: training.PaperEncoding()}, // the codes of the training
		Codes: &vectors.Sparse{
			IDs: []string{"cat", "dog"},
			CSR: vectors.CSR{Rows: 2, Cols: 3, Ptr: []int64{0, 2, 3}, Index: []int32{0, 2, 1}, Value: []float32{2, 1, 3}},
		},
		Dictionary: model.Dictionary{Dim: 2, Atoms: []float32{1, 0, 0, 1, 0.5, 0.5}},
	}
	if err := m.Save(path, false); err != nil {
		log.Fatal(err)
	}

	m, err = model.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	for i, id := range m.Codes.IDs {
		x := make([]float32, m.Dictionary.Dim)
		copy(x, m.Dictionary.Mean) // if there is one
		columns, values := m.Codes.Row(i)
		for n, k := range columns {
			for j, d := range m.Dictionary.Atom(int(k)) {
				x[j] += values[n] * d
			}
		}
		fmt.Println(id, columns, values, "is about", x)
	}
	// Output:
	// cat [0 2] [2 1] is about [2.5 0.5]
	// dog [1] [3] is about [0 3]
}
