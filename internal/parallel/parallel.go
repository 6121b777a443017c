// Package parallel distributes loops over all processors:
//
//	norms := make([]float64, len(rows))
//	err := parallel.Each(ctx, len(rows), func(i int) { norms[i] = norm(rows[i]) })
//
// The results of a loop must not depend on the goroutine that runs an iteration. They are then the same for any
// number of processors.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls f(0) to f(n−1) with one goroutine per processor and waits for all calls. If ctx is cancelled, Each
// skips the remaining calls and returns ctx.Err().
func Each(ctx context.Context, n int, f func(i int)) error {
	var skipped atomic.Bool
	With(make([]struct{}, runtime.GOMAXPROCS(0)), n, func(_ struct{}, i int) {
		if ctx.Err() == nil {
			f(i)
		} else {
			skipped.Store(true)
		}
	})
	if skipped.Load() {
		return ctx.Err()
	}
	return nil
}

// Ranges splits 0 to n into one contiguous range per processor, calls f with each range
// concurrently, and waits for all calls. Ranges may be empty.
func Ranges(n int, f func(lo, hi int)) {
	parts := runtime.GOMAXPROCS(0)
	With(make([]struct{}, parts), parts, func(_ struct{}, p int) {
		f(n*p/parts, n*(p+1)/parts)
	})
}

// With calls f(w, i) for each i from 0 to n−1, with a worker w, and waits for all calls. Each worker is used by one
// goroutine only, so that f may use the worker's buffers without locks. The caller's goroutine uses the first worker.
func With[W any](workers []W, n int, f func(w W, i int)) {
	if len(workers) == 1 || n <= 1 {
		for i := range n {
			f(workers[0], i)
		}
		return
	}
	var next atomic.Int64
	run := func(w W) {
		for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
			f(w, i)
		}
	}
	var group sync.WaitGroup
	for _, w := range workers[1:min(len(workers), n)] {
		group.Go(func() { run(w) })
	}
	run(workers[0])
	group.Wait()
}
