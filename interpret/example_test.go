package interpret_test

import (
	"fmt"

	"overcomplete/interpret"
	"overcomplete/vectors"
)

// Four words in three dimensions, of which the first is about animals.
func sample() *interpret.Index {
	return interpret.NewIndex(&vectors.Sparse{
		Words: []string{"cat", "dog", "hotdog", "ketchup"},
		CSR: vectors.CSR{
			Rows: 4, Cols: 3, Ptr: []int64{0, 1, 3, 5, 7},
			Index: []int32{0, 0, 2, 0, 1, 1, 2},
			Value: []float32{3, 4, 0.5, 1, 2, 2.5, -1},
		},
	})
}

func ExampleIndex_Explain() {
	x := sample()
	row, _ := x.Row("hotdog")
	columns, values := x.Codes.Row(row)
	for _, d := range x.Explain(columns, values, 5, 3) {
		fmt.Println(d.Dimension, d.Weight, d.Words)
	}
	// Output:
	// 1 2 [ketchup hotdog]
	// 0 1 [dog cat hotdog]
}

func ExampleIndex_Nearest() {
	x := sample()
	row, ok := x.Row("hotdgo")
	if !ok {
		word := x.Closest("hotdgo", 1)[0] // as it is spelled
		row, _ = x.Row(word)
	}
	for _, n := range x.Nearest(row, 2) {
		fmt.Printf("%s %.2f\n", x.Codes.Words[n.Row], n.Cosine)
	}
	// Output:
	// ketchup 0.83
	// cat 0.45
}

func ExampleIndex_NearestTo() {
	x := sample()
	// The code of a new word, as package encode makes them.
	columns, values := []int32{0, 2}, []float32{2, -1}
	for _, n := range x.NearestTo(columns, values, 3) {
		fmt.Printf("%s %.2f\n", x.Codes.Words[n.Row], n.Cosine)
	}
	// Output:
	// cat 0.89
	// dog 0.83
	// hotdog 0.40
}
