//go:build linux || darwin

package memory

import "golang.org/x/sys/unix"

// Granted reports whether the system gives the program so many bytes, in parts of at
// most that size, if it asks for them: Go's own asking ends the program where it does
// not. That they can be filled is not certain; some systems give more than they have.
func Granted(bytes, part uint64) bool {
	for bytes > 0 {
		n := min(bytes, part)
		if uint64(int(n)) != n {
			return false
		}
		m, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return false
		}
		defer unix.Munmap(m)
		bytes -= n
	}
	return true
}
