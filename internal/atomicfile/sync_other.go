//go:build !linux

package atomicfile

import "os"

// StartSync does nothing: a file is flushed when Sync is called.
func StartSync(f *os.File) {}
