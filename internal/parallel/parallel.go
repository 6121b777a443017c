// Package parallel deals work out to all processors.
package parallel

import "sync"

// Each calls f with 0 to n-1, for each of which it has little to do and writes what no other
// reads or writes, in an order that is left to chance.
func Each(n int, f func(i int)) {
	const run = 256 // so many are worth a goroutine
	var group sync.WaitGroup
	for first := 0; first < n; first += run {
		group.Go(func() {
			for i := first; i < min(first+run, n); i++ {
				f(i)
			}
		})
	}
	group.Wait()
}
