package parallel

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

// Each iteration runs once, for any number of processors.
func TestOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	loops := map[string]func(n int, f func(i int)){
		"Each": func(n int, f func(i int)) { Each(t.Context(), n, f) },
		"Ranges": func(n int, f func(i int)) {
			Ranges(n, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					f(i)
				}
			})
		},
		"With": func(n int, f func(i int)) {
			With(make([]bool, 3), n, func(_ bool, i int) { f(i) })
		},
	}
	for processors := 1; processors <= 5; processors++ {
		runtime.GOMAXPROCS(processors)
		for name, loop := range loops {
			for _, n := range []int{0, 1, 4, 5, 6, 1000} {
				calls := make([]int, n)
				loop(n, func(i int) { calls[i]++ })
				if slices.ContainsFunc(calls, func(n int) bool { return n != 1 }) {
					t.Errorf("%s of %d with %d processors: calls of each index: %v", name, n, processors, calls)
				}
			}
		}
	}
}

func TestEachCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	err := Each(ctx, 1e6, func(int) {
		calls.Add(1)
		cancel()
	})
	if n := calls.Load(); err != context.Canceled || n > int64(runtime.GOMAXPROCS(0)) {
		t.Errorf("Each = %v after %d calls", err, n)
	}
	if err := Each(ctx, 0, nil); err != nil {
		t.Errorf("Each without iterations = %v", err)
	}
}
