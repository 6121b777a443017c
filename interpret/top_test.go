package interpret

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"overcomplete/vectors"
)

// codes of four words in five dimensions:
//
//	2 0  0 .5 0
//	1 0 -3  0 0
//	0 0  4  0 0
//	3 0  0 .5 0
var codes = &vectors.Sparse{
	Words: []string{"write", "close", "co<lor", "read"},
	CSR: vectors.CSR{
		Rows: 4, Cols: 5,
		Ptr:   []int64{0, 2, 4, 5, 7},
		Index: []int32{0, 3, 0, 2, 2, 0, 3},
		Value: []float32{2, .5, 1, -3, 4, 3, .5},
	},
}

func TestTopWords(t *testing.T) {
	top := TopWords(codes, 2)
	want := [][]Entry{{{3, 3}, {0, 2}}, nil, {{2, 4}}, {{0, .5}, {3, .5}}, nil}
	if !reflect.DeepEqual(top, want) {
		t.Errorf("got %v, want %v", top, want)
	}
	if got, want := Strongest(top), []int{0, 2, 3, 1, 4}; !slices.Equal(got, want) {
		t.Errorf("strongest: got %v, want %v", got, want)
	}
}

// Against sorting everything.
func TestTopWordsOfOneDimension(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := &vectors.Sparse{CSR: vectors.CSR{Rows: 200, Cols: 1, Ptr: []int64{0}}}
	var all []Entry
	for i := range s.Rows {
		v := float32(1 + rng.IntN(50)) // with ties
		s.Index, s.Value, s.Ptr = append(s.Index, 0), append(s.Value, v), append(s.Ptr, int64(i+1))
		all = append(all, Entry{i, v})
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return int(b.Value - a.Value) })
	for _, n := range []int{0, 1, 7, 200, 300} {
		if got := TopWords(s, n)[0]; !slices.Equal(got, all[:min(n, 200)]) {
			t.Errorf("top %d: got %v", n, got)
		}
	}
}

func ExampleTopWords() {
	for _, e := range TopWords(codes, 3)[0] {
		fmt.Println(codes.Words[e.Row], e.Value)
	}
	// Output:
	// read 3
	// write 2
	// close 1
}

func TestCommon(t *testing.T) {
	for _, tt := range []struct {
		rows []int
		want int
	}{{[]int{0, 3}, 2}, {[]int{0, 1}, 1}, {[]int{1}, 2}, {[]int{0, 2}, 0}, {[]int{0, 0}, 2}} {
		if got := Common(codes, tt.rows); got != tt.want {
			t.Errorf("%v have %d dimensions in common, want %d", tt.rows, got, tt.want)
		}
	}
}
