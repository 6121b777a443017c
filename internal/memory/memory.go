// Package memory reports how much memory the program can have, and allocates large arrays.
package memory

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
)

// Total returns the most bytes of memory that the program can have: the least of the machine's physical
// memory, the limit of its control group and its own limit (ulimit -v). ok is false where it is unknown.
func Total() (bytes uint64, ok bool) { return total() }

// ErrTooLarge reports what does not fit into memory.
var ErrTooLarge = errors.New("is more than there is memory for")

// Check returns an error that wraps [ErrTooLarge] unless the program can have that many bytes beside those
// in use: to ask the system for them would end the program, at once or when they are filled. Small
// amounts, of which there may be millions, pass unchecked, because the check takes longer than to fill them.
func Check(bytes uint64) error {
	const little = 1 << 16
	if bytes <= little {
		return nil
	}
	limit, ok := total()
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

// Zeros returns n zeros, in huge pages where the system has them. The first pass over gigabytes in pages
// of 4 KiB would spend more time on page faults than on its work.
func Zeros[T float32 | uint16](n int) []T {
	x := make([]T, n)
	hugePages(x)
	return x
}
