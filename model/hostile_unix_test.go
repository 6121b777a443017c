//go:build unix

package model

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/internal/modeldir"
	"overcomplete/testonly"
)

// A sparse file can have any size without occupying the disk.
func TestOpenFilesOfHoles(t *testing.T) {
	const size = 1 << 42
	dir := filepath.Join(t.TempDir(), "model")
	save(t, dir, false, testModel(4, 2, 3, true))
	for _, name := range []string{modeldir.Info, modeldir.Words, modeldir.Codes, modeldir.Dictionary, modeldir.Mean} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		testonly.Must(t, err)
		if err := os.Truncate(path, size); err != nil {
			t.Skip(err) // the file system has no sparse files
		}
		for how, open := range openings {
			if _, err := open(dir); err != nil && !strings.Contains(err.Error(), name+": ") || err == nil && how == "Open" {
				t.Errorf("%s of %d bytes, %s: error %v", name, size, how, err)
			}
		}
		testonly.Must(t, os.Truncate(path, info.Size()))
	}
}
