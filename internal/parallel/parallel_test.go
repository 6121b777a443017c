package parallel

import (
	"runtime"
	"slices"
	"testing"
)

func TestRanges(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for processors := 1; processors <= 5; processors++ {
		runtime.GOMAXPROCS(processors)
		for _, n := range []int{0, 1, 4, 5, 6, 1000} {
			calls := make([]int, n)
			Ranges(n, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					calls[i]++
				}
			})
			if slices.ContainsFunc(calls, func(n int) bool { return n != 1 }) {
				t.Errorf("%d processors: of %d calls there were %v", processors, n, calls)
			}
		}
	}
}
