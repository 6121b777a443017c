package parallel

import (
	"slices"
	"testing"
)

func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		calls := make([]int, n)
		Each(n, func(i int) { calls[i]++ })
		if slices.ContainsFunc(calls, func(n int) bool { return n != 1 }) {
			t.Errorf("of %d calls there were %v", n, calls)
		}
	}
}
