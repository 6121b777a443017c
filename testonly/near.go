package testonly

import (
	"math"
	"testing"
)

// Near fails the test if got differs from want by more than the tolerance times the largest magnitude in want.
func Near(t testing.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, want %d", what, len(got), len(want))
		return
	}
	var size float64
	for _, w := range want {
		size = max(size, math.Abs(w))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance*size) { // a NaN fails, too
			t.Errorf("%s: element %d is %v, want %v (±%.1g)", what, i, got[i], want[i], tolerance*size)
			return
		}
	}
}
