package vectors

import (
	"slices"
	"testing"
)

// The large values need sums in float64, because float32 can't represent 2²⁵+1.
func TestMean(t *testing.T) {
	d := &Dense{IDs: []string{"a", "b", "c", "d"}, Dim: 2, Data: []float32{1 << 25, 1, 2, 3, -1 << 25, 5, 2, 7}}
	mean := d.Mean()
	if want := []float32{1, 4}; !slices.Equal(mean, want) {
		t.Errorf("mean %v, want %v", mean, want)
	}
}
