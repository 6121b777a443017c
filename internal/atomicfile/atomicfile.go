// Package atomicfile writes files and directories atomically: under a temporary name in the same directory, which
// is renamed after all data are on disk. Until then, and after any failure before the renaming, the previous content
// remains. On file systems that can't exchange names, a directory that is replaced is missing for a moment; see
// [Dir.Displaced].
//
//	err := atomicfile.WriteFile(ctx, "report.md", true, func(w io.Writer) error {
//		_, err := io.WriteString(w, "# Report\n")
//		return err
//	})
package atomicfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// An OutputError reports an output path that can't be written: the user must choose another path or allow its
// replacement. A failure while writing, such as a full disk, is not an OutputError.
type OutputError struct {
	Path string
	Err  error
}

func (e *OutputError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// A Writer is an io.Writer. After Context is cancelled, writes fail with the error of Context.
type Writer struct {
	Context context.Context
	io.Writer
}

func (w Writer) Write(p []byte) (int, error) {
	if err := w.Context.Err(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// WriteFile calls write. If it succeeds and all data are on disk, WriteFile gives the file its name. With force it
// replaces a regular file. A problem before the call of write is an [*OutputError], which wraps [ErrExists] if the
// file exists and force is false. If the file is in place despite an error, the error says so. After the cancellation
// of ctx, writes fail and nothing is replaced.
func WriteFile(ctx context.Context, path string, force bool, write func(w io.Writer) error) (err error) {
	path = Resolve(path)
	if err := checkFile(path, force); err != nil {
		return err
	}
	temp, err := os.OpenFile(tempName(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, permissions(path)&0o666)
	if err != nil {
		return &OutputError{path, fmt.Errorf("cannot be created: %w", reason(err))}
	}
	defer func() {
		temp.Close() // fails if the file is closed
		err = remove(err, path, temp.Name())
	}()
	permit(temp.Name(), path)
	if err := write(Writer{ctx, file{temp, path}}); err != nil {
		return err
	}
	if err := cmp.Or(InFile(path, cmp.Or(temp.Sync(), temp.Close())), ctx.Err()); err != nil {
		return err
	}
	if err := place(temp.Name(), path, force); err != nil {
		return err
	}
	return syncPlace(path)
}

// A file is a temporary file whose errors name the final path.
type file struct {
	temp *os.File
	path string
}

// permissions returns the permissions of the file or directory at path. If nothing exists there, it returns 0o777,
// which the umask restricts.
func permissions(path string) fs.FileMode {
	if info, err := os.Lstat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o777
}

// permit sets the permissions of temp to the permissions of the file or directory at path, if it exists. Other
// inherited mode bits of temp remain, such as the setgid bit of a directory.
func permit(temp, path string) {
	old, err := os.Lstat(path)
	if err != nil {
		return
	}
	want := old.Mode().Perm()
	if old.IsDir() {
		want |= 0o700 // otherwise it could not be replaced again
	}
	if is, err := os.Lstat(temp); err == nil && is.Mode().Perm() != want {
		os.Chmod(temp, is.Mode()&^fs.ModePerm|want)
	}
}

func (f file) Write(p []byte) (int, error) {
	n, err := f.temp.Write(p)
	return n, InFile(f.path, err)
}

// place gives a temporary file its name.
func place(temp, path string, force bool) error {
	if !force {
		// Unlike a rename, a link never replaces a file that another process has just created.
		err := os.Link(temp, path)
		if err == nil {
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return &OutputError{path, ErrExists}
		}
		// The file system doesn't support links.
	}
	if err := checkFile(path, force); err != nil {
		return err
	}
	return InFile(path, os.Rename(temp, path))
}

// remove removes a temporary file or directory of the output at path. It returns err, combined with the error of
// the removal.
func remove(err error, path, temp string) error {
	failed := os.RemoveAll(temp)
	_, missing := os.Lstat(temp)
	switch {
	case failed == nil || errors.Is(missing, fs.ErrNotExist):
		return err
	case err == nil:
		return fmt.Errorf("%s is written, but %s is left over: %w", path, temp, reason(failed))
	}
	return fmt.Errorf("%w; %s is left over: %w", err, temp, reason(failed))
}

// ErrExists reports an existing file that may not be replaced.
var ErrExists = errors.New("already exists")

func checkFile(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &OutputError{path, reason(err)}
	case !info.Mode().IsRegular():
		return &OutputError{path, errors.New("exists and is not a regular file")}
	case !force:
		return &OutputError{path, ErrExists}
	}
	return nil
}

// A Dir is a directory that is written under a temporary name and renamed when it is complete.
type Dir struct {
	Path string // the final path, absolute
	Temp string // after Begin: the directory "new" in the temporary directory beside Path, for [WriteIn]

	mayReplace func(path string) error
}

// NewDir returns the directory for path. If something exists at path when the directory is checked or committed,
// mayReplace must return nil to allow its replacement.
func NewDir(path string, mayReplace func(path string) error) *Dir {
	return &Dir{Path: Resolve(path), mayReplace: mayReplace}
}

// Check returns an [*OutputError] unless the directory can be written.
func (d *Dir) Check() error {
	if err := d.try(); err != nil {
		return &OutputError{d.Path, err}
	}
	return nil
}

func (d *Dir) try() error {
	exists, err := d.check()
	if err != nil {
		return err
	}
	temp, err := makeTemp(d.Path)
	if err != nil {
		return err
	}
	if err := os.Remove(temp); err != nil {
		return fmt.Errorf("cannot be written: a temporary directory cannot be removed: %w", err)
	}
	if exists {
		if err := checkMove(d.Path); err != nil {
			return fmt.Errorf("cannot be replaced: %w", err)
		}
	}
	return nil
}

// Begin creates Temp. The caller must call Commit or Abort.
func (d *Dir) Begin() error {
	temp, err := makeTemp(d.Path)
	if err != nil {
		return InFile(d.Path, err)
	}
	d.Temp = filepath.Join(temp, newName)
	if err := os.Mkdir(d.Temp, permissions(d.Path)|0o700); err != nil {
		return d.Abort(InFile(d.Path, err))
	}
	return nil
}

// Abort removes the temporary directory that contains Temp. It returns err, combined with the error of the removal.
func (d *Dir) Abort(err error) error { return remove(err, d.Path, filepath.Dir(d.Temp)) }

// Commit renames Temp to Path. If the renaming fails, Commit removes the temporary directory or, if keep is true,
// keeps it and names it in the error. Commit reports whether the new directory is in place. It may be in place
// despite an error: a loss of power may undo the renaming, or a temporary file remains.
func (d *Dir) Commit(keep bool) (placed bool, err error) {
	permit(d.Temp, d.Path)
	if err := SyncDir(d.Temp); err != nil {
		return false, d.Abort(InFile(d.Path, err))
	}
	old, err := d.place()
	if err != nil {
		if !keep && old == "" {
			return false, d.Abort(InFile(d.Path, err))
		}
		return false, fmt.Errorf("%s: %w; the new one is kept as %s", d.Path, err, d.Temp)
	}
	if err = syncPlace(d.Path); err != nil && old != "" {
		return true, fmt.Errorf("%w; the previous directory is kept as %s", err, old)
	}
	return true, d.Abort(err)
}

// WriteIn creates a file in dir, which is a [Dir.Temp]. It calls write and flushes the file to disk. Errors name
// the file.
func WriteIn(dir, name string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		if err = write(f); err == nil {
			err = f.Sync()
		}
		err = cmp.Or(err, f.Close())
	}
	return InFile(name, err)
}

// Names in the temporary directory beside a path.
const (
	newName = "new"
	oldName = "old" // the previous directory, during its replacement
)

// exchange is a variable so that tests can simulate systems that can't exchange names.
var exchange = exchangeNames

// patience is the time to wait for another process that has locked a directory.
const patience = 3 * time.Second

// place renames the directory to its path. If the path exists, its content moves to the returned path old;
// otherwise old is "". The replacement is atomic if the file system can exchange names. Otherwise nothing
// exists at path for a moment.
func (d *Dir) place() (old string, err error) {
	exists, err := d.check()
	if err != nil {
		return "", err
	}
	if exists {
		// Check that names can be flushed: otherwise Commit keeps the old directory, and every replacement would
		// leave an old directory behind.
		if err := SyncDir(filepath.Dir(d.Path)); err != nil {
			return "", fmt.Errorf("cannot be replaced: %w", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		unlock, err := Lock(ctx, d.Path) // other processes may be writing in it
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("another process has locked it: try again when that has ended")
		}
		if err != nil {
			return "", fmt.Errorf("cannot be replaced: %w", reason(err))
		}
		defer unlock()
		if _, err := d.check(); err != nil { // it may have changed before the lock
			return "", err
		}
		if exchange(d.Temp, d.Path) == nil {
			return d.Temp, nil
		}
		old = filepath.Join(filepath.Dir(d.Temp), oldName)
		if err := os.Rename(d.Path, old); err != nil {
			return "", reason(err)
		}
	}
	if err := os.Rename(d.Temp, d.Path); err != nil {
		if old != "" && os.Rename(old, d.Path) != nil {
			return old, fmt.Errorf("%w; the previous directory is now %s", reason(err), old)
		}
		return "", reason(err)
	}
	return old, nil
}

// Displaced returns the path of the previous directory if a process was killed after [Dir.Commit] had moved it away
// from Path and before the new directory was in place. Otherwise Displaced returns "".
func (d *Dir) Displaced() string {
	entries, _ := os.ReadDir(filepath.Dir(d.Path))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(tempPrefix(d.Path))) {
			old := filepath.Join(filepath.Dir(d.Path), e.Name(), oldName)
			if _, err := os.Lstat(old); err == nil {
				return old
			}
		}
	}
	return ""
}

// check reports whether something exists at Path, and returns an error if it may not be replaced.
func (d *Dir) check() (exists bool, err error) {
	info, err := os.Lstat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, reason(err)
	case info.Mode()&fs.ModeSymlink != 0: // Resolve follows all other links
		return true, errors.New("is a symbolic link to nothing")
	}
	return true, reason(d.mayReplace(d.Path))
}

