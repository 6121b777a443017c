package atomicfile

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// exchangeNames exchanges the names of two directories atomically.
func exchangeNames(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// checkMove returns an error if path is a mount point, which can't be moved.
func checkMove(path string) error {
	var own, parent unix.Stat_t
	if err := unix.Stat(path, &own); err != nil {
		return err
	}
	if err := unix.Stat(filepath.Dir(path), &parent); err != nil {
		return err
	}
	if own.Dev != parent.Dev {
		return unix.EBUSY
	}
	return nil
}

// StartSync starts to flush a file, so that a later Sync waits less.
func StartSync(f *os.File) {
	unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // Sync returns the errors
}
