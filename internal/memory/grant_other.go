//go:build !linux && !darwin

package memory

// Granted reports whether the system gives the program so many bytes, as far as that is
// known.
func Granted(bytes, part uint64) bool { return true }
