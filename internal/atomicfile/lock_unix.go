//go:build unix

package atomicfile

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock locks a directory against other processes until the call of unlock, so that processes that update the same file
// don't undo each other's changes. It waits for the lock until ctx is cancelled. If the directory is replaced
// meanwhile, it locks the new directory. On file systems without locks it does nothing.
func Lock(ctx context.Context, dir string) (unlock func(), err error) {
	const pause = 20 * time.Millisecond // polling, because flock can't wait for ctx
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
