package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// checkpointFlags are how a training outlives its process.
type checkpointFlags struct {
	checkpoint time.Duration // between checkpoints; 0 for none
	resume     bool
}

func (f *checkpointFlags) check(given bool) error {
	if given && f.checkpoint <= 0 {
		return usagef("--checkpoint is %v, want a time such as 5m", f.checkpoint)
	}
	return nil
}

// resumable is the error of a training that was interrupted after a checkpoint.
func resumable(dir string, epoch int) error {
	return interrupted{fmt.Sprintf("%s is a checkpoint after epoch %d, with which --resume goes on", dir, epoch)}
}

// checkpoints saves a training that is under way.
type checkpoints struct {
	*trainFlags
	ctx     context.Context // the user's
	log     io.Writer
	model   *model.Model
	backend train.Resumable

	replace bool // what is at f.output
	last    time.Time
	epoch   int // of the checkpoint that is there, 0 if none
}

// context is what passes run under, until stop: with checkpoints, an epoch is
// finished when the user interrupts, for there is no way back from the middle.
func (c *checkpoints) context(p *progress) (ctx context.Context, stop func()) {
	if c.checkpoint == 0 {
		return c.ctx, func() {}
	}
	said := make(chan struct{})
	cancel := context.AfterFunc(c.ctx, func() {
		p.say("interrupted: a checkpoint is written after this epoch; interrupt again to stop without")
		close(said)
	})
	return context.WithoutCancel(c.ctx), func() {
		if !cancel() {
			<-said
		}
	}
}

// observe saves the training after an epoch, if it is time, or if it ends here.
func (c *checkpoints) observe(p train.Progress) error {
	stop := c.ctx.Err() != nil
	if c.checkpoint == 0 || p.Done || !stop && time.Since(c.last) < c.checkpoint {
		return nil
	}
	err := c.save(p)
	switch {
	case err == nil && stop:
		return resumable(c.output, len(p.Epochs))
	case err != nil && stop:
		return err
	case err != nil:
		fmt.Fprintf(c.log, "warning: no checkpoint after epoch %d: %v\n", len(p.Epochs), err)
	}
	return nil
}

func (c *checkpoints) save(p train.Progress) error {
	if err := train.Fetch(c.model, c.backend); err != nil {
		return err
	}
	c.model.Info.Epochs = p.Epochs
	defer func() { c.model.Codes.CSR, c.model.Dictionary.Atoms = vectors.CSR{}, nil }() // the backend has them
	if err := c.model.SaveCheckpoint(c.output, c.replace, model.State{Batch: p.Batch, Each: c.backend.SaveMatrix}); err != nil {
		return err
	}
	c.replace, c.epoch, c.last = true, len(p.Epochs), time.Now()
	return nil
}

// failed says what is left of a training that failed.
func (c *checkpoints) failed(err error) error {
	_, said := errors.AsType[interrupted](err)
	switch {
	case c.epoch == 0 || said || errors.Is(err, train.ErrDiverged):
		return err
	case errors.Is(err, context.Canceled):
		return resumable(c.output, c.epoch)
	}
	return fmt.Errorf("%w; %s is a checkpoint after epoch %d, with which --resume goes on", err, c.output, c.epoch)
}

// resumed restores the training from the checkpoint in MODEL, if there is one and
// it is of this training.
func (c *checkpoints) resumed() (p train.Progress, err error) {
	if !c.resume {
		return p, nil
	}
	if _, err := os.Lstat(c.output); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(c.log, "there is no %s to go on with: training starts anew\n", c.output)
		return p, nil
	}
	saved, batch, err := model.OpenCheckpoint(c.output)
	if err != nil {
		return p, usageError{err}
	}
	if err := c.sameTraining(saved); err != nil {
		return p, err
	}
	if err := c.backend.Restore(saved.Dictionary.Atoms, &saved.Codes.CSR); err != nil {
		return p, err
	}
	for _, m := range []model.Matrix{model.SquaredGradients, model.GradientSums, model.SquareSums} {
		err := model.ReadMatrix(c.output, saved, m, func(read func([]float32) error) error {
			return c.backend.RestoreMatrix(m, read)
		})
		if err != nil {
			return p, usageError{err}
		}
	}
	c.replace, c.epoch = true, len(saved.Info.Epochs)
	fmt.Fprintf(c.log, "resuming after epoch %d\n", c.epoch)
	if was, is := saved.Info.Device, c.model.Info.Device; was != is {
		fmt.Fprintf(c.log, "warning: it was trained on %s: on %s the last bits differ\n", was, is)
	}
	return train.Progress{Epochs: saved.Info.Epochs, Batch: batch}, nil
}

// sameTraining refuses a checkpoint of other data or hyperparameters.
func (c *checkpoints) sameTraining(saved *model.Model) error {
	was, is := saved.Info.Training, c.model.Info.Training
	for _, v := range []struct {
		name    string
		was, is any
	}{
		{"the input's SHA-256", saved.Info.Input.SHA256, c.model.Info.Input.SHA256},
		{"the word list's SHA-256", saved.Info.Input.WordsSHA256, c.model.Info.Input.WordsSHA256},
		{"the number of words", saved.Info.Input.Words, c.model.Info.Input.Words},
		{"the vectors' length", saved.Info.Input.Dim, c.model.Info.Input.Dim},
		{"--method", was.Method, is.Method},
		{"--algorithm", was.Algorithm, is.Algorithm},
		{"-k", was.Atoms, is.Atoms},
		{"--lambda", was.Lambda, is.Lambda},
		{"--tau", was.Tau, is.Tau},
		{"--rate", was.Rate, is.Rate},
		{"--loss", was.Loss, is.Loss},
		{"--huber-delta", was.HuberDelta, is.HuberDelta},
		{"--state", was.State, is.State},
		{"--epochs", was.Epochs, is.Epochs},
		{"--stop", was.Stop, is.Stop},
		{"--dictionary-steps", was.DictionarySteps, is.DictionarySteps},
		{"--center", was.Center, is.Center},
		{"--seed", was.Seed, is.Seed},
	} {
		if v.was != v.is {
			return usagef("%s: the checkpoint is of another training: %s was %v and is %v", c.output, v.name, v.was, v.is)
		}
	}
	if was != is {
		return usagef("%s: the checkpoint is of a training with %+v, not %+v", c.output, was, is)
	}
	if !slices.Equal(saved.Codes.Words, c.model.Codes.Words) {
		return usagef("%s: the checkpoint is of other words", c.output)
	}
	return nil
}
