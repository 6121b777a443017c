package atomicfile

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// exchange gives two directories each other's name, at once.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// tryMove returns why the directory at path cannot be moved, as a mount point
// cannot. It does not move it, so that it is there whenever the program is killed.
func tryMove(path, _ string) error {
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
