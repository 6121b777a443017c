package interpret_test

import (
	"fmt"

	"overcomplete/interpret"
	"overcomplete/vectors"
)

// sample has four words in three dimensions. Dimension 0 is about animals.
func sample() *interpret.Index {
	return interpret.NewIndex(&vectors.Sparse{
		IDs: []string{"cat", "dog", "hotdog", "ketchup"},
		CSR: vectors.CSR{
			Rows: 4, Cols: 3, Ptr: []int64{0, 1, 3, 5, 7},
			Index: []int32{0, 0, 2, 0, 1, 1, 2},
			Value: []float32{3, 4, 0.5, 1, 2, 2.5, -1},
		},
	})
}

func ExampleCode_Weights() {
	x := sample()
	row, _ := x.Row("hotdog")
	for _, w := range x.Code(row).Weights() {
		fmt.Println(w.Dimension, w.Value, x.Words(w.Pole(), 3))
	}
	// Output:
	// 1 2 [ketchup hotdog]
	// 0 1 [dog cat hotdog]
}

func ExampleIndex_Nearest() {
	x := sample()
	row, _ := x.Row("hotdog")
	for _, n := range x.Nearest(x.Code(row), 2, row) {
		fmt.Printf("%s %.2f\n", x.Codes.IDs[n.Row], n.Cosine)
	}
	// Find the neighbour of a new word, whose code package encode computes.
	for _, n := range x.Nearest(interpret.Code{Index: []int32{0, 2}, Value: []float32{2, -1}}, 1) {
		fmt.Printf("%s %.2f\n", x.Codes.IDs[n.Row], n.Cosine)
	}
	// Output:
	// ketchup 0.83
	// cat 0.45
	// cat 0.89
}
