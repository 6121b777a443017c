// Package memory tells how much memory a machine has.
package memory

// Total returns the machine's physical memory in bytes; ok is false if it is not known.
func Total() (bytes uint64, ok bool) { return total() }
