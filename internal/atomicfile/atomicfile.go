// Package atomicfile writes files and directories whole or not at all: under a
// temporary name beside their own, which is taken when everything is on disk.
// Until then, and after any failure, what was there before is still there.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// An OutputError reports an output that cannot be written where it was asked
// for: the user has to choose another place, or to allow what is there to be
// replaced. Failures of another kind, such as a full disk, are no OutputErrors.
type OutputError struct {
	Path string
	Err  error
}

func (e *OutputError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// A File is written under a temporary name until Commit.
type File struct {
	temp  *os.File
	path  string
	force bool
	done  bool
}

// Create creates a file to become path. A regular file that is there already is
// replaced with force, and an error without. All errors are [*OutputError].
func Create(path string, force bool) (*File, error) {
	path = resolve(path)
	if err := checkFile(path, force); err != nil {
		return nil, err
	}
	temp, err := os.OpenFile(tempName(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, &OutputError{path, fmt.Errorf("cannot be created: %w", reason(err))}
	}
	return &File{temp: temp, path: path, force: force}, nil
}

// Write implements [io.Writer].
func (f *File) Write(p []byte) (int, error) {
	n, err := f.temp.Write(p)
	return n, f.inFile(err)
}

// inFile names the file as the user does.
func (f *File) inFile(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", f.path, reason(err))
}

// Commit gives the file its name.
func (f *File) Commit() error {
	if err := f.temp.Sync(); err != nil {
		return f.inFile(err)
	}
	if err := f.temp.Close(); err != nil {
		return f.inFile(err)
	}
	if err := checkFile(f.path, f.force); err != nil { // somebody may have been faster
		return err
	}
	if err := os.Rename(f.temp.Name(), f.path); err != nil {
		return err
	}
	f.done = true
	syncDir(filepath.Dir(f.path))
	return nil
}

// Close removes the temporary file. After Commit it does nothing, so that it
// can be deferred.
func (f *File) Close() error {
	if f.done {
		return nil
	}
	f.done = true
	f.temp.Close() // fails if Commit closed it, and tells nothing about the removal
	return os.Remove(f.temp.Name())
}

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
		return &OutputError{path, errors.New("already exists; --force replaces it")}
	}
	return nil
}

// A Dir is a directory that is filled under a temporary name until Commit.
type Dir struct {
	path    string
	replace func(path string) error
	temp    string // holds the new directory and, for a moment, the old one
}

// CreateDir creates an empty directory to become path. If there is something at
// path, replace decides: it returns nil if that may go, or why not.
// All errors are [*OutputError].
func CreateDir(path string, replace func(path string) error) (*Dir, error) {
	path = resolve(path)
	d := &Dir{path: path, replace: replace, temp: tempName(path)}
	if err := d.check(); err != nil {
		return nil, err
	}
	err := os.Mkdir(d.temp, 0o777)
	if err == nil {
		if err = os.Mkdir(d.Name(), 0o777); err != nil {
			d.Close()
		}
	}
	if err != nil {
		return nil, &OutputError{path, fmt.Errorf("cannot be created: %w", reason(err))}
	}
	return d, nil
}

// Name returns the temporary name of the directory, for files to be created in.
func (d *Dir) Name() string { return filepath.Join(d.temp, "new") }

// Commit gives the directory its name. The files in it must have been synced.
func (d *Dir) Commit() error {
	if err := d.check(); err != nil { // somebody may have been faster
		return err
	}
	syncDir(d.Name())

	// No system renames over a directory that is not empty.
	old := filepath.Join(d.temp, "old")
	if err := os.Rename(d.path, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(d.Name(), d.path); err != nil {
		back := os.Rename(old, d.path)
		if back != nil && !errors.Is(back, fs.ErrNotExist) {
			d.temp = "" // Close must not remove the only copy
			return fmt.Errorf("%w; what was there is now %s", err, old)
		}
		return err
	}
	syncDir(filepath.Dir(d.path))
	return d.Close()
}

// Close removes the temporary directory. After Commit it does nothing, so that
// it can be deferred.
func (d *Dir) Close() error {
	if d.temp == "" {
		return nil
	}
	temp := d.temp
	d.temp = ""
	return os.RemoveAll(temp)
}

func (d *Dir) check() error {
	_, err := os.Lstat(d.path)
	if err == nil {
		err = d.replace(d.path)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &OutputError{d.path, reason(err)}
}

// resolve follows path if it is a symbolic link, so that what it points to is
// replaced and not the link.
func resolve(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	// The parent of "." has to be named, too.
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

func tempName(path string) string {
	return fmt.Sprintf("%s.tmp%08x", path, rand.Uint32())
}

// reason returns what went wrong without the temporary name that it went wrong
// with.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// syncDir makes the names in a directory survive a loss of power, on systems
// that can.
func syncDir(name string) {
	if dir, err := os.Open(name); err == nil {
		dir.Sync()
		dir.Close()
	}
}
