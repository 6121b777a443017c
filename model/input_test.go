package model

import (
	"testing"

	"overcomplete/vectors"
)

// model.json lists the input files if they are few. Otherwise it has only their number.
func TestNewInput(t *testing.T) {
	for _, n := range []int{0, 2, 100, 101} {
		want := n
		if n > 100 {
			want = 0
		}
		in := NewInput(&vectors.Source{Files: make([]vectors.File, n)})
		if in.FileCount != n || len(in.Files) != want {
			t.Errorf("of %d files: number %d, %d listed", n, in.FileCount, len(in.Files))
		}
	}
}
