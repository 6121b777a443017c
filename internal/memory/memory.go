// Package memory tells how much memory the program can have, and gets large parts of it.
package memory

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
)

// Total returns the most bytes of memory that the program can have: the machine's
// physical memory or, where that is less, what its container (a control group) or its
// own limit (ulimit -v) allows. ok is false where it is not known.
func Total() (bytes uint64, ok bool) { return total() }

// ErrTooLarge is returned, wrapped, for what does not fit into memory.
var ErrTooLarge = errors.New("is more than there is memory for")

// Check returns an error that wraps [ErrTooLarge] unless the program can have so many
// bytes beside those that it has in use. To ask the system for more would end the
// program, at once or when they are filled. It does not ask for what is little, of which
// there may be millions: to ask takes longer than to fill it.
func Check(bytes uint64) error {
	const little = 1 << 16
	if bytes <= little {
		return nil
	}
	limit, ok := total()
	// What is reachable, and what was but has not been collected yet.
	const inUse = "/memory/classes/heap/objects:bytes"
	if !ok || fits(bytes, read(inUse), limit) {
		return nil
	}
	runtime.GC()
	used := read(inUse)
	if fits(bytes, used, limit) {
		return nil
	}
	return fmt.Errorf("%s %w: %s, of which %s are in use", gigabytes(bytes), ErrTooLarge, gigabytes(limit), gigabytes(used))
}

func fits(bytes, used, limit uint64) bool { return bytes <= limit && used <= limit-bytes }

// read returns the sum of some of [runtime/metrics].
func read(names ...string) (sum uint64) {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}

func gigabytes(bytes uint64) string { return fmt.Sprintf("%.1f GB", float64(bytes)/1e9) }

// Zeros returns n zeros, in large pages where the system has them: the first pass
// over gigabytes otherwise spends more time on faults, one for each 4 KiB, than on
// its work.
func Zeros[T float32 | uint16](n int) []T {
	x := make([]T, n)
	hugePages(x)
	return x
}
