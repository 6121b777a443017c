// Package modeldir defines the directories of models: their files, how another model replaces them,
// and what may be written beside it.
package modeldir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
)

// The files of a model. Labels are the user's: a directory that has them is never replaced.
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

	State    = "state" // the directory of a checkpoint's state
	Progress = State + "/state.json"
)

// MaxInfo bounds the size of model.json. That of a shard of a billion words has a number for each
// of its blocks.
const MaxInfo = 1 << 26

// IsCheckpoint reports whether the model at path is a checkpoint of a training.
func IsCheckpoint(path string) bool {
	_, err := os.Lstat(filepath.Join(path, State))
	return err == nil
}

// Contains reports whether the file at path, which need not exist, is in the directory of a model.
func Contains(path string) bool {
	dir := filepath.Dir(atomicfile.Resolve(path))
	if filepath.Base(dir) == State {
		dir = filepath.Dir(dir)
	}
	_, err := os.Lstat(filepath.Join(dir, Info))
	return err == nil
}

// ErrContained refuses to write another file where [Contains] is true.
var ErrContained = errors.New("is in the directory of a model, which holds only the model's own files")

// LabelsPath returns the path of the labels of the model at path, which need not exist. A
// .safetensors file has no place for them, and the directory of a checkpoint is replaced with the
// next one. An error of the system is a [*fs.PathError].
func LabelsPath(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil || !info.IsDir() || !Contains(filepath.Join(path, Info)) {
		return "", fmt.Errorf("%s: labels are kept in the directory of a model, and this is none", path)
	}
	if IsCheckpoint(path) {
		return "", fmt.Errorf("%s: is a checkpoint, and its dimensions will not be those of the trained model: label that", path)
	}
	return filepath.Join(path, Labels), nil
}

// CheckSave returns nil if a model can be written to the directory dir, or else an
// [*atomicfile.OutputError]. To find out whether the file system can replace what is there, it
// renames that and renames it back.
func CheckSave(dir string, mayReplace func(path string) error) error {
	if Contains(dir) {
		return &atomicfile.OutputError{Path: dir, Err: ErrContained}
	}
	if dir == "-" {
		return &atomicfile.OutputError{Path: dir, Err: errors.New("a model is a directory, and not a stream")}
	}
	return atomicfile.CheckDir(dir, mayReplace)
}

// ErrCheckpoint reports a checkpoint that exists and was not to be replaced. It wraps
// [atomicfile.ErrExists].
var ErrCheckpoint = fmt.Errorf("%w, a checkpoint", atomicfile.ErrExists)

// MayReplace returns a function that decides whether the directory at path may be replaced: with
// force a model or an empty directory, without it nothing.
func MayReplace(force bool) func(path string) error {
	if force {
		return checkReplaceable
	}
	return func(path string) error {
		if IsCheckpoint(path) {
			return ErrCheckpoint
		}
		return atomicfile.ErrExists
	}
}

// checkReplaceable returns an error unless dir is an empty directory, or a model without other
// files.
func checkReplaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	var info struct{ Format int }
	data, _ := input.ReadRegular(filepath.Join(dir, Info), MaxInfo)
	if json.Unmarshal(data, &info) != nil || info.Format < 1 {
		return errors.New("is neither empty nor a model, so it is not replaced")
	}
	known := []string{Info, Words, Texts, Codes, Dictionary, Mean, Themes, Intrusion}
	for _, e := range entries {
		switch {
		case e.Name() == Labels:
			return fmt.Errorf("is not replaced, for people gave its dimensions labels: move its %s away, or write to another directory", Labels)
		case e.Name() == State && e.IsDir():
			err = checkState(filepath.Join(dir, State))
		case !slices.Contains(known, e.Name()) || !e.Type().IsRegular():
			err = errOther(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stateFiles are the files of a checkpoint's state: [Progress] and the matrices of package checkpoint.
var stateFiles = []string{filepath.Base(Progress), "H.npy", "S.npy", "Q.npy", "G.npy", "B.npy", "v.npy"}

// checkState returns an error if dir has files that are not those of a checkpoint's state.
func checkState(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains(stateFiles, e.Name()) || !e.Type().IsRegular() {
			return errOther(e)
		}
	}
	return err
}

func errOther(e os.DirEntry) error {
	return fmt.Errorf("is not replaced, for it holds %q, which is no file of a model; move it away", e.Name())
}

// An Identity identifies the model in a directory, which another may replace.
type Identity struct {
	dir  string
	info fs.FileInfo // of model.json, which nothing changes in place
}

// Identify returns the identity of the model in dir. Call it before the model is opened.
func Identify(dir string) (Identity, error) {
	info, err := os.Stat(filepath.Join(dir, Info))
	return Identity{dir, info}, err
}

// Check returns an error unless the same model is still there.
func (i Identity) Check() error {
	now, err := Identify(i.dir)
	if err == nil && os.SameFile(now.info, i.info) && now.info.ModTime().Equal(i.info.ModTime()) {
		return nil
	}
	return fmt.Errorf("%s is not the model any more that was opened: open it again", i.dir)
}

// WriteBeside calls write, which writes a file about the model beside it, if the same model is
// still there. Nobody replaces it meanwhile, except on Windows, where directories have no locks.
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

// ReadStable returns the result of read, which reads several files of the directory at path. If
// another process replaces the directory meanwhile, it reads again.
func ReadStable[T any](path string, read func() (T, error)) (value T, err error) {
	const tries = 10
	for range tries {
		dir, err := os.Open(path) // while it is open, no other directory gets its inode number
		if err != nil {
			return read()
		}
		before, err := dir.Stat()
		value, failed := read()
		after, gone := os.Stat(path)
		dir.Close()
		if err != nil || gone != nil || os.SameFile(before, after) {
			return value, failed
		}
	}
	return value, fmt.Errorf("has been replaced %d times while it was read", tries)
}

// ReadFile calls read with an open file of the directory. Its errors name the file.
func ReadFile(dir, name string, read func(f *input.File) error) error {
	f, err := input.Open(filepath.Join(dir, name))
	if err != nil {
		return InFile(name, err)
	}
	defer f.Close()
	return InFile(name, read(f))
}

// InFile returns err with the name of the file that it concerns; nil of nil.
func InFile(name string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err // the file is named once
	}
	return fmt.Errorf("%s: %w", name, err)
}
