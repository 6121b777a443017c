// Package train learns dictionaries and codes. [Fit] learns from vectors in memory. [File] learns from
// files, which may be larger than memory, and writes a model:
//
//	recipe := train.Best()
//	recipe.Atoms = 1000
//	info, err := train.File(ctx, []string{"glove.6B.300d.txt.gz"}, recipe, cpu.Device{}, "glove.model", train.FileOptions{})
//
// There are two recipes. [Best] is online dictionary learning (Mairal et al., ICML 2009) with atoms
// that are initialised from rows and regularised towards them (docs/guides/train.md). [Paper] is the
// objective and trainer of Faruqui et al. (2015), "the paper" below.
//
// # The algorithm of the recipe [Paper]
//
// X is V×L (dense vectors), A is V×K (codes), D is K×L (dictionary):
//
//	minimise Σ_i ‖x_i − a_i D‖² + λ Σ_i ‖a_i‖₁ + τ‖D‖²        (paper, Eq. 2)
//
// AdaGrad learns D, and regularised dual averaging in its AdaGrad form learns A (paper §2.3). The
// authors' program updates both after each row. An epoch of this package makes two passes instead.
// The dictionary pass updates D on small batches of rows in order. It adds each row's squared
// gradient to AdaGrad's sum separately, and uses a line search to shorten steps that overshoot. The code
// pass then updates all codes with D fixed. Both passes are matrix products. The code pass gives the
// same result in any order and for any number of workers. [overcomplete/graph.Dictionary] and
// [overcomplete/graph.Code] state the formulas. AuthorsOrder keeps the authors' order, for comparison.
//
// The number of epochs is a hyperparameter like λ: after t epochs no value of a code exceeds η√t, where η is
// the learning rate ([model.Paper.Rate]).
package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"overcomplete/internal/backend"
	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Errors of trainings. Callers test for them with errors.Is.
var (
	// ErrDiverged is returned if a metric becomes NaN or infinite.
	ErrDiverged = errors.New("training diverged")

	// ErrMemory is returned if a training or an encoder exceeds the memory of the device or of the
	// machine.
	ErrMemory = backend.ErrMemory

	// ErrIdenticalRows is returned if all training rows are equal.
	ErrIdenticalRows = errors.New("all training rows are the same vector")

	// ErrZeroCodes is returned when all codes are zero.
	ErrZeroCodes = errors.New("all codes are zero")

	// ErrCheckpoint is returned if a checkpoint can't be resumed. The message names its directory.
	ErrCheckpoint = errors.New("not a checkpoint of this training")
)

// A Device runs trainings and encodings: [overcomplete/cpu.Device] or
// [overcomplete/kernels.Device]. Its methods have internal types: other packages can wrap a Device,
// but not implement one.
type Device = backend.Device

// Options are the options of [Fit]. The zero value is useful.
type Options struct {
	Source *vectors.Source // file of the vectors, for model.json; nil for none

	// Like, if not nil, is the dictionary, K×L, of an earlier model. Its vectors must be of the same space as the new
	// vectors. The recipe "best" initialises the atoms from this dictionary and regularises them towards it, so that
	// dimensions keep their numbers and meanings.
	Like *model.Dictionary

	Checkpoint *Checkpoint // nil for none
	NoCodes    bool        // learn only the dictionary, by the recipe "best"

	to    *modeldir.Target // target of checkpoints; nil for none
	every time.Duration    // minimum time between checkpoints; 0 to write none

	// These callbacks report progress, and may be nil. Each is called
	Begin    func(i model.Info)  // before the first epoch; i has the Device and, if resumed, the Epochs of the checkpoint
	Progress func(n int)         // after a pass over n more rows, from any goroutine; an epoch of "paper" has two passes
	Epoch    func(e model.Epoch) // after each epoch
	Note     func(line string)   // with a warning or remark, from any goroutine
}

// Fit learns a model from x, V×L: a dictionary, K×L, and the codes of all rows, V×K. It sets the
// fields of r that are 0 or empty as [WithDefaults] does, and doesn't change x.
//
// Fit returns an error
//
//   - if a hyperparameter is outside its domain, or x is not valid (see [vectors.Dense.Validate]),
//   - if all training rows are equal (ErrIdenticalRows),
//   - if the device can't run the training, or has too little memory (ErrMemory),
//   - if training diverges (ErrDiverged),
//   - if the checkpoint belongs to another training (ErrCheckpoint),
//   - if ctx is cancelled: the error of ctx. The checkpoint is saved first, if o asks for one.
//
// The error is a [*LeftError] if there is a checkpoint. If training succeeds but encoding fails, or if all codes are
// zero (ErrZeroCodes), Fit returns the model beside the error. Its codes are nil if encoding failed.
func Fit(ctx context.Context, x *vectors.Dense, r model.Recipe, device Device, o Options) (*model.Model, error) {
	if err := checkRecipe(r); err != nil {
		return nil, err
	}
	if c := o.Checkpoint; c != nil {
		o.to, o.every = modeldir.NewTarget(c.Dir, c.Replace), c.Every
		o.to.Resume = c.Resume
	}
	m, err := trainingOf(r).fit(ctx, x, device, o)
	return m, o.left(nil, err)
}

// A LeftError reports that a training failed and left a checkpoint or a dictionary.
type LeftError struct {
	Err       error
	Left      string // description of the output, such as "model is a checkpoint after epoch 2"
	Resumable bool   // a checkpoint is left, and the training may succeed if it is resumed
}

func (e *LeftError) Error() string { return e.Err.Error() + "; " + e.Left }
func (e *LeftError) Unwrap() error { return e.Err }

// left returns err with a description of the output that is left. If m isn't nil and no checkpoint has all its epochs,
// left first saves the dictionary of m, in place of the checkpoint or beside an earlier model.
func (o *Options) left(m *model.Model, err error) error {
	if err == nil || o.to == nil {
		return err
	}
	zeros := errors.Is(err, ErrZeroCodes)
	epoch := o.to.Left()
	if m != nil && !zeros && !o.to.Committed && epoch < len(m.Info.Training.Epochs) {
		to, unchanged := o.to, ""
		if epoch == 0 && to.Exists() { // keep the earlier model, because it also has codes
			name := filepath.Clean(to.Name)
			if strings.HasPrefix(filepath.Base(name), ".") { // "." or "..", which the suffix would make a hidden name
				name, _ = filepath.Abs(name)
			}
			to = modeldir.NewTarget(name+".dictionary", to.Replace)
			unchanged = o.to.Name + " is unchanged, "
		}
		failed := m.SaveTo(to, nil)
		if failed == nil {
			return &LeftError{err, unchanged + to.Name + " has the dictionary; encode makes the codes", false}
		}
		err = fmt.Errorf("%w; saving the dictionary failed too: %w", err, failed)
	}
	if epoch > 0 {
		left := fmt.Sprintf("%s is a checkpoint after epoch %d", o.to.Name, epoch)
		return &LeftError{err, left, !zeros && !errors.Is(err, ErrDiverged)}
	}
	return err
}

func (o *Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}
