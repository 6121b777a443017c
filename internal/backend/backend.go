// Package backend is what trainings and encodings ask of a device, and what devices share:
// package train has the order of things, package encode the formulas of codes, and devices
// take the steps. Only devices and their tests need it. [overcomplete/train.Device] is one.
package backend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

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

	// Trainer prepares a training. It is an error if the device cannot run it, or has
	// too little memory.
	Trainer(Problem) (Trainer, error)

	// Learner prepares learning a dictionary online from rows x, V×L row-major: from d on, with
	// codes as o says, and with atoms of the given norm, which those of d have. It is an error
	// if x are no rows, if d or o are not valid, if nothing can be encoded with d
	// ([encode.ErrDictionary]), or if the device cannot do what o asks for or has too little
	// memory. It changes neither x nor d; until it is closed x must stay as it is.
	Learner(x []float32, d *model.Dictionary, norm float64, o encode.Options) (Learner, error)
}

// Problem is what there is to train by the recipe "paper".
type Problem struct {
	X               []float32   // V×L row-major, less the mean if the training is centred; read only
	Dim             int         // L
	Dictionary      []float32   // K×L, to start from; nil for random numbers
	Hyperparameters model.Paper // complete: with the number of atoms
	Loss            graph.Loss  // nil for the loss that Hyperparameters.Loss names
	Words           func(n int) // told of words that a pass is done with, from any goroutine; may be nil
}

// Len returns the number of words, V.
func (p Problem) Len() int { return len(p.X) / p.Dim }

// Validate returns an error unless X is at least one vector, each of length Dim, the
// hyperparameters are valid, and the loss is either one that every program knows or has
// another name.
func (p Problem) Validate() error {
	if p.Dim < 1 || len(p.X) == 0 || len(p.X)%p.Dim != 0 {
		return fmt.Errorf("%d numbers are no vectors of length %d", len(p.X), p.Dim)
	}
	if want := p.Hyperparameters.Atoms * p.Dim; p.Dictionary != nil && len(p.Dictionary) != want {
		return fmt.Errorf("a dictionary of %d numbers to start from, want %d", len(p.Dictionary), want)
	}
	unknown := CheckLoss(p.Hyperparameters)
	switch {
	case p.Loss == nil && unknown != nil:
		return unknown
	case p.Loss != nil && unknown == nil:
		return fmt.Errorf("loss is %q, want another name for a loss of the program's own", p.Hyperparameters.Loss)
	}
	return p.Hyperparameters.Validate()
}

// CheckLoss returns an error unless the loss of h is one that every program knows.
func CheckLoss(h model.Paper) error {
	if _, known := losses[h.Loss]; !known {
		return fmt.Errorf("loss is %.60q, want %s", h.Loss, strings.Join(slices.Sorted(maps.Keys(losses)), " or "))
	}
	return nil
}

// losses are those that every program knows, by the names that hyperparameters have
// for them.
var losses = map[string]func(h model.Paper) graph.Loss{
	model.Squared: func(model.Paper) graph.Loss { return graph.Squared },
	model.Huber:   func(h model.Paper) graph.Loss { return graph.Huber(h.HuberDelta) },
}

// Spec states a training that is valid as a graph.
func (p Problem) Spec() graph.Spec {
	h, loss := p.Hyperparameters, p.Loss
	if loss == nil {
		loss = losses[h.Loss](h)
	}
	return graph.Spec{
		Atoms: h.Atoms, Dim: p.Dim,
		Lambda: h.Lambda, Tau: h.Tau, Rate: h.Rate,
		Loss: loss, Nonnegative: h.Method == model.Nonnegative,
	}
}

// Batch returns how many words a dictionary step has at first, and at most: 1 in
// the authors' order, or as many as there have to be for so many steps an epoch.
func (p Problem) Batch() int {
	if p.Hyperparameters.Algorithm == model.Authors {
		return 1
	}
	return Batch(p.Len(), p.Hyperparameters.DictionarySteps)
}

// Batch returns the rows of a dictionary step if an epoch has so many of these, or the most
// that are not more.
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

// Way is which way numbers go, from a device or to it.
type Way int

// Save is from a device, Restore to it.
const (
	Save Way = iota
	Restore
)

// Learned is what a device has learned so far, and what it needs to go on from there, in
// another process, too: matrices ([model.Info.Matrices]).
type Learned interface {
	// Device says what learns, for [model.Info].
	Device() string

	// Dictionary returns a copy of D, K×L.
	Dictionary() ([]float32, error)

	// Exchange calls f with a matrix in parts, in order: with Save for f to read them, and with
	// Restore, before anything is learned, for f to fill them. It returns the first error of f.
	Exchange(way Way, m checkpoint.Matrix, f func(part []float32) error) error

	// Close gives up what is held on the device.
	Close() error
}

// A Trainer holds the state of a training on a device. After an error, of a
// cancelled context too, the state is of no use.
type Trainer interface {
	Learned

	// Epoch moves the dictionary and the codes by one epoch, of which the first is 1.
	// A dictionary step has batch words; the last may have fewer.
	Epoch(ctx context.Context, epoch, batch int) (Sums, error)

	// Codes returns a copy of A, V×K.
	Codes() (*vectors.CSR, error)

	// Restore replaces D and A, before the first epoch.
	Restore(dictionary []float32, codes *vectors.CSR) error
}

// Sums are what was measured in an epoch, summed over words.
type Sums struct {
	RunningLoss float64 // each as its dictionary step met it
	Steps       int     // of the dictionary
	Shortened   int     // of these, steps that the line search shortened, α < 1

	Loss     float64 // Σ ℓ(x_i − a_i D) with the epoch's final D and A
	Error    float64 // Σ ‖x_i − a_i D‖² with these
	L1       float64 // Σ ‖a_i‖₁
	Nonzeros int64
	Used     []bool // K: dimensions with a nonzero; made by who has the codes

	DictionarySeconds, CodeSeconds float64 // of the two passes, wall-clock time
}

// Count adds the nonzeros of some codes.
func (s *Sums) Count(index []int32, value []float32) {
	s.Nonzeros += int64(len(value))
	for i, k := range index {
		s.L1 += math.Abs(float64(value[i]))
		s.Used[k] = true
	}
}

// UsedAtoms returns how many dimensions have a nonzero.
func (s *Sums) UsedAtoms() (n int) {
	for _, used := range s.Used {
		if used {
			n++
		}
	}
	return n
}

// A Learner learns a dictionary on a device from batches of rows. Of the codes of all rows so
// far it has G = Σ aᵀa, K×K, and B = Σ aᵀy, K×L, in which earlier
// ones count less (Mairal et al., Online Dictionary Learning for Sparse Coding, ICML
// 2009). After an error, of a cancelled context too, its state is of no use.
type Learner interface {
	Learned

	// Learn makes codes A for the rows with these indices, less the dictionary's mean, as an
	// encoder does; makes G = remember·G + AᵀA and B = remember·B + AᵀY with them; and moves each
	// atom in turn to where tr(DᵀGD) − 2tr(DᵀB) + pull·‖D − W‖² is least with the others
	// fixed, scaled to its norm. W are the anchors: the atoms that the learner started from.
	// It adds what the codes are and leave to sums: RunningLoss, L1, Nonzeros and Used.
	Learn(ctx context.Context, rows []int32, remember, pull float64, sums *Sums) error

	// Restore replaces the atoms but not their anchors, before anything is learned.
	Restore(atoms []float32) error
}

// ErrMemory is returned, wrapped, when a training or an encoder does not fit into
// the memory of a device or of the machine.
var ErrMemory = errors.New("not enough memory")
