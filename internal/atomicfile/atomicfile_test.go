package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// expect checks the files of a directory, as "name=content".
func expect(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			content = []byte("directory")
		}
		got = append(got, e.Name()+"="+string(content))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

func wantOutputError(t *testing.T, err error, text string) {
	t.Helper()
	if _, ok := errors.AsType[*OutputError](err); !ok || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want an OutputError with %q", err, text)
	}
	if err != nil && strings.Contains(err.Error(), ".tmp") {
		t.Errorf("error %v names the temporary file", err)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	f, err := Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there before Commit")
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close after Commit: %v", err)
	}
	expect(t, dir, "a=new")

	_, err = Create(path, false)
	wantOutputError(t, err, "already exists")

	f, err = Create(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "half"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, dir, "a=new")
}

func TestFileModeFollowsUmask(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), "")
	f, err := Create(filepath.Join(dir, "ours"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	plain, err := os.Stat(filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.Stat(filepath.Join(dir, "ours"))
	if err != nil {
		t.Fatal(err)
	}
	if ours.Mode() != plain.Mode() {
		t.Errorf("mode %v, want %v", ours.Mode(), plain.Mode())
	}
}

func TestFileRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "kept")
	for _, tt := range []struct{ path, want string }{
		{dir, "not a regular file"},
		{os.DevNull, "not a regular file"},
		{filepath.Join(dir, "missing", "a"), "no such file"},
		{filepath.Join(dir, "file", "a"), "not a directory"},
	} {
		_, err := Create(tt.path, true)
		wantOutputError(t, err, tt.want)
	}
	expect(t, dir, "file=kept")
}

func TestFileAppearsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	f, err := Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "somebody else's")
	wantOutputError(t, f.Commit(), "already exists")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, dir, "a=somebody else's")
}

func TestFileBehindSymlink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(elsewhere, "real"), "old")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(elsewhere, "real"), link); err != nil {
		t.Skip(err)
	}
	f, err := Create(link, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "new"); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	expect(t, elsewhere, "real=new")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}

func allow(string) error  { return nil }
func forbid(string) error { return errors.New("is precious") }

func createDir(t *testing.T, path string, replace func(string) error) *Dir {
	t.Helper()
	d, err := CreateDir(path, replace)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.Name(), "f"), "new")
	return d
}

func TestDir(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	d := createDir(t, path, forbid)
	if _, err := os.Stat(path); err == nil {
		t.Error("there before Commit")
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("Close after Commit: %v", err)
	}
	expect(t, path, "f=new")
	expect(t, parent, "model=directory")

	_, err := CreateDir(path, forbid)
	wantOutputError(t, err, "is precious")

	// Replace it: nothing of the old one is left.
	write(t, filepath.Join(path, "g"), "old")
	d = createDir(t, path, allow)
	expect(t, path, "f=new", "g=old")
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "f=new")
	expect(t, parent, "model=directory")
}

func TestDirClose(t *testing.T) {
	parent := t.TempDir()
	d := createDir(t, filepath.Join(parent, "model"), allow)
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, parent)
}

func TestDirRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "kept")
	_, err := CreateDir(filepath.Join(dir, "missing", "model"), allow)
	wantOutputError(t, err, "no such file")
	_, err = CreateDir(filepath.Join(dir, "file", "model"), allow)
	wantOutputError(t, err, "not a directory")
	expect(t, dir, "file=kept")
}

func TestDirAppearsMeanwhile(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	d := createDir(t, path, forbid)
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "f"), "somebody else's")
	wantOutputError(t, d.Commit(), "is precious")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "f=somebody else's")
	expect(t, parent, "model=directory")
}

// The second of the two renames fails: the first must be undone.
func TestDirRestoresTheOld(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "f"), "old")
	d := createDir(t, path, allow)
	if err := os.RemoveAll(d.Name()); err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(); err == nil {
		t.Error("no error")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "f=old")
	expect(t, parent, "model=directory")
}
