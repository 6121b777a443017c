package train

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"overcomplete/internal/checkpoint"
	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A Checkpoint makes a training resumable. If its context is cancelled, [Fit] finishes the epoch and
// saves a checkpoint before it returns the context's error.
type Checkpoint struct {
	Dir     string        // directory of the model
	Every   time.Duration // minimum time between checkpoints; 0 to write none
	Resume  bool          // resume from the checkpoint in Dir, if there is one
	Replace bool          // replace a model at Dir
}

// checkpointError wraps an error so that it matches [ErrCheckpoint].
type checkpointError struct{ error }

func (e checkpointError) Unwrap() error        { return e.error }
func (e checkpointError) Is(target error) bool { return target == ErrCheckpoint }

// epochContext returns the context in which epochs run; the caller must call stop. With checkpoints,
// an epoch continues when ctx is cancelled, because only complete epochs can be saved.
func (f *fit) epochContext(ctx context.Context) (epochs context.Context, stop func()) {
	f.caller, f.saved = ctx, time.Now()
	if f.options.every <= 0 {
		return ctx, func() {}
	}
	noted := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(noted)
		f.options.note("interrupted: a checkpoint is written after this epoch; interrupt again to stop without one")
	})
	return context.WithoutCancel(ctx), func() {
		if !cancel() {
			<-noted
		}
	}
}

// saveIfDue saves a checkpoint after an epoch if one is due or the caller's context is cancelled.
func (f *fit) saveIfDue() error {
	last := f.finished()
	if f.options.every <= 0 || last && f.model.Codes != nil { // the model itself is saved next
		return nil
	}
	cancelled := f.caller.Err()
	if cancelled == nil && !last && time.Since(f.saved) < f.options.every {
		return nil
	}
	err := f.save()
	f.saved = time.Now() // also after a failure, so that the next attempt is not immediate
	if err != nil {
		f.options.note("warning: checkpoint after epoch %d: %v", len(f.model.Info.Training.Epochs), err)
	}
	return cancelled
}

func (f *fit) save() error {
	if err := f.fetch(); err != nil {
		return err
	}
	defer func() { // free these copies; the trainer stores the originals
		f.model.Dictionary.Atoms = nil
		if f.model.Codes != nil {
			f.model.Codes.CSR = vectors.CSR{}
		}
	}()
	state := f.hashes()
	state.Batch = f.batch
	return checkpoint.Save(f.model, f.options.to, state, f.trainer.SaveState)
}

// resume restores the training from its checkpoint, if one exists. It returns an error if the
// checkpoint belongs to another training.
func (f *fit) resume() error {
	to := f.options.to
	if to == nil || !to.Resume {
		return nil
	}
	to.Resume = false // from now on, only this checkpoint may be replaced
	if !to.Exists() {
		if old := to.Displaced(); old != "" {
			return checkpointError{fmt.Errorf("%s: the checkpoint is missing, because a process was killed while replacing it; rename %s to %[1]s", to.Name, old)}
		}
		f.options.note("no checkpoint at %s: training starts from the beginning", to.Name)
		return nil
	}
	saved, err := checkpoint.Open(to.Name)
	if err != nil {
		return checkpointError{err}
	}
	err = sameTraining(saved.Info.Training, f.model.Info.Training)
	switch {
	case err != nil:
	case saved.IDs != f.hashes().IDs:
		err = errors.New("the words differ")
	case saved.Vectors != f.hashes().Vectors:
		err = errors.New("the vectors differ")
	}
	if err != nil {
		return checkpointError{fmt.Errorf("%s: the checkpoint belongs to another training: %w", to.Name, err)}
	}
	if err := f.trainer.restore(saved.Model); err != nil {
		return err
	}
	if err := saved.Restore(f.trainer.LoadState); err != nil {
		return checkpointError{err}
	}
	f.model.Info.Training.Epochs, f.batch = saved.Info.Training.Epochs, saved.Batch
	to.Checkpoint = modeldir.Checkpoint{Hash: saved.Hash, Epoch: len(saved.Info.Training.Epochs)}
	f.options.note("resuming after epoch %d", to.Checkpoint.Epoch)
	if was, is := saved.Info.Training.Device, f.trainer.Device(); was != is {
		f.options.note("warning: the device differs from the checkpoint's, so the last bits will differ (got %s, want %s)", is, was)
	}
	return nil
}

func (f *fit) hashRows() checkpoint.State {
	words := sha256.New()
	for _, w := range f.ids {
		fmt.Fprintln(words, w)
	}
	return checkpoint.State{Vectors: vectors.SHA256(f.x), IDs: hex.EncodeToString(words.Sum(nil))}
}

// sameTraining returns an error unless two trainings have the same input and recipe. The names of the input's files may
// differ.
func sameTraining(was, is model.Training) error {
	if was.Recipe.String() != is.Recipe.String() {
		return fmt.Errorf("recipe (got %v, want %v)", is.Recipe, was.Recipe)
	}
	was.Input.Name, is.Input.Name = "", ""
	was.Input.Files, is.Input.Files = nil, nil // SHA256 covers all files
	was.Input.FileCount, is.Input.FileCount = 0, 0
	return cmp.Or(sameFields("the input's ", was.Input, is.Input), sameFields("", was.Recipe, is.Recipe))
}

// sameFields returns an error for the first field in which two structs of one type differ.
func sameFields(prefix string, was, is any) error {
	a, b := reflect.ValueOf(was), reflect.ValueOf(is)
	for _, field := range reflect.VisibleFields(a.Type()) {
		x, y := a.FieldByIndex(field.Index).Interface(), b.FieldByIndex(field.Index).Interface()
		if !field.Anonymous && !reflect.DeepEqual(x, y) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			return fmt.Errorf("%s%s (got %v, want %v)", prefix, strings.ReplaceAll(name, "_", "-"), y, x)
		}
	}
	return nil
}
