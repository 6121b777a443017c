// Package train learns dictionaries and codes. [Fit] learns from vectors in memory, and [File] from
// a file, which may be larger than memory:
//
//	recipe := train.Best()
//	recipe.Atoms = 1000
//	result, err := train.File(ctx, []string{"glove.6B.300d.txt.gz"}, recipe, cpu.Device{}, "glove.model", train.FileOptions{})
//
// There are two recipes. [Best] is online dictionary learning (Mairal et al., ICML 2009)
// initialised from words: docs/guides/train.md says why. [Paper] is the paper's objective and trainer.
//
// # The algorithm of the recipe paper
//
// X is V×L (dense vectors), A is V×K (codes), D is K×L (dictionary):
//
//	minimise Σ_i ‖x_i − a_i D‖² + λ Σ_i ‖a_i‖₁ + τ‖D‖²        (paper, Eq. 2)
//
// AdaGrad learns D, and regularised dual averaging in its AdaGrad form learns A (paper §2.3). The
// authors' program visits one word after the other and updates both each time. Here
// an epoch is two passes instead: the dictionary pass updates D on small batches of
// words in order, with each word's squared gradient added to AdaGrad's sum as if it had come alone
// and a line search against overshooting; the code pass then renews all codes with D fixed. Both
// are matrix products, and the second takes any order and any number of workers. The formulas are
// with the graphs: [overcomplete/graph.Dictionary] and [overcomplete/graph.Code].
// AuthorsOrder keeps the authors' order, for comparison.
//
// The number of epochs is a hyperparameter like λ: a code cannot exceed η√t after t epochs, and τ
// is tiny, so that D grows slowly.
package train

import (
	"context"
	"errors"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Errors of trainings, which may be wrapped.
var (
	// ErrDiverged is returned when a metric is no longer a finite number.
	ErrDiverged = errors.New("training diverged")

	// ErrMemory is returned when a training or an encoder does not fit into the memory of a device
	// or of the machine.
	ErrMemory = backend.ErrMemory

	// ErrAllSame is returned for training rows that are all the same, or zero.
	ErrAllSame = errors.New("the vectors to learn from are all the same, or zero")

	// ErrNothingActive is returned when all codes are zero.
	ErrNothingActive = errors.New("all codes are zero")

	// ErrCheckpoint is returned for a checkpoint that can't be resumed. The error names the
	// directory.
	ErrCheckpoint = errors.New("not a checkpoint of this training")
)

// A Device runs trainings and encodings: [overcomplete/cpu.Device] or
// [overcomplete/kernels.Device]. Its methods have internal types, so that other packages can wrap
// these two, as an interface value, but not implement a third.
type Device = backend.Device

// Options of [Fit]. The zero value is useful.
type Options struct {
	Source *vectors.Source // file of the vectors, for model.json; nil for none

	// Loss is a loss of the program's own, under the name in [model.Paper]. It is nil for the
	// losses of package graph.
	Loss graph.Loss

	// Like, if not nil, is the dictionary of another model whose dimensions the new one has, in
	// their order, for new vectors of the same space: the recipe "best" initialises atoms from
	// its atoms and regularises them towards these. It must have the L of the vectors, and K atoms.
	Like *model.Dictionary

	Checkpoint *Checkpoint // nil for none
	NoCodes    bool        // learn only the dictionary, by the recipe "best"

	// These functions follow the training, and may be nil.
	Begin func(i model.Info)  // before the first epoch, with the Device and the Epochs of a checkpoint
	Words func(n int)         // after a pass over n more words, from any goroutine; an epoch of "paper" has two passes
	Epoch func(e model.Epoch) // after each epoch
	Note  func(line string)   // with what a person should know, from any goroutine
}

// Fit learns a model from x: a dictionary, and codes of all rows. It leaves x as it is, and
// settles r as [Settled] does.
//
// It is an error if a hyperparameter is outside its domain, if x is not valid (see
// [vectors.Dense.Validate]) or there is nothing to learn from it (ErrAllSame), if the device can't
// run the training or has too little memory (ErrMemory), if training diverges (ErrDiverged), or if
// a checkpoint to resume is not of this training (ErrCheckpoint). If ctx is cancelled, the error is
// ctx's, and a checkpoint is left, if any was asked for.
//
// Fit returns the model beside an error if training succeeded and what comes after it failed:
// closing the device, encoding by the recipe "best", or if all codes are zero (ErrNothingActive).
// The model has no codes if they could not be made.
func Fit(ctx context.Context, x *vectors.Dense, r model.Recipe, device Device, o Options) (*model.Model, error) {
	if err := checkRecipe(r); err != nil {
		return nil, err
	}
	return trainingOf(r).fit(ctx, x, device, o)
}
