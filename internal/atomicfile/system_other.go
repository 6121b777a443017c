//go:build !linux

package atomicfile

import (
	"errors"
	"os"
)

func exchangeNames(a, b string) error { return errors.ErrUnsupported }

func checkMove(path string) error { return nil }

// StartSync does nothing: a file is flushed when Sync is called.
func StartSync(f *os.File) {}
