//go:build unix

package atomicfile

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock waits until no other process holds the directory, or ctx is cancelled, and holds it until unlock,
// so that two processes that update a file in it do not undo each other's changes. If the directory is
// replaced meanwhile, Lock holds the new one. On file systems without locks it does nothing.
func Lock(ctx context.Context, dir string) (unlock func(), err error) {
	const pause = 20 * time.Millisecond // flock cannot wait for ctx as well
	for {
		d, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK && err != unix.EINTR {
			held, err := d.Stat()
			is, gone := os.Stat(dir)
			if err == nil && gone == nil && os.SameFile(held, is) {
				return func() { d.Close() }, nil
			}
		}
		d.Close()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}
