// Package modeldir defines the directory of a model: its files, the [Target] that a new model is written to, and how to
// write labels and scores beside a model.
//
//	id, err := modeldir.Identify("model")
//	err = id.WriteBeside(ctx, func() error { return labels.Save("model/labels.json") })
package modeldir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
)

// The files of a model. A directory with labels or stop words is never replaced, because they are the user's work.
const (
	Info       = "model.json"
	Words      = "words.txt"
	Texts      = "texts.jsonl"
	Codes      = "codes.npz"
	Dictionary = "dictionary.npy"
	Mean       = "mean.npy"
	Themes     = "themes.npy"
	Intrusion  = "intrusion.json"
	Labels     = "labels.json"
	StopWords  = "stop_words.txt"

	State    = "state" // the directory of a checkpoint's state
	Progress = State + "/state.json"
)

// MaxInfo is the largest size of model.json in bytes. For a shard of a billion words, this file contains a number per
// block.
const MaxInfo = 1 << 26

// IsCheckpoint reports whether the model at path is a checkpoint of a training.
func IsCheckpoint(path string) bool {
	_, err := os.Lstat(filepath.Join(path, State))
	return err == nil
}

// Contains reports whether path is in the directory of a model. The file may not exist yet.
func Contains(path string) bool {
	dir := filepath.Dir(atomicfile.Resolve(path))
	if filepath.Base(dir) == State {
		dir = filepath.Dir(dir)
	}
	_, err := os.Lstat(filepath.Join(dir, Info))
	return err == nil
}

// ErrContained reports an output file that would be in the directory of a model ([Contains]).
var ErrContained = errors.New("is in the directory of a model, which holds only the model's own files")

// LabelsPath returns the path of the labels of the model at path. The file may not exist yet. It returns an
// error if path isn't a model, or if it is a checkpoint, which the next checkpoint replaces. An error of the
// system is a [*fs.PathError].
func LabelsPath(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		_, err = os.Stat(filepath.Join(path, Info))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s: labels are stored in the directory of a model, which this isn't", path)
	}
	if IsCheckpoint(path) {
		return "", fmt.Errorf("%s: is a checkpoint, whose dimensions change until training ends: label the trained model", path)
	}
	return filepath.Join(path, Labels), nil
}

// An Identity identifies the model in a directory, to detect its replacement by another process.
type Identity struct {
	dir  string
	info fs.FileInfo // of model.json, which is never modified in place
}

// Identify returns the identity of the model in dir. Call it before the model is opened.
func Identify(dir string) (Identity, error) {
	info, err := os.Stat(filepath.Join(dir, Info))
	return Identity{dir, info}, err
}

// Check returns an error if the model was replaced or removed since [Identify].
func (i Identity) Check() error {
	now, err := Identify(i.dir)
	if err == nil && os.SameFile(now.info, i.info) && now.info.ModTime().Equal(i.info.ModTime()) {
		return nil
	}
	return fmt.Errorf("%s has been replaced since it was opened: open it again", i.dir)
}

// WriteBeside calls write, which writes a file into the model's directory, if [Identity.Check] succeeds. A
// lock prevents the replacement of the model meanwhile, except on Windows, which has no locks of directories.
func (i Identity) WriteBeside(ctx context.Context, write func() error) error {
	unlock, err := atomicfile.Lock(ctx, i.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := i.Check(); err != nil {
		return err
	}
	return write()
}

// ReadStable returns the result of read, which reads several files of the directory at path.
// It calls read again if another process replaced the directory meanwhile.
func ReadStable[T any](path string, read func(dir *os.File) (T, error)) (value T, err error) {
	const tries = 10
	for range tries {
		dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // while it is open, no other directory gets its inode number
		if err != nil {
			return value, err
		}
		before, err := dir.Stat()
		value, failed := read(dir)
		after, gone := os.Stat(path)
		dir.Close()
		if err != nil || gone != nil || os.SameFile(before, after) {
			return value, failed
		}
	}
	return value, fmt.Errorf("has been replaced %d times while it was read", tries)
}

// ReadFile opens a file of the open directory and calls read with it. Errors name the file.
func ReadFile(dir *os.File, name string, read func(f *input.File) error) error {
	f, err := input.OpenAt(dir, name)
	if err != nil {
		return atomicfile.InFile(name, err)
	}
	defer f.Close()
	return atomicfile.InFile(name, read(f))
}
