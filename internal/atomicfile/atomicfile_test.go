package atomicfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"overcomplete/testonly"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	testonly.Must(t, os.WriteFile(path, []byte(content), 0o666))
}

// expect checks the files of a directory, given as "name=content".
func expect(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testonly.Must(t, err)
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

// writeText writes a text with WriteFile.
func writeText(path string, force bool, text string) error {
	return WriteFile(context.Background(), path, force, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	err := WriteFile(t.Context(), path, false, func(w io.Writer) error {
		if _, err := io.WriteString(w, "new"); err != nil {
			return err
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("there before all is written")
		}
		return nil
	})
	testonly.Must(t, err)
	expect(t, dir, "a=new")

	wantOutputError(t, writeText(path, false, "newer"), "already exists")
	expect(t, dir, "a=new")
	failed := errors.New("failed")
	err = WriteFile(t.Context(), path, true, func(w io.Writer) error {
		io.WriteString(w, "half")
		return failed
	})
	if err != failed {
		t.Errorf("error %v, want %v", err, failed)
	}
	expect(t, dir, "a=new")
	testonly.Must(t, writeText(path, true, "newer"))
	expect(t, dir, "a=newer")
}

// After the cancellation of the context, writes fail and nothing is replaced.
func TestFileCancelled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, "old")
	for _, late := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		err := WriteFile(ctx, path, true, func(w io.Writer) error {
			if late {
				defer cancel()
			} else {
				cancel()
			}
			_, err := io.WriteString(w, "new")
			return err
		})
		if err != context.Canceled {
			t.Errorf("late %v: error %v, want %v", late, err, context.Canceled)
		}
		expect(t, dir, "a=old")
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
		wantOutputError(t, writeText(tt.path, true, ""), tt.want)
	}
	expect(t, dir, "file=kept")
}

func TestFileAppearsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	err := WriteFile(t.Context(), path, false, func(io.Writer) error {
		write(t, path, "somebody else's")
		return nil
	})
	wantOutputError(t, err, "already exists")
	expect(t, dir, "a=somebody else's")
}

// force replaces only files, even if something else is created meanwhile.
func TestFileForceAndSymlinkMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	err := WriteFile(t.Context(), path, true, func(io.Writer) error { return os.Symlink("missing", path) })
	wantOutputError(t, err, "not a regular file")
}

func TestFileBehindSymlink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(elsewhere, "real"), "old")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(elsewhere, "real"), link); err != nil {
		t.Skip(err)
	}
	testonly.Must(t, writeText(link, true, "new"))
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
	wantOutputError(t, writeText(link, true, ""), "not a regular file")
	wantOutputError(t, NewDir(link, allow).Check(), "symbolic link to nothing")
	if target, err := os.Readlink(link); target != "missing" {
		t.Errorf("the link is to %q, %v", target, err)
	}
}

func allow(string) error  { return nil }
func forbid(string) error { return errors.New("is precious") }

// writeDir writes a directory by a function.
func writeDir(path string, keep bool, mayReplace func(string) error, write func(dir string) error) error {
	d := NewDir(path, mayReplace)
	if err := d.Begin(); err != nil {
		return err
	}
	if err := write(d.Temp); err != nil {
		return d.Abort(InFile(d.Path, err))
	}
	_, err := d.Commit(keep)
	return err
}

// writeF writes a file f, the content of the tests' directories.
func writeF(dir string) error { return os.WriteFile(filepath.Join(dir, "f"), []byte("new"), 0o666) }

func TestDir(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	testonly.Must(t, NewDir(path, forbid).Check())
	expect(t, parent)
	err := writeDir(path, true, forbid, func(dir string) error {
		if _, err := os.Stat(path); err == nil {
			t.Error("there before all is written")
		}
		return writeF(dir)
	})
	testonly.Must(t, err)
	expect(t, path, "f=new")
	expect(t, parent, "model=directory")

	wantOutputError(t, NewDir(path, forbid).Check(), "is precious")

	// Nothing of a replaced directory remains.
	write(t, filepath.Join(path, "g"), "old")
	testonly.Must(t, NewDir(path, allow).Check())
	expect(t, path, "f=new", "g=old")
	testonly.Must(t, writeDir(path, true, allow, writeF))
	expect(t, path, "f=new")
	expect(t, parent, "model=directory")
}

func TestDirRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "kept")
	wantOutputError(t, NewDir(filepath.Join(dir, "missing", "model"), allow).Check(), "no such file")
	wantOutputError(t, NewDir(filepath.Join(dir, "file", "model"), allow).Check(), "not a directory")
	expect(t, dir, "file=kept")
}

// A path that can't be moved is refused. Here mayReplace removes it; in practice it is a mount point.
func TestDirCannotBeMoved(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	testonly.Must(t, os.Mkdir(path, 0o777))
	wantOutputError(t, NewDir(path, os.Remove).Check(), "cannot be replaced: no such file")
	expect(t, parent)
}

func TestDirFailsToWrite(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	testonly.Must(t, writeDir(path, true, forbid, writeF))
	full := errors.New("disk full")
	err := writeDir(path, true, allow, func(dir string) error {
		write(t, filepath.Join(dir, "half"), "")
		return full
	})
	if !errors.Is(err, full) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("error %v, want %v", err, full)
	}
	expect(t, path, "f=new")
	expect(t, parent, "model=directory")
}

// expectKept checks that the error names the path of the new directory, which has a file f. The error must not be
// an OutputError, because it may follow hours of work.
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
	err := writeDir(path, true, forbid, func(dir string) error {
		testonly.Must(t, os.Mkdir(path, 0o777))
		write(t, filepath.Join(path, "f"), "somebody else's")
		return writeF(dir)
	})
	expectKept(t, err, path+": is precious; ")
	expect(t, path, "f=somebody else's")
}

