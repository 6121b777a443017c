//go:build !linux

package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func exchange(a, b string) error { return errors.ErrUnsupported }

// tryMove moves the directory at path to temp and back, for nothing else tells
// whether it can be: a mount point cannot.
func tryMove(path, temp string) error {
	old := filepath.Join(temp, oldName)
	if err := os.Rename(path, old); err != nil {
		return reason(err)
	}
	if err := os.Rename(old, path); err != nil {
		return fmt.Errorf("%w; what was there is now %s", reason(err), old)
	}
	return nil
}
