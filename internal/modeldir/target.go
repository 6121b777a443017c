package modeldir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
)

// A Target is the directory that a model, or the checkpoints of its training, are written to. It decides what they may
// replace. Check returns an error before hours of work; Begin creates a temporary directory, Temp; Commit renames it.
type Target struct {
	Name    string // the path as the caller gave it
	Replace bool   // replace a model without labels and stop words, or an empty directory
	Resume  bool   // the training will resume from the checkpoint in the directory, if there is one

	// Checkpoint is the checkpoint in the directory that this training wrote or resumed from. Only that checkpoint is
	// replaced, unless Replace is set.
	Checkpoint Checkpoint

	*atomicfile.Dir
	Committed bool // a model was committed: it is in place, or kept under its temporary name
}

// A Checkpoint is the content hash and the number of epochs of a checkpoint; Epoch is 0 for none.
type Checkpoint struct {
	Hash  string
	Epoch int
}

// NewTarget returns the target at path.
func NewTarget(path string, replace bool) *Target {
	t := &Target{Name: path, Replace: replace}
	t.Dir = atomicfile.NewDir(path, t.mayReplace)
	return t
}

// Check returns an [*atomicfile.OutputError] unless a model can be written, or a training can resume.
func (t *Target) Check() error {
	switch {
	case Contains(t.Name):
		return &atomicfile.OutputError{Path: t.Name, Err: ErrContained}
	case t.Name == "-":
		return &atomicfile.OutputError{Path: t.Name, Err: errors.New("a model is a directory and can't be written to a stream")}
	}
	return t.Dir.Check()
}

// Exists reports whether something exists at the path.
func (t *Target) Exists() bool {
	_, err := os.Lstat(t.Path)
	return !errors.Is(err, os.ErrNotExist)
}

// Commit gives the directory its name. A model that can't be renamed is kept under its temporary name, which the error
// states. A checkpoint that can't be renamed is removed.
func (t *Target) Commit(c Checkpoint) error {
	placed, err := t.Dir.Commit(c.Epoch == 0)
	if placed {
		t.Checkpoint = c
	}
	_, missing := os.Lstat(t.Temp)
	t.Committed = c.Epoch == 0 && (placed || missing == nil)
	return err
}

// Left returns the epoch of the checkpoint of this training, if it is still in the directory, or 0.
func (t *Target) Left() (epoch int) {
	if hash, err := checkpointHash(t.Path); err != nil || hash != t.Checkpoint.Hash {
		return 0
	}
	return t.Checkpoint.Epoch
}

// ErrCheckpoint reports an existing checkpoint that may not be replaced. It wraps [atomicfile.ErrExists].
var ErrCheckpoint = fmt.Errorf("%w, a checkpoint", atomicfile.ErrExists)

// mayReplace returns an error unless the directory at path, which exists, may be replaced.
func (t *Target) mayReplace(path string) error {
	switch {
	case t.Replace:
	case t.Checkpoint.Epoch > 0:
		hash, err := checkpointHash(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return atomicfile.InFile(Progress, err)
		}
		if hash != t.Checkpoint.Hash {
			return errors.New("is not the checkpoint of this training, so it is not replaced")
		}
	case IsCheckpoint(path) && !t.Resume:
		return ErrCheckpoint
	case !t.Resume:
		return atomicfile.ErrExists
	}
	return checkReplaceable(path)
}

// checkpointHash returns the content hash that the checkpoint in dir stores. It verifies no file.
func checkpointHash(dir string) (string, error) {
	var progress struct{ Own string }
	data, err := input.ReadRegular(filepath.Join(dir, Progress), MaxInfo)
	if err == nil {
		err = json.Unmarshal(data, &progress)
	}
	return progress.Own, err
}

// checkReplaceable returns an error unless dir is an empty directory, or a model without labels, stop words and other
// files.
func checkReplaceable(dir string) error {
	entries, err := readDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	var info struct{ Format int }
	data, err := input.ReadRegular(filepath.Join(dir, Info), MaxInfo)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return atomicfile.InFile(Info, err)
	}
	if json.Unmarshal(data, &info) != nil || info.Format < 1 {
		return errors.New("is neither empty nor a model, so it is not replaced")
	}
	known := []string{Info, Words, Texts, Codes, Dictionary, Mean, Themes, Intrusion}
	for _, e := range entries {
		switch {
		case e.Name() == Labels:
			return fmt.Errorf("is not replaced, because it has labels: move its %s away, or write to another directory", Labels)
		case e.Name() == StopWords:
			return fmt.Errorf("is not replaced, because it has stop words: move its %s away, or write to another directory", StopWords)
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

// stateFiles lists the files of a checkpoint's state: [Progress] and the matrices of package checkpoint.
var stateFiles = []string{filepath.Base(Progress), "H.npy", "S.npy", "Q.npy", "G.npy", "B.npy", "v.npy"}

// checkState returns an error if dir has other files than a checkpoint's state.
func checkState(dir string) error {
	entries, err := readDir(dir)
	for _, e := range entries {
		if !slices.Contains(stateFiles, e.Name()) || !e.Type().IsRegular() {
			return errOther(e)
		}
	}
	return err
}

// readDir returns the entries of dir without the files in which macOS stores the settings of a folder and the
// attributes of a file. macOS creates them in any folder, at any time.
func readDir(dir string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	return slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return e.Type().IsRegular() && (e.Name() == ".DS_Store" || strings.HasPrefix(e.Name(), "._"))
	}), err
}

func errOther(e os.DirEntry) error {
	return fmt.Errorf("is not replaced, because it has %q, which is not a file of a model: move it away", e.Name())
}
