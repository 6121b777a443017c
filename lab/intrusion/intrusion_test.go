package intrusion

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/memory"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// The test has the words that all sets have, each once. "B" is looked up as b in the reference; "A"
// isn't, because a is a word of the model.
func TestWords(t *testing.T) {
	dense := func(words ...string) *vectors.Dense {
		d := &vectors.Dense{IDs: words, Dim: 1}
		for i := range words {
			d.Data = append(d.Data, float32(i))
		}
		return d
	}
	first := strings.Fields("A B c a B b! C d E e!")
	second := strings.Fields("E d c B a A b!")
	s, err := NewTest(dense("a", "b!", "A", "c", "d", "B", "E"), dense("e", "a", "b", "c", "x"), first, second)
	testonly.Must(t, err)
	want := []string{"B", "c", "a", "E"}
	if !slices.Equal(s.X.IDs, want) {
		t.Errorf("words %v, want %v", s.X.IDs, want)
	}
	if want := [][]int{{1, 2, 3, 8}, {3, 2, 4, 0}}; !reflect.DeepEqual(s.rows, want) { // the first row of a repeated word
		t.Errorf("rows %v, want %v", s.rows, want)
	}
	for name, got := range map[string][]float32{"input": s.X.Data, "reference": s.Reference.Data} {
		want := map[string][]float32{"input": {5, 3, 0, 6}, "reference": {2, 3, 1, 0}}[name]
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: rows %v, want %v", name, got, want)
		}
	}
}

// A test whose vectors don't fit into memory is refused before they are copied.
func TestNewTestChecksMemory(t *testing.T) {
	words := []string{"a", "b"}
	x, reference := &vectors.Dense{IDs: words, Dim: 1, Data: []float32{1, 2}}, &vectors.Dense{IDs: words, Dim: 1 << 40}
	if _, err := NewTest(x, reference, words); !errors.Is(err, memory.ErrTooLarge) {
		t.Error(err)
	}
}
