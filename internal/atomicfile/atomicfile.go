// Package atomicfile writes files and directories whole or not at all. They are written
// under a temporary name in the same directory and renamed when everything is on disk.
// Until then, and after any failure, what was there before is still there.
package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// An OutputError reports an output that cannot be written where it was asked for: the
// user has to choose another place, or allow what is there to be replaced. A failure
// while writing, such as a full disk, is not an OutputError.
type OutputError struct {
	Path string
	Err  error
}

func (e *OutputError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// A Writer is an io.Writer whose Write returns the error of Context once that is
// cancelled.
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

// WriteFiles makes files at these paths of what write writes to each: all of them, once
// write has succeeded and everything is on disk, or none. Regular files that are there
// already are replaced with force, and an error without: an [*OutputError], as for all that
// is wrong before write is called. Once ctx is cancelled, writes fail, and nothing is
// replaced.
func WriteFiles(ctx context.Context, paths []string, force bool, write func(files []io.Writer) error) (err error) {
	var files []*file
	defer func() {
		for _, f := range files {
			err = f.discard(err)
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
		if err := f.finish(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, f := range files {
		if err := f.place(len(files) > 1); err != nil {
			for _, placed := range files[:i] {
				err = placed.undo(err)
			}
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

// A file is written under a temporary name, and then placed.
type file struct {
	temp  *os.File
	name  string // of temp, until that is the file's own
	path  string
	force bool
	isNew bool   // at its place there was nothing
	old   string // another name of what was there, if that may have to come back
}

func create(path string, force bool) (*file, error) {
	path = resolve(path)
	if err := checkFile(path, force); err != nil {
		return nil, err
	}
	mode := permissions(path)
	temp, err := os.OpenFile(tempName(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode&0o666)
	if err != nil {
		return nil, &OutputError{path, fmt.Errorf("cannot be created: %w", reason(err))}
	}
	permit(temp.Name(), path)
	return &file{temp: temp, name: temp.Name(), path: path, force: force}, nil
}

// permissions returns those of what is at path, or all, of which the umask takes some.
func permissions(path string) fs.FileMode {
	if info, err := os.Lstat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o777
}

// permit gives what is at temp the permissions of what it replaces at path, as far as the file
// system has them. What a directory inherits besides, such as the group of its files, it keeps.
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

// finish leaves the file on disk.
func (f *file) finish() error {
	err := f.temp.Sync()
	if closed := f.temp.Close(); err == nil {
		err = closed
	}
	return f.inFile(err)
}

// place gives the file its name, in a way that can be undone if it has to be.
func (f *file) place(undoable bool) error {
	if !f.force {
		// A link, unlike a new name, never replaces what somebody else has just
		// put there.
		err := os.Link(f.name, f.path)
		if err == nil {
			f.isNew = true
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return &OutputError{f.path, errExists}
		}
		// This file system has no links.
	}
	if err := checkFile(f.path, f.force); err != nil {
		return err
	}
	isNew := false
	if undoable {
		old := tempName(f.path)
		err := os.Link(f.path, old)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // no links here: nothing is in its place for a moment
			err = os.Rename(f.path, old)
		}
		switch {
		case err == nil:
			f.old = old
		case errors.Is(err, fs.ErrNotExist):
			isNew = true
		default:
			return f.inFile(err)
		}
	}
	if err := os.Rename(f.name, f.path); err != nil {
		return f.undo(f.inFile(err))
	}
	f.name, f.isNew = "", isNew
	return nil
}

// undo undoes place, which may have failed. It adds to err what could not be undone: then
// what was there keeps its other name.
func (f *file) undo(err error) error {
	if f.isNew {
		return leftover(err, f.path, os.Remove(f.path))
	}
	if f.old == "" {
		return err
	}
	// If both are names of the same file, they stay, and discard removes the other.
	if failed := os.Rename(f.old, f.path); failed != nil {
		err = fmt.Errorf("%w; %s: what was there is now %s, for it cannot be put back: %w", err, f.path, f.old, reason(failed))
		f.old = ""
	}
	return err
}

// discard removes temporary names. It adds to err what could not be removed.
func (f *file) discard(err error) error {
	f.temp.Close() // which fails if finish closed it
	for _, name := range []string{f.name, f.old} {
		if name != "" {
			err = leftover(err, name, os.Remove(name))
		}
	}
	return err
}

// A LeftoverError reports something of no use that could not be removed: beside an output
// that is written, if there is no other error.
type LeftoverError struct {
	Path string
	Err  error
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%s is left over, for it cannot be removed: %v", e.Path, e.Err)
}
func (e *LeftoverError) Unwrap() error { return e.Err }

// leftover adds to err, which may be nil, that a file or directory could not be removed,
// if failed says so.
func leftover(err error, path string, failed error) error {
	if failed == nil || errors.Is(failed, fs.ErrNotExist) {
		return err
	}
	left := &LeftoverError{path, reason(failed)}
	if err == nil {
		return left
	}
	return fmt.Errorf("%w; %w", err, left)
}

var errExists = errors.New("already exists; --force replaces it")

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
		return &OutputError{path, errExists}
	}
	return nil
}

// CheckDir returns nil if [WriteDir] can write a directory at path, or else an
// [*OutputError]. If there is something at path, mayReplace is called: it returns nil if
// that may be replaced, or an error that says why not.
func CheckDir(path string, mayReplace func(path string) error) error {
	path = resolve(path)
	if err := tryDir(path, mayReplace); err != nil {
		return &OutputError{path, err}
	}
	return nil
}

func tryDir(path string, mayReplace func(path string) error) (err error) {
	exists, err := checkDir(path, mayReplace)
	if err != nil {
		return err
	}
	temp, err := makeTemp(path)
	if err != nil {
		return err
	}
	defer func() {
		if failed := os.Remove(temp); failed != nil && err == nil {
			err = fmt.Errorf("cannot be written: what is tried cannot be removed: %w", failed)
		}
	}()
	if !exists {
		return nil
	}
	if err := tryMove(path, temp); err != nil {
		return fmt.Errorf("cannot be replaced: %w", err)
	}
	return nil
}

// WriteDir makes a directory at path. It calls write with a temporary directory, in
// which write creates the files by [WriteIn], and then gives that directory its name.
// What is at path is replaced if mayReplace allows it, as in [CheckDir].
//
// If write fails, the temporary directory is removed. If write succeeds but the
// directory cannot be renamed, it is removed too or, with keep, left under its temporary
// name, which the error tells, so that no work is lost. If what is replaced may come back
// after a loss of power, it is left as well, and the [*UnsyncedError] tells where.
func WriteDir(path string, keep bool, mayReplace func(path string) error, write func(dir string) error) error {
	path = resolve(path)
	temp, err := makeTemp(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	dir := filepath.Join(temp, newName)
	if err = os.Mkdir(dir, permissions(path)|0o700); err == nil {
		err = write(dir)
	}
	if err == nil {
		permit(dir, path)
		err = SyncDir(dir)
	}
	if err != nil {
		return leftover(fmt.Errorf("%s: %w", path, reason(err)), temp, os.RemoveAll(temp))
	}
	old, err := placeDir(temp, path, mayReplace)
	if err != nil {
		if !keep && old == "" {
			return leftover(fmt.Errorf("%s: %w", path, err), temp, os.RemoveAll(temp))
		}
		return &KeptError{path, dir, err}
	}
	if err = syncPlace(path); err != nil && old != "" {
		return fmt.Errorf("%w; what was there is kept as %s", err, old)
	}
	return leftover(err, temp, os.RemoveAll(temp))
}

// WriteIn creates a file of a directory that [WriteDir] makes, of what write writes, and
// flushes it to disk. Its errors name the file.
func WriteIn(dir, name string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		err = write(f)
		if err == nil {
			err = f.Sync()
		}
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err == nil {
		return nil
	}
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err // the file is named once, and not by where it is now
	}
	return fmt.Errorf("%s: %w", name, err)
}

// What a temporary directory holds.
const (
	newName = "new"
	oldName = "old" // for a moment
)

// placeDir moves the new directory in temp to path. It returns where in temp that is what
// was at path, or "".
func placeDir(temp, path string, mayReplace func(path string) error) (old string, err error) {
	exists, err := checkDir(path, mayReplace) // somebody may have been faster
	if err != nil {
		return "", err
	}
	if exists {
		// Where names can't be flushed, each of many checkpoints would leave its
		// forerunner behind.
		if err := SyncDir(filepath.Dir(path)); err != nil {
			return "", fmt.Errorf("cannot be replaced: %w", err)
		}
	}
	return moveDir(temp, path, exists, mayReplace)
}

// patience is how long a directory that others hold may be waited for: they hold it for a moment, and
// no signal ends this wait.
const patience = 3 * time.Second

var errHeld = errors.New("another process holds it; try again when that has ended")

// moveDir moves the new directory in temp to path, and what exists there to temp:
// both at once where the file system can. Elsewhere, as none renames over a
// directory that is not empty, there is nothing at path for a moment. What became something
// else since it was looked at is moved back.
func moveDir(temp, path string, exists bool, mayReplace func(path string) error) (old string, err error) {
	dir := filepath.Join(temp, newName)
	if exists {
		// Who holds it has made sure that it is still there, and writes in it.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		unlock, err := Lock(ctx, path)
		if errors.Is(err, context.DeadlineExceeded) {
			err = errHeld
		}
		if err != nil {
			return "", fmt.Errorf("cannot be replaced: %w", reason(err))
		}
		defer unlock()
		if exchange(dir, path) == nil {
			err := mayReplace(dir)
			if err == nil {
				return dir, nil
			}
			if exchange(dir, path) != nil {
				return dir, fmt.Errorf("%w; what was there is now %s", reason(err), dir)
			}
			return "", reason(err)
		}
		old = filepath.Join(temp, oldName)
		if err := os.Rename(path, old); err != nil {
			return "", reason(err)
		}
		if err := mayReplace(old); err != nil {
			if os.Rename(old, path) != nil {
				return old, fmt.Errorf("%w; what was there is now %s", reason(err), old)
			}
			return "", reason(err)
		}
	}
	if err := os.Rename(dir, path); err != nil {
		if exists && os.Rename(old, path) != nil {
			return old, fmt.Errorf("%w; what was there is now %s", reason(err), old)
		}
		return "", reason(err)
	}
	return old, nil
}

// Displaced returns the path of what was at path, if a process was killed in the moment
// in which [WriteDir] had moved that away and not yet put the new directory in its place,
// or "".
func Displaced(path string) string {
	path = resolve(path)
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

// checkDir reports whether there is something at path, or why that may not be
// replaced.
func checkDir(path string, mayReplace func(path string) error) (exists bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, reason(err)
	case info.Mode()&fs.ModeSymlink != 0: // resolve would have followed any other
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
	return fmt.Sprintf("%s%08x", tempPrefix(path), rand.Uint32())
}

// tempPrefix is what temporary names begin with. Of a name that is as long as a file system
// allows, an end is left out.
func tempPrefix(path string) string {
	const longest = 255 // bytes
	dir, name := filepath.Split(path)
	if most := longest - len(".tmp01234567"); len(name) > most {
		h := fnv.New32a()
		h.Write([]byte(name))
		name = fmt.Sprintf("%s%08x", strings.ToValidUTF8(name[:most-8], ""), h.Sum32())
	}
	return dir + name + ".tmp"
}

// reason returns an error of the operating system without the file name in it, which
// may be a temporary one.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// An UnsyncedError reports that an output is in its place, but may not be there after a loss
// of power.
type UnsyncedError struct {
	Path string
	Err  error
}

func (e *UnsyncedError) Error() string {
	return fmt.Sprintf("%s: is written, but a loss of power may undo that: %v", e.Path, e.Err)
}
func (e *UnsyncedError) Unwrap() error { return e.Err }

// A KeptError reports that a directory is whole but could not be given its name.
type KeptError struct {
	Path string // that name
	Kept string // the name that it has
	Err  error  // why
}

func (e *KeptError) Error() string {
	return fmt.Sprintf("%s: %v; the new one is kept as %s", e.Path, e.Err, e.Kept)
}
func (e *KeptError) Unwrap() error { return e.Err }

// InPlace reports whether an output is in its place in spite of an error of writing it.
func InPlace(err error) bool {
	_, onlyLeft := err.(*LeftoverError)
	_, unsynced := errors.AsType[*UnsyncedError](err)
	return onlyLeft || unsynced
}

// syncPlace flushes the name of an output to disk, which has just been given to it.
func syncPlace(path string) error {
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return &UnsyncedError{path, err}
	}
	return nil
}

// SyncDir flushes the names of the files in a directory to disk, on systems that can, so
// that they survive a loss of power.
func SyncDir(name string) error {
	dir, err := os.Open(name)
	if err == nil {
		defer dir.Close()
		err = dir.Sync()
	}
	// A directory may be written, but not read, and Windows flushes none. Some file
	// systems flush no names either.
	if err == nil || errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return fmt.Errorf("the directory can't be flushed to disk: %w", reason(err))
}
