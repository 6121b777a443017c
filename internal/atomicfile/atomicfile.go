// Package atomicfile writes files and directories atomically: under a temporary name in the same
// directory, renamed when everything is on disk. Until then, and after any failure, what was there
// before is still there.
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

// An OutputError reports an output that cannot be written where it was asked for: the user has to
// choose another place, or allow its replacement. A failure while writing, such as a full disk, is
// not an OutputError.
type OutputError struct {
	Path string
	Err  error
}

func (e *OutputError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// A Writer is an io.Writer that fails with the error of Context once that is cancelled.
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

// WriteFile is [WriteFiles] for one file.
func WriteFile(ctx context.Context, path string, force bool, write func(w io.Writer) error) error {
	return WriteFiles(ctx, []string{path}, force, func(files []io.Writer) error { return write(files[0]) })
}

// WriteFiles calls write with a writer for each path and, if write succeeds and everything is on disk,
// gives all files their names. With force it replaces regular files; without, it returns an
// [*OutputError] that wraps [ErrExists], as it returns one for everything that is wrong before write is
// called. Once ctx is cancelled, writes fail and nothing is replaced.
func WriteFiles(ctx context.Context, paths []string, force bool, write func(files []io.Writer) error) (err error) {
	var files []*file
	defer func() {
		for _, f := range files {
			f.temp.Close() // fails if it is closed already
			err = remove(err, f.path, f.temp.Name())
		}
	}()
	var writers []io.Writer
	for _, path := range paths {
		f, err := create(path, force)
		if err != nil {
			return err
		}
		files = append(files, f)
		writers = append(writers, Writer{ctx, f})
	}
	if err := write(writers); err != nil {
		return err
	}
	for _, f := range files {
		if err := f.inFile(cmp.Or(f.temp.Sync(), f.temp.Close())); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, f := range files { // before the first is placed
		if err := checkFile(f.path, force); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := f.place(force); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := syncPlace(f.path); err != nil {
			return err
		}
	}
	return nil
}

// A file is written under a temporary name until it is placed at path.
type file struct {
	temp *os.File
	path string
}

func create(path string, force bool) (*file, error) {
	path = Resolve(path)
	if err := checkFile(path, force); err != nil {
		return nil, err
	}
	mode := permissions(path)
	temp, err := os.OpenFile(tempName(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode&0o666)
	if err != nil {
		return nil, &OutputError{path, fmt.Errorf("cannot be created: %w", reason(err))}
	}
	permit(temp.Name(), path)
	return &file{temp, path}, nil
}

// permissions returns the permissions of what is at path, or all, which the umask restricts.
func permissions(path string) fs.FileMode {
	if info, err := os.Lstat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o777
}

// permit gives temp the permissions of what it replaces at path. A directory keeps what it inherits
// besides, such as the group of its files.
func permit(temp, path string) {
	old, err := os.Lstat(path)
	if err != nil {
		return
	}
	want := old.Mode().Perm()
	if old.IsDir() {
		want |= 0o700 // or it could not be replaced again
	}
	if is, err := os.Lstat(temp); err == nil && is.Mode().Perm() != want {
		os.Chmod(temp, is.Mode()&^fs.ModePerm|want)
	}
}

// Write implements [io.Writer].
func (f *file) Write(p []byte) (int, error) {
	n, err := f.temp.Write(p)
	return n, f.inFile(err)
}

// inFile names the file as the user does.
func (f *file) inFile(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", f.path, reason(err))
}

// place gives the file its name.
func (f *file) place(force bool) error {
	if !force {
		// Unlike a new name, a link never replaces what somebody else has just put there.
		err := os.Link(f.temp.Name(), f.path)
		if err == nil {
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return &OutputError{f.path, ErrExists}
		}
		// This file system has no links.
	}
	if err := checkFile(f.path, force); err != nil {
		return err
	}
	return f.inFile(os.Rename(f.temp.Name(), f.path))
}

// remove removes a temporary name of the output at path. A failure is added to err, the outcome.
func remove(err error, path, temp string) error {
	failed := os.RemoveAll(temp)
	switch {
	case failed == nil:
		return err
	case err == nil:
		return &PlacedError{path, fmt.Errorf("%s is left over: %w", temp, reason(failed))}
	}
	return fmt.Errorf("%w; %s is left over: %w", err, temp, reason(failed))
}

// ErrExists reports a file that exists and was not to be replaced.
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

// CheckDir returns nil if [WriteDir] can write a directory at path, or else an [*OutputError]. If
// something exists at path, mayReplace is called and returns an error unless it may be replaced.
func CheckDir(path string, mayReplace func(path string) error) error {
	path = Resolve(path)
	if err := tryDir(path, mayReplace); err != nil {
		return &OutputError{path, err}
	}
	return nil
}

func tryDir(path string, mayReplace func(path string) error) error {
	exists, err := checkDir(path, mayReplace)
	if err != nil {
		return err
	}
	temp, err := makeTemp(path)
	if err != nil {
		return err
	}
	if err := os.Remove(temp); err != nil {
		return fmt.Errorf("cannot be written: a temporary directory cannot be removed: %w", err)
	}
	if exists {
		if err := checkMove(path); err != nil {
			return fmt.Errorf("cannot be replaced: %w", err)
		}
	}
	return nil
}

// A Dir is a directory that is written under a temporary name, and gets its own when it is complete.
type Dir struct {
	Path string // absolute, where it will be
	Temp string // the temporary directory, in which [WriteIn] creates files
}

// NewDir begins the directory at path.
func NewDir(path string) (*Dir, error) {
	path = Resolve(path)
	temp, err := makeTemp(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := &Dir{path, filepath.Join(temp, newName)}
	if err := os.Mkdir(d.Temp, permissions(path)|0o700); err != nil {
		return nil, d.Abort(d.name(err))
	}
	return d, nil
}

// Abort removes the temporary directory. It returns err and, if that fails, the reason.
func (d *Dir) Abort(err error) error { return remove(err, d.Path, filepath.Dir(d.Temp)) }

// name returns err with the path of the directory.
func (d *Dir) name(err error) error { return fmt.Errorf("%s: %w", d.Path, reason(err)) }

// Commit gives the directory its name. It replaces what is at path if mayReplace allows it, as in
// [CheckDir]. If the directory cannot be renamed, it is removed or, with keep, left under its temporary
// name, which the [*KeptError] tells.
func (d *Dir) Commit(keep bool, mayReplace func(path string) error) error {
	permit(d.Temp, d.Path)
	if err := SyncDir(d.Temp); err != nil {
		return d.Abort(d.name(err))
	}
	old, err := d.place(mayReplace)
	if err != nil {
		if !keep && old == "" {
			return d.Abort(d.name(err))
		}
		return &KeptError{d.Path, d.Temp, err}
	}
	if err = syncPlace(d.Path); err != nil && old != "" {
		return fmt.Errorf("%w; what was there is kept as %s", err, old)
	}
	return d.Abort(err)
}

// WriteDir writes a [Dir], whose files write creates.
func WriteDir(path string, keep bool, mayReplace func(path string) error, write func(dir string) error) error {
	d, err := NewDir(path)
	if err != nil {
		return err
	}
	if err := write(d.Temp); err != nil {
		return d.Abort(d.name(err))
	}
	return d.Commit(keep, mayReplace)
}

// WriteIn creates a file in the directory that [WriteDir] makes, calls write, and flushes the file to
// disk. Its errors name the file.
func WriteIn(dir, name string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		if err = write(f); err == nil {
			err = f.Sync()
		}
		err = cmp.Or(err, f.Close())
	}
	if err == nil {
		return nil
	}
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err // the file is named once, and not by where it is now
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Names in the directory that Temp is in.
const (
	newName = "new"
	oldName = "old" // for a moment
)

// patience is the time to wait for another process that holds a directory, which it does for a moment.
const patience = 3 * time.Second

// place moves the directory to its path, and what exists there to old, "" if nothing does: atomically where
// the file system can exchange names. Elsewhere nothing is at path for a moment.
func (d *Dir) place(mayReplace func(path string) error) (old string, err error) {
	exists, err := checkDir(d.Path, mayReplace)
	if err != nil {
		return "", err
	}
	if exists {
		// Where names cannot be flushed, each of many checkpoints would leave its predecessor behind.
		if err := SyncDir(filepath.Dir(d.Path)); err != nil {
			return "", fmt.Errorf("cannot be replaced: %w", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		unlock, err := Lock(ctx, d.Path) // others may write in it
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("another process holds it; try again when that has ended")
		}
		if err != nil {
			return "", fmt.Errorf("cannot be replaced: %w", reason(err))
		}
		defer unlock()
		if _, err := checkDir(d.Path, mayReplace); err != nil { // it may have changed before
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
			return old, fmt.Errorf("%w; what was there is now %s", reason(err), old)
		}
		return "", reason(err)
	}
	return old, nil
}

// Displaced returns the path of what was at path if a process was killed at the moment when [WriteDir]
// had moved that away and not yet put the new directory in its place, or "".
func Displaced(path string) string {
	path = Resolve(path)
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(tempPrefix(path))) {
			old := filepath.Join(filepath.Dir(path), e.Name(), oldName)
			if _, err := os.Lstat(old); err == nil {
				return old
			}
		}
	}
	return ""
}

// checkDir reports whether something exists at path, or why it may not be replaced.
func checkDir(path string, mayReplace func(path string) error) (exists bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, reason(err)
	case info.Mode()&fs.ModeSymlink != 0: // Resolve would have followed any other
		return true, errors.New("is a symbolic link to nothing")
	}
	return true, reason(mayReplace(path))
}

// makeTemp creates an empty directory beside path.
func makeTemp(path string) (string, error) {
	temp := tempName(path)
	if err := os.Mkdir(temp, 0o777); err != nil {
		return "", fmt.Errorf("cannot be created: %w", reason(err))
	}
	return temp, nil
}

// Resolve returns the absolute path of what path names, after symbolic links, so that the target is replaced
// and not the link. A path that does not exist stays as it is.
func Resolve(path string) string {
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
	return fmt.Sprintf("%s%08x", tempPrefix(path), rand.Uint32())
}

// tempPrefix returns the beginning of temporary names for path, without the end of a name that is as
// long as file systems allow.
func tempPrefix(path string) string {
	dir, name := filepath.Split(path)
	const longest = 255 - len(".tmp01234567") // bytes
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "")
	}
	return dir + name + ".tmp"
}

