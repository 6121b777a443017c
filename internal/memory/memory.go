// Package memory tells how much memory a machine has, and gets large parts of it.
package memory

// Total returns the machine's physical memory in bytes; ok is false if it is not known.
func Total() (bytes uint64, ok bool) { return total() }

// Zeros returns n zeros, in large pages where the system has them: the first pass
// over gigabytes otherwise spends more time on faults, one for each 4 KiB, than on
// its work.
func Zeros[T float32 | uint16](n int) []T {
	x := make([]T, n)
	hugePages(x)
	return x
}