// Without an exchange of names, as on Windows, macOS and network file systems, a directory moves away before the new
// one takes its place. No rename replaces a directory.
func TestDirWithoutExchange(t *testing.T) {
	defer func(f func(a, b string) error) { exchange = f }(exchange)
	exchange = func(string, string) error { return errors.ErrUnsupported }
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	for range 2 {
		testonly.Must(t, writeDir(path, true, allow, func(dir string) error {
			write(t, filepath.Join(dir, "g"), "")
			return writeF(dir)
		}))
		expect(t, path, "f=new", "g=")
		expect(t, parent, "model=directory")
	}
	TestDirRestoresTheOld(t)
	TestDirFailsToWrite(t)
}

// If the second rename fails, the first is undone.
func TestDirRestoresTheOld(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "model")
	testonly.Must(t, os.Mkdir(path, 0o777))
	write(t, filepath.Join(path, "f"), "old")
	if err := writeDir(path, true, allow, os.Remove); err == nil {
		t.Error("no error")
	}
	expect(t, path, "f=old")
}

// A replaced file or directory keeps its permissions, whatever the umask.
func TestPermissionsAreKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no such permissions")
	}
	dir := t.TempDir()
	file, model := filepath.Join(dir, "file"), filepath.Join(dir, "model")
	write(t, file, "old")
	testonly.Must(t, os.Mkdir(model, 0o777))
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o640, 0o750} {
		testonly.Must(t, errors.Join(os.Chmod(file, mode), os.Chmod(model, mode|0o100)))
		err := errors.Join(writeText(file, true, "new"), writeDir(model, false, allow, func(dir string) error {
			info, err := os.Stat(dir)
			if err == nil && info.Mode().Perm()&^(mode|0o700) != 0 {
				t.Errorf("what becomes %v was %v while it was written", mode, info.Mode())
			}
			return err
		}))
		testonly.Must(t, err)
		for path, want := range map[string]fs.FileMode{file: mode, model: mode | 0o700} {
			info, err := os.Stat(path)
			testonly.Must(t, err)
			if info.Mode().Perm() != want {
				t.Errorf("%s has %v, want %v", path, info.Mode(), want)
			}
		}
	}

	if runtime.GOOS != "linux" {
		return
	}
	// New directories in a shared directory inherit its group, also after replacements.
	testonly.Must(t, os.Chmod(dir, 0o770|fs.ModeSetgid))
	shared := filepath.Join(dir, "shared")
	for range 2 {
		testonly.Must(t, writeDir(shared, false, allow, allow))
		if info, err := os.Stat(shared); err != nil || info.Mode()&fs.ModeSetgid == 0 {
			t.Fatalf("%v, error %v: it does not give the group on", info.Mode(), err)
		}
		os.Chmod(shared, 0o750|fs.ModeSetgid)
	}
}

// A directory is locked during its second check and its replacement.
func TestDirIsHeldWhileReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no locks")
	}
	model := filepath.Join(t.TempDir(), "model")
	testonly.Must(t, os.Mkdir(model, 0o777))
	now, cancel := context.WithCancel(t.Context())
	cancel()
	var held []bool
	err := writeDir(model, false, func(path string) error {
		unlock, err := Lock(now, path)
		if held = append(held, err == context.Canceled); err == nil {
			unlock()
		}
		return nil
	}, func(dir string) error { return nil })
	if err != nil || !slices.Equal(held, []bool{false, true}) {
		t.Errorf("held %v, error %v", held, err)
	}
}

// A process that waits for the lock of a replaced directory locks the new one.
func TestLockOfReplaced(t *testing.T) {
	dir := t.TempDir()
	model, other := filepath.Join(dir, "model"), filepath.Join(dir, "other")
	for _, d := range []string{model, other} {
		testonly.Must(t, os.Mkdir(d, 0o777))
	}
	unlockFirst, err := Lock(t.Context(), model)
	testonly.Must(t, err)
	var unlock func()
	var all sync.WaitGroup
	all.Go(func() { unlock, err = Lock(t.Context(), model) })
	if err := exchange(other, model); err != nil {
		t.Skip(err)
	}
	unlockFirst()
	all.Wait()
	testonly.Must(t, err)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(now, model); err != context.Canceled {
		t.Errorf("error %v: the one that is there is not held", err)
	}
	unlock()
}

// A directory that another process has locked isn't replaced, and the new directory is kept.
func TestDirIsHeldTooLong(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no locks")
	}
	model := filepath.Join(t.TempDir(), "model")
	testonly.Must(t, os.Mkdir(model, 0o777))
	unlock, err := Lock(t.Context(), model)
	testonly.Must(t, err)
	defer unlock()
	err = writeDir(model, true, allow, writeF)
	expectKept(t, err, "another process has locked it")
}

func TestLongNames(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", 255), strings.Repeat("n", 242) + "äöüäöü", strings.Repeat("n", 243)} {
		dir := t.TempDir()
		for _, text := range []string{"old", "new"} {
			testonly.Must(t, writeText(filepath.Join(dir, name), true, text))
			expect(t, dir, name+"="+text)
		}
	}
}

// An error of the system names the file once, by its final name.
func TestInFile(t *testing.T) {
	dir := t.TempDir()
	create := func() error { return WriteIn(dir, "f", func(io.Writer) error { return nil }) }
	testonly.Must(t, create())
	if err := create(); !errors.Is(err, fs.ErrExist) || !strings.HasPrefix(err.Error(), "f: ") || strings.Contains(err.Error(), dir) {
		t.Errorf("error %v, want one that begins with f and names no directory", err)
	}
}