// reason returns an error of the operating system without its file name, which may be temporary.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// A PlacedError reports that an output is in its place, but something is wrong: a loss of power may
// undo it, or a temporary file is left over.
type PlacedError struct {
	Path string
	Err  error
}

func (e *PlacedError) Error() string { return fmt.Sprintf("%s is written, but %v", e.Path, e.Err) }
func (e *PlacedError) Unwrap() error { return e.Err }

// InPlace reports whether an output is in its place in spite of err.
func InPlace(err error) bool {
	_, ok := errors.AsType[*PlacedError](err)
	return ok
}

// A KeptError reports that a directory is complete but could not be given its name.
type KeptError struct {
	Path string // that name
	Kept string // the name that it has
	Err  error  // why
}

func (e *KeptError) Error() string {
	return fmt.Sprintf("%s: %v; the new one is kept as %s", e.Path, e.Err, e.Kept)
}
func (e *KeptError) Unwrap() error { return e.Err }

// syncPlace flushes the new name of an output to disk.
func syncPlace(path string) error {
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return &PlacedError{path, fmt.Errorf("a loss of power may undo that: %w", err)}
	}
	return nil
}

// SyncDir flushes the names of the files in a directory to disk, on systems that can.
func SyncDir(name string) error {
	dir, err := os.Open(name)
	if err == nil {
		defer dir.Close()
		err = dir.Sync()
	}
	// A directory may be writable but not readable; Windows and some file systems flush no names.
	if err == nil || errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return fmt.Errorf("the directory can't be flushed to disk: %w", reason(err))
}
