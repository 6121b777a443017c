package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// StartSync starts to flush a file, so that a later Sync waits less.
func StartSync(f *os.File) {
	unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // Sync returns the errors
}
