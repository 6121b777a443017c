// Package backend defines the interface of devices, which train and encode, and what devices share.
// Package train controls the order of steps and package encode states the formulas of codes; devices
// compute the steps. Only devices and their tests need this package.
package backend

import (
	"context"
	"errors"
	"fmt"
	"math"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/checkpoint"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A Device is where trainings run, and encodings: [overcomplete/cpu.Device] or
// [overcomplete/kernels.Device].
type Device interface {
	encode.Device

	// Trainer prepares a training. It fails if the device cannot run it or has too little memory.
	Trainer(Problem) (Trainer, error)

	// Learner prepares learning a dictionary online from rows x, V×L row-major. It starts with d,
	// encodes with o, and scales atoms to norm, which those of d have. It fails if an argument is
	// invalid, if nothing can be encoded with d ([encode.ErrDictionary]), if the device does not support
	// o, or if it has too little memory. It changes neither x nor d; x must not change until Close.
	Learner(x []float32, d *model.Dictionary, norm float64, o encode.Options) (Learner, error)
}

// Problem is a training by the paper's recipe.
type Problem struct {
	X               []float32   // V×L row-major, less the mean if the training is centred; read only
	Dim             int         // L
	Dictionary      []float32   // initial D, K×L; nil for random numbers
	Hyperparameters model.Paper // complete: with the number of atoms
	Loss            graph.Loss  // nil for the loss that Hyperparameters.Loss names
	Words           func(n int) // reports n words as done by a pass, from any goroutine; may be nil
}

// Len returns the number of words, V.
func (p Problem) Len() int { return len(p.X) / p.Dim }

// Validate returns an error unless X is at least one vector, each of length Dim, the hyperparameters are
// valid, and the loss is known by its name or is a function with a name of its own.
func (p Problem) Validate() error {
	if p.Dim < 1 || len(p.X) == 0 || len(p.X)%p.Dim != 0 {
		return fmt.Errorf("%d numbers are not vectors of length %d", len(p.X), p.Dim)
	}
	if want := p.Hyperparameters.Atoms * p.Dim; p.Dictionary != nil && len(p.Dictionary) != want {
		return fmt.Errorf("initial dictionary: wrong size (got %d numbers, want %d)", len(p.Dictionary), want)
	}
	_, unknown := graph.NamedLoss(p.Hyperparameters.Loss, p.Hyperparameters.HuberDelta)
	switch {
	case p.Loss == nil && unknown != nil:
		return unknown
	case p.Loss != nil && unknown == nil:
		return fmt.Errorf("the name of a custom loss is that of a known one (got %q)", p.Hyperparameters.Loss)
	}
	return p.Hyperparameters.Validate()
}

// Spec returns the specification of a valid training for package graph.
func (p Problem) Spec() graph.Spec {
	h, loss := p.Hyperparameters, p.Loss
	if loss == nil {
		loss, _ = graph.NamedLoss(h.Loss, h.HuberDelta)
	}
	return graph.Spec{
		Atoms: h.Atoms, Dim: p.Dim,
		Lambda: h.Lambda, Tau: h.Tau, Rate: h.Rate,
		Loss: loss, Nonnegative: h.Method == model.Nonnegative,
	}
}

// Batch returns the words of a dictionary step at first, and at most.
func (p Problem) Batch() int {
	if p.Hyperparameters.AuthorsOrder {
		return 1
	}
	return Batch(p.Len(), p.Hyperparameters.DictionarySteps)
}

// Batch returns the rows of a dictionary step if an epoch has at most this number of steps.
func Batch(rows, steps int) int {
	steps = max(1, steps)
	return max(1, (rows+steps-1)/steps)
}

// InitialDictionary returns D before training, K×L.
func (p Problem) InitialDictionary() []float32 {
	if p.Dictionary != nil {
		return p.Dictionary
	}
	return randomDictionary(p.Hyperparameters.Seed, p.Hyperparameters.Atoms, p.Dim)
}

// Learned is the state of a trainer or a learner. What it needs to go on in another process are matrices
// ([model.Info.Matrices]).
type Learned interface {
	// Device names the device, for [model.Info].
	Device() string

	// Dictionary returns a copy of D, K×L.
	Dictionary() ([]float32, error)

	// SaveState calls f with a matrix in parts, in order, for f to read. It returns the first error of f.
	SaveState(m checkpoint.Matrix, f func(part []float32) error) error

	// LoadState does the same for f to fill the parts in, before anything is learned.
	LoadState(m checkpoint.Matrix, f func(part []float32) error) error

	// Close releases the device.
	Close() error
}

// A Trainer trains by the paper's recipe. After an error, or a cancelled context, its state is undefined.
type Trainer interface {
	Learned

	// Epoch runs an epoch, of which the first is 1. A dictionary step has batch words; the last may
	// have fewer.
	Epoch(ctx context.Context, epoch, batch int) (Sums, error)

	// Codes returns a copy of A, V×K.
	Codes() (*vectors.CSR, error)

	// Restore replaces D and A, before the first epoch.
	Restore(dictionary []float32, codes *vectors.CSR) error
}

// Sums are the metrics of an epoch, summed over words.
type Sums struct {
	RunningLoss float64 // before the dictionary step of each word
	Steps       int     // of the dictionary
	Shortened   int     // of these, steps that the line search shortened, α < 1

	Loss     float64 // Σ ℓ(x_i − a_i D) with the epoch's final D and A
	Error    float64 // Σ ‖x_i − a_i D‖² with these
	L1       float64 // Σ ‖a_i‖₁
	Nonzeros int64
	Used     []bool // K: dimensions with a nonzero

	DictionarySeconds, CodeSeconds float64 // wall-clock time of the two passes
}

// Count adds the nonzeros of some codes.
func (s *Sums) Count(index []int32, value []float32) {
	s.Nonzeros += int64(len(value))
	for i, k := range index {
		s.L1 += math.Abs(float64(value[i]))
		s.Used[k] = true
	}
}

// UsedAtoms returns the number of dimensions with a nonzero.
func (s *Sums) UsedAtoms() (n int) {
	for _, used := range s.Used {
		if used {
			n++
		}
	}
	return n
}

// A Learner learns a dictionary from batches of rows. It keeps G = Σ aᵀa, K×K, and B = Σ aᵀy, K×L, of the
// codes of all rows so far, in which earlier ones count less (Mairal et al., Online Dictionary Learning for
// Sparse Coding, ICML 2009). After an error, or a cancelled context, its state is undefined.
type Learner interface {
	Learned

	// Learn encodes the rows with these indices, less the dictionary's mean, to A; updates
	// G = forgetting·G + AᵀA and B = forgetting·B + AᵀY; and moves each atom in turn to the minimum of
	// tr(DᵀGD) − 2tr(DᵀB) + anchorWeight·‖D − W‖² with the others fixed, scaled to its norm. W are the
	// anchors, the initial atoms. It adds to sums: RunningLoss, L1, Nonzeros and Used.
	Learn(ctx context.Context, rows []int32, forgetting, anchorWeight float64, sums *Sums) error

	// Restore replaces the atoms but not their anchors, before anything is learned.
	Restore(atoms []float32) error
}

// CheckLearner returns an error unless x are rows of d's length and norm is positive.
func CheckLearner(x []float32, d *model.Dictionary, norm float64) error {
	switch {
	case d.Dim < 1 || len(x)%d.Dim != 0:
		return fmt.Errorf("%d numbers are not vectors of length %d", len(x), d.Dim)
	case !(norm > 0):
		return fmt.Errorf("the norm of atoms is not positive (got %v)", norm)
	}
	return nil
}

// ErrMemory is wrapped by errors of a training or an encoder that does not fit into memory.
var ErrMemory = errors.New("not enough memory")
