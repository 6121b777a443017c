// Package parallel deals work out to all processors.
package parallel

import (
	"runtime"
	"sync"
)

// Ranges calls f with parts of 0 to n, at the same time, and waits for all of them. There are as many
// as processors, and some may be empty.
func Ranges(n int, f func(lo, hi int)) {
	var group sync.WaitGroup
	parts := runtime.GOMAXPROCS(0)
	for p := range parts {
		group.Go(func() { f(n*p/parts, n*(p+1)/parts) })
	}
	group.Wait()
}
