// Package memory reports the memory limit of the program and allocates large arrays:
//
//	if err := memory.Check(4 << 30); err != nil {
//		return err // 4.3 GB doesn't fit into memory: the limit is 4.0 GB, and 0.7 GB is in use or reserved
//	}
package memory

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Total returns the memory limit of the program in bytes. On Linux, it is the least of the machine's physical
// memory, the limits of the program's control groups, and the part of its own limit (ulimit -v) that is left to
// the heap. On macOS, it is the machine's physical memory. ok is false if the limit is unknown, as on all other
// systems.
func Total() (bytes uint64, ok bool) { return total() }

// Limit returns [Total] without the reserve, the bytes that [Check] lets a program use. ok is false if it is unknown.
func Limit() (bytes uint64, ok bool) {
	limit, ok := total()
	return limit - reserve(limit), ok
}

// reserve returns the part of a memory limit for garbage, fragments, stacks and other programs. It is an eighth, but at
// least 16 MiB, the memory of an idle program and its garbage.
func reserve(limit uint64) uint64 { return max(limit/8, min(limit, 16<<20)) }

// SetLimit makes Go collect garbage when the garbage reaches half the size of the objects in use (Go's default is the
// full size), or would fill the reserve that [Check] keeps free. Most objects are blocks of numbers, which are cheap to
// collect. The environment variables GOGC and GOMEMLIMIT have precedence.
func SetLimit() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if limit, ok := Limit(); ok && limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(min(limit, math.MaxInt64)))
	}
}

// ErrTooLarge is wrapped by the errors of [Check].
var ErrTooLarge = errors.New("doesn't fit into memory")

// Check returns an error that wraps [ErrTooLarge] if the given number of bytes doesn't fit into memory beside the bytes
// in use and a reserve. The reserve is an eighth of [Total], at least 16 MiB. Allocating or filling bytes that don't
// fit could end the program. Check returns nil if the limit is unknown. It doesn't check up to 64 KiB, because the
// check takes longer than filling 64 KiB.
func Check(bytes uint64) error {
	const unchecked = 1 << 16
	if bytes <= unchecked {
		return nil
	}
	limit, ok := total()
	const inUse = "/memory/classes/heap/objects:bytes"
	reserved := reserve(limit)
	if !ok || fits(bytes, reserved+read(inUse), limit) {
		return nil
	}
	runtime.GC()
	runtime.GC() // a sync.Pool keeps its contents through one collection
	used := reserved + read(inUse)
	if fits(bytes, used, limit) {
		return nil
	}
	if limit < used {
		return fmt.Errorf("%s %w: all that the limit of the machine, a container or ulimit -v allows is in use or reserved", gigabytes(bytes), ErrTooLarge)
	}
	return fmt.Errorf("%s %w: the limit is %s, and %s is in use or reserved", gigabytes(bytes), ErrTooLarge, gigabytes(limit), gigabytes(used))
}

func fits(bytes, used, limit uint64) bool { return bytes <= limit && used <= limit-bytes }

// read returns the sum of some metrics of [runtime/metrics].
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

func gigabytes(bytes uint64) string {
	switch {
	case bytes < 1e6:
		return fmt.Sprintf("%.0f kB", float64(bytes)/1e3)
	case bytes < 1e9:
		return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}

// Zeros returns n zeros, in huge pages if the system supports them. With pages of 4 KiB, the first pass over
// gigabytes spends more time on page faults than on its work.
func Zeros[T float32 | uint16](n int) []T {
	x := make([]T, n)
	hugePages(x)
	return x
}

var spare sync.Pool // holds *[]float32

// Numbers returns n numbers with arbitrary values. It reuses memory from [Recycle] if possible.
func Numbers(n int) []float32 {
	if x, ok := spare.Get().(*[]float32); ok && cap(*x) >= n {
		return (*x)[:n]
	}
	return Zeros[float32](n)
}

// Recycle gives the numbers of x to [Numbers]. The caller must not use them any more.
func Recycle(x []float32) {
	spare.Put(&x)
}