// makeTemp creates an empty directory beside path.
func makeTemp(path string) (string, error) {
	temp := tempName(path)
	if err := os.Mkdir(temp, 0o777); err != nil {
		return "", fmt.Errorf("cannot be created: %w", reason(err))
	}
	return temp, nil
}

// Resolve returns path as an absolute path without symbolic links, so that the target of a link is replaced and
// not the link. A path that doesn't exist is only made absolute.
func Resolve(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	// "." has no parent in a relative path.
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

func tempName(path string) string {
	return fmt.Sprintf("%s%08x", tempPrefix(path), rand.Uint32())
}

// tempPrefix returns the prefix of temporary names for path. It shortens long names to the limit of file systems.
func tempPrefix(path string) string {
	dir, name := filepath.Split(path)
	const longest = 255 - len(".tmp01234567") // bytes
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "")
	}
	return dir + name + ".tmp"
}

// InFile returns err prefixed with a file name, or nil if err is nil.
func InFile(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, reason(err))
}

// reason returns an error of the operating system without its file name, which may be a temporary one.
func reason(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

// syncPlace flushes the new name of an output to disk, so that a loss of power can't undo the renaming.
func syncPlace(path string) error {
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s is written, but a loss of power may undo that: %w", path, err)
	}
	return nil
}

// SyncDir flushes the names in a directory to disk, on systems that support it.
func SyncDir(name string) error {
	dir, err := os.Open(name)
	if err == nil {
		defer dir.Close()
		err = dir.Sync()
	}
	// A directory may be writable but not readable. Windows and some file systems don't flush names.
	if err == nil || errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return fmt.Errorf("the directory can't be flushed to disk: %w", reason(err))
}
