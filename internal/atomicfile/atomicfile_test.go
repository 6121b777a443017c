package atomicfile

import (
	"errors"
	"io"
	"io/fs"
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

// Force is for files, whenever something else comes to be there.
func TestFileForceAndSymlinkMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	f, err := Create(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Symlink("missing", path); err != nil {
		t.Skip(err)
	}
	wantOutputError(t, f.Commit(), "not a regular file")
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

func TestFileBehindDanglingSymlink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("missing", link); err != nil {
		t.Skip(err)
	}
	_, err := Create(link, true)
	wantOutputError(t, err, "not a regular file")
	wantOutputError(t, CheckDir(link, allow), "symbolic link to nothing")
	if target, err := os.Readlink(link); target != "missing" {
		t.Errorf("the link is to %q, %v", target, err)
	}
}

func allow(string) error  { return nil }
func forbid(string) error { return errors.New("is precious") }

// writeF is what the tests' directories are filled with.
func writeF(dir string) error { return os.WriteFile(filepath.Join(dir, "f"), []byte("new"), 0o666) }

func TestDir(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	if err := CheckDir(path, forbid); err != nil {
		t.Fatal(err)
	}
	expect(t, parent)
	err := WriteDir(path, true, forbid, func(dir string) error {
		if _, err := os.Stat(path); err == nil {
			t.Error("there before all is written")
		}
		return writeF(dir)
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, path, "f=new")
	expect(t, parent, "model=directory")

	wantOutputError(t, CheckDir(path, forbid), "is precious")

	// Replace it: nothing of the old one is left.
	write(t, filepath.Join(path, "g"), "old")
	if err := CheckDir(path, allow); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "f=new", "g=old")
	if err := WriteDir(path, true, allow, writeF); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "f=new")
	expect(t, parent, "model=directory")
}

func TestDirRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "kept")
	wantOutputError(t, CheckDir(filepath.Join(dir, "missing", "model"), allow), "no such file")
	wantOutputError(t, CheckDir(filepath.Join(dir, "file", "model"), allow), "not a directory")
	expect(t, dir, "file=kept")
}

// What is found to be in place, but cannot be moved, stands for a mount point.
func TestDirCannotBeMoved(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	wantOutputError(t, CheckDir(path, os.Remove), "cannot be replaced: no such file")
	expect(t, parent)
}

func TestDirFailsToWrite(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	if err := WriteDir(path, true, forbid, writeF); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	err := WriteDir(path, true, allow, func(dir string) error {
		write(t, filepath.Join(dir, "half"), "")
		return full
	})
	if !errors.Is(err, full) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("error %v, want %v", err, full)
	}
	expect(t, path, "f=new")
	expect(t, parent, "model=directory")
}

// expectKept checks that the error tells where the new directory is, which has a
// file f, and is no OutputError, for it may come after hours of work.
func expectKept(t *testing.T, err error, reason string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), reason) {
		t.Fatalf("error %v, want %q", err, reason)
	}
	if _, ok := errors.AsType[*OutputError](err); ok {
		t.Errorf("%v is an OutputError", err)
	}
	_, kept, _ := strings.Cut(err.Error(), "; the new one is kept as ")
	expect(t, kept, "f=new")
}

func TestDirAppearsMeanwhile(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	err := WriteDir(path, true, forbid, func(dir string) error {
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(path, "f"), "somebody else's")
		return writeF(dir)
	})
	expectKept(t, err, path+": is precious; ")
	expect(t, path, "f=somebody else's")
}

// A directory that appears after the last check is not replaced.
func TestDirAppearsAtTheLastMoment(t *testing.T) {
	parent := t.TempDir()
	path, temp := filepath.Join(parent, "model"), filepath.Join(parent, "temp")
	for dir, content := range map[string]string{path: "somebody else's", filepath.Join(temp, newName): "new"} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "f"), content)
	}
	if err := moveDir(temp, path, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want %v", err, fs.ErrExist)
	}
	expect(t, path, "f=somebody else's")
	expect(t, filepath.Join(temp, newName), "f=new")
}

// The second of the two renames fails: the first must be undone.
func TestDirRestoresTheOld(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "f"), "old")
	if err := WriteDir(path, true, allow, os.Remove); err == nil {
		t.Error("no error")
	}
	expect(t, path, "f=old")
}
