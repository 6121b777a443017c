//go:build !unix

package input

import (
	"os"
	"path/filepath"
)

func openAt(dir *os.File, name string) (*os.File, error) {
	return os.Open(filepath.Join(dir.Name(), name))
}
