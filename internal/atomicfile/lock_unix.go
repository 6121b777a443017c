//go:build unix

package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lock waits until no other process holds the directory, and holds it until unlock, so that of
// two that read a file in it and write it anew neither undoes what the other did. Where the file
// system has no locks, it does nothing.
func Lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return func() { d.Close() }, nil
		}
	}
}
