//go:build unix

package model

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"overcomplete/internal/modeldir"
)

// openings lists all functions that read a model.
var openings = map[string]func(dir string) error{
	"Open":           func(dir string) error { _, err := Open(dir); return err },
	"OpenDictionary": func(dir string) error { _, err := OpenDictionary(dir); return err },
	"OpenRows":       func(dir string) error { _, err := readAll(dir); return err },
}

// A model's file that isn't regular is refused at once, even a pipe without a writer or an endless device.
func TestOpenSpecialFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	save(t, dir, false, testModel(4, 2, 3, true))
	for _, name := range []string{modeldir.Info, modeldir.Words, modeldir.Codes, modeldir.Dictionary, modeldir.Mean} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for want, put := range map[string]func() error{
			"is not a regular file": func() error { return os.Symlink("/dev/zero", path) },
			"not a regular file":    func() error { return syscall.Mkfifo(path, 0o666) },
			"is a directory":        func() error { return os.Mkdir(path, 0o777) },
		} {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := put(); err != nil {
				t.Fatal(err)
			}
			refused := 0
			for how, open := range openings {
				err := open(dir)
				if err == nil {
					continue // doesn't read the file
				}
				refused++
				if !strings.Contains(err.Error(), name+": ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s, %s: error %v, want %q", name, how, err, want)
				}
			}
			if refused == 0 {
				t.Errorf("%s %s, and nothing refuses it", name, want)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for how, open := range openings {
		if err := open(dir); err != nil {
			t.Errorf("restored: %s: %v", how, err)
		}
	}
}

// A sparse file has any size but no blocks on the disk.
func TestOpenFilesOfHoles(t *testing.T) {
	const size = 1 << 42
	dir := filepath.Join(t.TempDir(), "model")
	save(t, dir, false, testModel(4, 2, 3, true))
	for _, name := range []string{modeldir.Info, modeldir.Words, modeldir.Codes, modeldir.Dictionary, modeldir.Mean} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Skip(err) // the file system has no sparse files
		}
		for how, open := range openings {
			if err := open(dir); err != nil && !strings.Contains(err.Error(), name+": ") || err == nil && how == "Open" {
				t.Errorf("%s of %d bytes, %s: error %v", name, size, how, err)
			}
		}
		if err := os.Truncate(path, info.Size()); err != nil {
			t.Fatal(err)
		}
	}
}
