package vectors

import (
	"slices"
	"testing"
)

func TestCenter(t *testing.T) {
	// The large values need sums in float64: 2²⁵+1 is no float32.
	d := &Dense{Words: []string{"a", "b", "c", "d"}, Dim: 2, Data: []float32{1 << 25, 1, 2, 3, -1 << 25, 5, 2, 7}}
	mean := d.Center()
	if want := []float32{1, 4}; !slices.Equal(mean, want) {
		t.Errorf("mean %v, want %v", mean, want)
	}
	if want := []float32{1<<25 - 1, -3, 1, -1, -1<<25 - 1, 1, 1, 3}; !slices.Equal(d.Data, want) {
		t.Errorf("centred %v, want %v", d.Data, want)
	}
}
