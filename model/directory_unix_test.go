//go:build unix

package model

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/modeldir"
	"overcomplete/testonly"
)

// A limit on the size of files, which is set in a process of its own, simulates a full disk.
func TestSaveFailsToWrite(t *testing.T) {
	const variable = "OVERCOMPLETE_TEST_LIMITED_SAVE"
	m := testModel(100, 10, 300, true) // codes.npz has 61 kB, the other files 3 kB
	if dir := os.Getenv(variable); dir != "" {
		limit := syscall.Rlimit{Cur: 20_000, Max: 20_000}
		testonly.Must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		err := m.Save(dir, true)
		if _, ok := errors.AsType[*atomicfile.OutputError](err); ok || !errors.Is(err, syscall.EFBIG) {
			t.Errorf("error %v, want %v", err, syscall.EFBIG)
		}
		return
	}

	exe, err := os.Executable()
	testonly.Must(t, err)
	old := testModel(3, 2, 3, false)
	dir := saved(t, old)
	cmd := exec.Command(exe, "-test.run=^TestSaveFailsToWrite$")
	cmd.Env = append(os.Environ(), variable+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	expectModel(t, dir, old)

	// The same model can be saved without the limit.
	save(t, dir, true, m)
	expectModel(t, dir, m)
}

// A sparse file can have any size without occupying the disk.
func TestOpenFilesOfHoles(t *testing.T) {
	const size = 1 << 42
	dir := saved(t, testModel(4, 2, 3, true))
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

// All files are read from the directory that was opened, even if its path briefly leads to another one.
func TestReadStableExchangedTwice(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	point := func(name string) {
		t.Helper()
		testonly.Must(t, errors.Join(os.Symlink(filepath.Join(dir, name), link+".new"), os.Rename(link+".new", link)))
	}
	a, b := testModel(20, 5, 10, false), testModel(20, 5, 10, false)
	b.Dictionary.Atoms[0]++
	b.Codes.IDs[0] = "other"
	save(t, filepath.Join(dir, "a"), false, a)
	save(t, filepath.Join(dir, "b"), false, b)
	point("a")
	m, err := modeldir.ReadStable(link, func(opened *os.File) (*Model, error) {
		point("b")
		defer point("a")
		return open(opened)
	})
	if err != nil || !reflect.DeepEqual(m, a) {
		t.Errorf("opened another model, %v", err)
	}
}
