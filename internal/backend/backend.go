// Package backend defines the interface of devices, which train and encode, and holds the code that devices
// share. Package train controls the order of steps, package encode defines the formulas of codes, and a device
// computes the steps:
//
//	t, err := device.Trainer(backend.Problem{X: x, Dim: 50, Hyperparameters: recipe})
//	sums, err := t.Epoch(ctx, 1, 100) // 100 rows per dictionary step
//	codes, err := t.Codes()
//
// Code that only trains or encodes needs packages train and encode instead.
package backend

import (
	"context"
	"errors"
	"fmt"
	"math"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/float32s"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A Device runs trainings and encodings. It is [overcomplete/cpu.Device] or [overcomplete/kernels.Device].
type Device interface {
	encode.Device

	// Trainer prepares a training. It returns an error if the device can't run it or has too little memory.
	Trainer(Problem) (Trainer, error)

	// Learner prepares to learn a dictionary online from rows x, V×L row-major. The dictionary is
	// initialised with d, K×L. Updated atoms are scaled to the given norm, which d's atoms should have.
	// Codes are computed with o. Learner returns an error if an argument is invalid, if d can't encode
	// ([encode.ErrDictionary]), if the device doesn't support o, or if the device has too little memory. It
	// modifies neither x nor d. The caller must not change x until Close.
	Learner(x []float32, d *model.Dictionary, norm float64, o encode.Options) (Learner, error)
}

// A Problem is a training by the paper's recipe.
type Problem struct {
	X               []float32   // V×L row-major, centred if the recipe centres; read only
	Dim             int         // L
	Dictionary      []float32   // initial D, K×L; nil for random atoms
	Hyperparameters model.Paper // all set, including Atoms
	Rows            func(n int) // if not nil, called from any goroutine when a pass has processed n more rows
}

// Len returns the number of rows, V.
func (p Problem) Len() int { return len(p.X) / p.Dim }

// Validate returns an error unless X is one or more vectors of length Dim, Dictionary is nil or K×L, and the
// hyperparameters are valid.
func (p Problem) Validate() error {
	if p.Dim < 1 || len(p.X) == 0 || len(p.X)%p.Dim != 0 {
		return fmt.Errorf("%d numbers are not vectors of length %d", len(p.X), p.Dim)
	}
	if want := p.Hyperparameters.Atoms * p.Dim; p.Dictionary != nil && len(p.Dictionary) != want {
		return fmt.Errorf("initial dictionary: wrong size (got %d numbers, want %d)", len(p.Dictionary), want)
	}
	return p.Hyperparameters.Validate()
}

// Spec returns the specification of a valid problem for package graph.
func (p Problem) Spec() graph.Spec {
	h, loss := p.Hyperparameters, graph.Squared
	if h.Loss == model.Huber {
		loss = graph.Huber(h.HuberDelta)
	}
	return graph.Spec{
		Atoms: h.Atoms, Dim: p.Dim,
		Lambda: h.Lambda, Tau: h.Tau, Rate: h.Rate,
		Loss: loss, Nonnegative: h.Method == model.Nonnegative,
	}
}

// Batch returns the number of rows of a dictionary step in the first epoch. Steps of later epochs aren't larger.
func (p Problem) Batch() int {
	if p.Hyperparameters.AuthorsOrder {
		return 1
	}
	return Batch(p.Len(), p.Hyperparameters.DictionarySteps)
}

// Batch returns the number of rows per dictionary step that limits an epoch to the given number of steps.
func Batch(rows, steps int) int {
	steps = max(1, steps)
	return max(1, (rows+steps-1)/steps)
}

// InitialDictionary returns the initial D, K×L.
func (p Problem) InitialDictionary() []float32 {
	if p.Dictionary != nil {
		return p.Dictionary
	}
	return randomDictionary(p.Hyperparameters.Seed, p.Hyperparameters.Atoms, p.Dim)
}

// Learned is the state of a trainer or a learner. A checkpoint stores the dictionary, the codes and the
// matrices of package checkpoint.
type Learned interface {
	// Device names the device, for [model.Info].
	Device() string

	// Dictionary returns a copy of D, K×L.
	Dictionary() ([]float32, error)

	// AtomSquares returns ‖d‖² of each atom. On a GPU it is faster than [Learned.Dictionary].
	AtomSquares() ([]float64, error)

	// SaveState calls f with consecutive parts of a matrix, which f reads. It returns the first error of f.
	SaveState(m checkpoint.Matrix, f func(part []float32) error) error

	// LoadState calls f with consecutive parts of a matrix, which f sets. It must be called before the first
	// step. It returns the first error of f.
	LoadState(m checkpoint.Matrix, f func(part []float32) error) error

	// Close releases the device.
	Close() error
}

// A Trainer trains by the paper's recipe. Its state is undefined after an error or a cancelled context.
type Trainer interface {
	Learned

	// Epoch runs an epoch; the first is epoch 1. Each dictionary step uses batch rows; the last may use fewer.
	Epoch(ctx context.Context, epoch, batch int) (Sums, error)

	// Codes returns a copy of A, V×K.
	Codes() (*vectors.CSR, error)

	// Restore replaces D and A. It must be called before the first epoch.
	Restore(dictionary []float32, codes *vectors.CSR) error
}

// Sums are the metrics of an epoch, summed over rows.
type Sums struct {
	RunningLoss float64 // loss of each row before its dictionary step
	Steps       int     // number of dictionary steps
	Shortened   int     // number of dictionary steps that the line search shortened, α < 1

	Loss     float64 // Σ ℓ(x_i − a_i D) with the epoch's final D and A
	Error    float64 // Σ ‖x_i − a_i D‖² with the epoch's final D and A
	L1       float64 // Σ ‖a_i‖₁
	Nonzeros int64
	Used     []bool // Used[k] reports whether dimension k has a nonzero

	DictionarySeconds, CodeSeconds float64 // wall-clock time of the two passes
}

// Count adds the nonzeros of codes to Nonzeros, L1 and Used.
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

// BlockAtoms is the number of consecutive atoms that a learner updates at once. The last block may have fewer.
const BlockAtoms = 32

// A Learner learns a dictionary from batches of rows (Mairal et al., Online Dictionary Learning for Sparse
// Coding, ICML 2009). It stores G = Σ aᵀa, K×K, and B = Σ aᵀy, K×L, over all rows so far, where a is the code of a
// row and y the row minus the mean. Earlier rows have smaller weights. The state of a learner is undefined after
// an error or a cancelled context.
type Learner interface {
	Learned

	// Learn runs a step of learning for each mini-batch, in order. A step encodes Y, the rows minus the
	// dictionary's mean, to A. It updates G = forgetting·G + AᵀA and B = forgetting·B + AᵀY. It then updates
	// the atoms by [graph.Learn] with the weight anchor·noise, in blocks of [BlockAtoms]. A block uses the new
	// atoms of the blocks before it. The anchors W are the initial atoms. After the first step, noise is the
	// mean loss of the rows of the previous mini-batch. If learned isn't nil, Learn calls learned(n) after
	// it has run or queued a step of n rows. It returns RunningLoss, L1, Nonzeros, Used and Steps. All mini-batches
	// together have at most V rows.
	Learn(ctx context.Context, batches []Minibatch, anchor, noise float64, learned func(n int)) (Sums, error)

	// Restore replaces the atoms, but not their anchors. It must be called before the first step.
	Restore(atoms []float32) error
}

// A Minibatch is the input of a step of a [Learner].
type Minibatch struct {
	Rows       []int32 // indices of rows, at least one
	Forgetting float64 // weight of the previous G and B
}

// CheckLearner returns an error unless x holds vectors of d's length and norm is positive.
func CheckLearner(x []float32, d *model.Dictionary, norm float64) error {
	switch {
	case d.Dim < 1 || len(x)%d.Dim != 0:
		return fmt.Errorf("%d numbers are not vectors of length %d", len(x), d.Dim)
	case !(norm > 0):
		return fmt.Errorf("the norm of atoms is not positive (got %v)", norm)
	case float32s.Squares(d.Atoms) == 0:
		_, err := StepOf(0)
		return err
	}
	return nil
}

// AtomSquares returns ‖d‖² of each atom of length dim.
func AtomSquares(atoms []float32, dim int) []float64 {
	squares := make([]float64, len(atoms)/dim)
	for k := range squares {
		squares[k] = float32s.Squares(atoms[k*dim:][:dim])
	}
	return squares
}

// Addressable is a number of bytes that no process can address on any machine.
const Addressable = min(1<<46, math.MaxInt)

// ErrMemory is wrapped by the error of a training or an encoder that doesn't fit into memory.
var ErrMemory = errors.New("not enough memory")
