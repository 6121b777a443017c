//go:build unix

package atomicfile

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock waits until no other process holds the directory, or ctx is cancelled, and holds it until
// unlock, so that of two that read a file in it and write it anew neither undoes what the other
// did. Where the directory is replaced meanwhile, it holds the one that is there then. Where the file
// system has no locks, it does nothing.
func Lock(ctx context.Context, dir string) (unlock func(), err error) {
	const pause = 20 * time.Millisecond // a lock can't be waited for together with ctx
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
