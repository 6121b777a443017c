package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"time"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A Checkpoint lets a training outlive its process. With one, a training whose
// context is cancelled finishes its epoch and saves it before it returns the context's
// error.
type Checkpoint struct {
	Dir     string        // of the model
	Every   time.Duration // the least time from one checkpoint to the next; 0 to write none
	Resume  bool          // go on with the checkpoint in Dir, if there is one
	Replace bool          // what is at Dir may be replaced, if it is a model

	// Epoch is set by [Fit]: that of the checkpoint which is in Dir, 0 if none is.
	Epoch int

	seal string // of that checkpoint
}

// MayReplace returns an error unless what is at path, which is Dir, may be replaced by the next
// checkpoint or by what the training comes to: a model if Replace says so, or else nothing but
// the checkpoint that is there since this training wrote it, or went on with it.
func (c *Checkpoint) MayReplace(path string) error {
	if c.Replace || c.seal == "" {
		return model.MayReplace(c.Replace)(path)
	}
	if seal, err := model.Seal(path); err != nil || seal != c.seal {
		return errors.New("is not the checkpoint that this training left there, so it is not replaced; --force replaces a model")
	}
	return model.MayReplace(true)(path)
}

// CheckpointError is the type of all errors of checkpoints that can't be resumed. They
// name the directory.
type CheckpointError struct{ Err error }

func (e *CheckpointError) Error() string { return e.Err.Error() }
func (e *CheckpointError) Unwrap() error { return e.Err }

// interruptible returns the context of epochs, until stop. With checkpoints, an epoch
// is finished when ctx is cancelled, for there is no way back from its middle.
func (f *fit) interruptible(ctx context.Context) (epochs context.Context, stop func()) {
	f.interrupted, f.saved = ctx, time.Now()
	if f.options.Checkpoint == nil || f.options.Checkpoint.Every <= 0 {
		return ctx, func() {}
	}
	said := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		f.options.note("interrupted: a checkpoint is written after this epoch; interrupt again to stop without")
		close(said)
	})
	return context.WithoutCancel(ctx), func() {
		if !cancel() {
			<-said
		}
	}
}

func (o *Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

// checkpoint saves the training after an epoch, if it is time, or if it ends here.
func (f *fit) checkpoint() error {
	c := f.options.Checkpoint
	last := finished(&f.model.Info.Training)
	if c == nil || c.Every <= 0 || last && f.model.Codes != nil { // nothing is left to do
		return nil
	}
	stop := f.interrupted.Err()
	if stop == nil && !last && time.Since(f.saved) < c.Every {
		return nil
	}
	err := f.save()
	f.saved = time.Now() // or tried: the next is due as long after this
	if err != nil && stop == nil {
		f.options.note("warning: no checkpoint after epoch %d: %v", len(f.model.Info.Training.Epochs), err)
		return nil
	}
	return errors.Join(err, stop)
}

func (f *fit) save() error {
	if err := f.fetch(); err != nil {
		return err
	}
	defer func() { // the trainer has them
		if f.model.Dictionary.Atoms = nil; f.model.Codes != nil {
			f.model.Codes.CSR = vectors.CSR{}
		}
	}()
	c := f.options.Checkpoint
	seal, err := f.model.SaveCheckpoint(c.Dir, c.MayReplace, model.State{
		Batch: f.batch, Vectors: f.hashes().vectors, Words: f.hashes().words,
		Each: func(m model.Matrix, read func(part []float32) error) error {
			return f.trainer.Exchange(backend.Save, m, read)
		},
	})
	if atomicfile.InPlace(err) {
		f.options.note("warning: %v", err)
	} else if err != nil {
		return err
	}
	c.Epoch, c.seal = len(f.model.Info.Training.Epochs), seal
	return nil
}

// resume restores the training from its checkpoint, if there is one and it is of
// this training.
func (f *fit) resume() error {
	c := f.options.Checkpoint
	if c == nil {
		return nil
	}
	if c.Epoch, c.seal = 0, ""; !c.Resume {
		return nil
	}
	if _, err := os.Lstat(c.Dir); errors.Is(err, fs.ErrNotExist) {
		if old := model.Displaced(c.Dir); old != "" {
			return &CheckpointError{fmt.Errorf("%s: is not there, but what was is %s, left by a process that was killed while it replaced it; move that back", c.Dir, old)}
		}
		f.options.note("there is no %s to go on with: training starts anew", c.Dir)
		return nil
	}
	saved, err := model.OpenCheckpoint(c.Dir)
	if err != nil {
		return &CheckpointError{err}
	}
	err = sameTraining(saved.Info.Training, f.model.Info.Training)
	switch {
	case err != nil:
	case saved.Words != f.hashes().words:
		err = errors.New("the words are others")
	case saved.Vectors != f.hashes().vectors:
		err = errors.New("the vectors are others")
	}
	if err != nil {
		return &CheckpointError{fmt.Errorf("%s: the checkpoint is of another training: %w", c.Dir, err)}
	}
	var codes *vectors.CSR
	if saved.Codes != nil {
		codes = &saved.Codes.CSR
	}
	if err := f.trainer.Restore(saved.Dictionary.Atoms, codes); err != nil {
		return err
	}
	for _, m := range saved.Info.Matrices() {
		err := saved.ReadMatrix(m, func(fill func([]float32) error) error { return f.trainer.Exchange(backend.Restore, m, fill) })
		if err != nil {
			return &CheckpointError{err}
		}
	}
	f.model.Info.Training.Epochs, f.batch, c.Epoch, c.seal = saved.Info.Training.Epochs, saved.Batch, len(saved.Info.Training.Epochs), saved.Seal
	f.options.note("resuming after epoch %d", c.Epoch)
	if was, is := saved.Info.Training.Device, f.trainer.Device(); was != is {
		f.options.note("warning: it was trained on %s: on %s the last bits differ", was, is)
	}
	return nil
}

// hashes are the SHA-256 of what is trained on, in hexadecimal: of words each with a newline.
type hashes struct{ vectors, words string }

// hash returns them.
func (f *fit) hash() hashes {
	words := sha256.New()
	for _, w := range f.words {
		io.WriteString(words, w)
		words.Write([]byte{'\n'})
	}
	return hashes{vectors.SHA256(f.x), hex.EncodeToString(words.Sum(nil))}
}

// sameTraining returns an error unless two trainings are of the same data and
// hyperparameters.
func sameTraining(was, is model.Training) error {
	if was.Recipe.String() != is.Recipe.String() {
		return fmt.Errorf("recipe: %v then, %v now", was.Recipe, is.Recipe)
	}
	// The file may have been renamed.
	was.Input.Name, is.Input.Name = "", ""
	for _, part := range []struct {
		what    string
		was, is any
	}{{"the input's ", was.Input, is.Input}, {"", was.Recipe, is.Recipe}, {"", was.Recipe.Base(), is.Recipe.Base()}} {
		a, b := reflect.ValueOf(part.was), reflect.ValueOf(part.is)
		for i := range a.NumField() {
			if x, y := a.Field(i).Interface(), b.Field(i).Interface(); x != y && !a.Type().Field(i).Anonymous {
				name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
				return fmt.Errorf("%s%s: %v then, %v now", part.what, strings.ReplaceAll(name, "_", "-"), x, y)
			}
		}
	}
	return nil
}
