package interpret

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"overcomplete/vectors"
)

// codes of four words in five dimensions:
//
//	2 0  0 .5 0
//	1 0 -3  0 0
//	0 0  3  0 0
//	3 0  0 .5 0
var codes = &vectors.Sparse{
	Rows: 4, Cols: 5,
	Ptr:   []int64{0, 2, 4, 5, 7},
	Index: []int32{0, 3, 0, 2, 2, 0, 3},
	Value: []float32{2, .5, 1, -3, 3, 3, .5},
}

func TestByVariance(t *testing.T) {
	// Variances 1.25, 0, 4.5, 0.0625, 0.
	if got, want := ByVariance(codes), []int{2, 0, 3, 1, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTopWords(t *testing.T) {
	got := TopWords(codes, []int{2, 0, 1, 3}, 2)
	want := [][]int{{2}, {3, 0}, nil, {0, 3}} // ties in row order
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func ExampleTopWords() {
	words := []string{"write", "close", "color", "read"}
	for _, row := range TopWords(codes, []int{0}, 3)[0] {
		fmt.Println(words[row])
	}
	// Output:
	// read
	// write
	// close
}
