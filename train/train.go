// Package train learns codes and a dictionary: it runs the epochs, measures
// them and decides when to stop. It knows no device; a [Backend] does the work,
// such as that of package cpu:
//
//	x, source, err := vectors.Read(ctx, "glove.6B.300d.txt.gz", vectors.ReadOptions{})
//	h := model.Defaults()
//	h.Lambda = 1
//	m, err := train.NewModel(x, source, h)
//	b, err := cpu.New(train.Spec(m.Info.Training, x.Dim), x.Data, cpu.Options{Seed: h.Seed})
//	err = train.Run(ctx, b, m, train.Progress{}, nil)
//	err = m.Save("glove.model", false)
//
// # The algorithm
//
// X is V×L (dense vectors), A is V×K (codes), D is K×L (dictionary):
//
//	minimise Σ_i ‖x_i − a_i D‖² + λ Σ_i ‖a_i‖₁ + τ‖D‖²        (paper, Eq. 2)
//
// AdaGrad learns D, and regularised dual averaging in its AdaGrad form A (paper
// §2.3). The paper's program visits one word after the other and moves both
// each time. The default here, "minibatch", makes two passes an epoch instead:
// the dictionary pass steps D on small batches of words in order, with each
// word's squared gradient added to AdaGrad's sum as if it had come alone and a
// line search against overshooting; the code pass then renews all codes with D
// fixed. Both are matrix products, and the second takes any order and any
// number of workers. The formulas are with the graphs: [overcomplete/graph.Dictionary]
// and [overcomplete/graph.Code]. The algorithm "authors" keeps the paper's order,
// for comparison.
//
// How far training goes is part of the result: a code cannot exceed η√t after t
// epochs, and τ is tiny, so that D grows slowly. The number of epochs is a
// hyperparameter like λ.
package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"overcomplete/graph"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Learned gives access to what a training has learned so far. It fails where
// that is held by a device that does.
type Learned interface {
	// Dictionary returns a copy of D, K×L.
	Dictionary() ([]float32, error)

	// Codes returns a copy of A, V×K.
	Codes() (*vectors.CSR, error)
}

// Resumable is a training that can be gone on with later, in another process,
// after an epoch. Its state is what was learned and the matrices of
// [model.State].
type Resumable interface {
	Learned

	// SaveMatrix calls f with a matrix in parts.
	SaveMatrix(m model.Matrix, f func(part []float32) error) error

	// Restore replaces what was learned. It must be called before the first
	// pass, and RestoreMatrix for each matrix then.
	Restore(dictionary []float32, codes *vectors.CSR) error

	// RestoreMatrix has f fill a matrix in parts.
	RestoreMatrix(m model.Matrix, f func(part []float32) error) error
}

// Backend holds a training's state on a device and runs passes over it. After an
// error, of a cancelled context too, the state is of no use.
type Backend interface {
	Resumable

	// DictionaryPass takes a dictionary step for each batch of the given number
	// of words, in order; the last batch may be smaller.
	DictionaryPass(ctx context.Context, batch int) (DictionaryPass, error)

	// CodePass renews all codes. Epochs count from 1.
	CodePass(ctx context.Context, epoch int) (CodePass, error)
}

// AuthorsBackend trains in the order of the paper's program.
type AuthorsBackend interface {
	Resumable

	// AuthorsPass moves D and then the word's code for every word in order. It
	// returns the sum of the words' losses as they were met.
	AuthorsPass(ctx context.Context, epoch int) (runningLoss float64, codes CodePass, err error)
}

// DictionaryPass is what a dictionary pass measured.
type DictionaryPass struct {
	Loss      float64 // sum over words, each as its batch met it
	Steps     int     // batches
	Shortened int     // steps that the line search shortened, α < 1
}

// CodePass is what a pass over the codes left.
type CodePass struct {
	Loss      float64 // sum over words, with the new codes
	L1        float64 // Σ_i ‖a_i‖₁
	Nonzeros  int64
	UsedAtoms int // dimensions with a nonzero
}

// ErrDiverged is returned, wrapped, when a metric is no longer a finite number.
var ErrDiverged = errors.New("training diverged")

// ErrMemory is returned, wrapped, when a training or an encoding does not fit into the
// memory of the machine or of the GPU. The error says what would fit, where that is known.
var ErrMemory = errors.New("not enough memory")

// The authors' stop rules (their programs sparse and nonneg): at least 20
// epochs, then on while the mean error is above 0.05, still changes by more than
// a tolerance and a number of epochs is not reached.
const (
	authorsFewest    = 20
	authorsGoodError = 0.05
)

// AuthorsStop returns the tolerance and the most epochs of the authors' stop
// rule for a method.
func AuthorsStop(method string) (tolerance float64, most int) {
	if method == "B" {
		return 0.001, 75
	}
	return 0.005, 50
}

// NewModel returns what is known of a model before x is trained on, for [Run] to
// complete: the words, the hyperparameters, and of its input what source says,
// which is nil for vectors that are from no file. If h.Center, it subtracts the
// mean vector from x. Atoms and Epochs that are 0 are replaced by their defaults.
// Other hyperparameters outside their domain are an error, as are vectors that
// are not valid (see [vectors.Dense.Validate]).
func NewModel(x *vectors.Dense, source *vectors.Source, h model.Hyperparameters) (*model.Model, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	if err := x.Validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if h.Atoms == 0 {
		h.Atoms = 10 * x.Dim
	}
	if h.Epochs == 0 {
		h.Epochs = DefaultEpochs(h)
	}
	m := &model.Model{Codes: &vectors.Sparse{Words: x.Words}, Info: model.Info{
		Format:   model.FormatVersion,
		Input:    model.Input{Words: x.Len(), Dim: x.Dim},
		Training: h,
	}}
	if in := &m.Info.Input; source != nil {
		in.Name, in.SHA256, in.WordsSHA256 = source.Name, source.SHA256, source.WordsSHA256
	}
	m.Dictionary.Dim = x.Dim
	if h.Center {
		m.Dictionary.Mean = x.Center()
	}
	return m, nil
}

// DefaultEpochs returns the epochs of h's method, or the most that its stop rule
// allows.
func DefaultEpochs(h model.Hyperparameters) int {
	switch {
	case h.Stop == "authors":
		_, most := AuthorsStop(h.Method)
		return most
	case h.Method == "B":
		return 30
	}
	return 20
}

// Spec states what h asks for as a graph, for vectors of length dim: backends are
// prepared for it.
func Spec(h model.Hyperparameters, dim int) graph.Spec {
	s := graph.Spec{
		Atoms: h.Atoms, Dim: dim,
		Lambda: h.Lambda, Tau: h.Tau, Rate: h.Rate,
		Loss: graph.Squared, Nonnegative: h.Method == "B",
	}
	if h.Loss == "huber" {
		s.Loss = graph.Huber(h.HuberDelta)
	}
	return s
}

// BatchWords returns how many words a dictionary step has at first, and at most,
// if there are to be so many steps an epoch.
func BatchWords(words, steps int) int {
	steps = max(1, steps)
	return max(1, (words+steps-1)/steps)
}

// Progress is how far a training is. What a backend has learned and this are all
// that it takes to go on to the result of a training that never stopped.
type Progress struct {
	Epochs []model.Epoch // metrics of those that are done
	Batch  int           // words of the next dictionary step; 0 before training
	Done   bool          // there is nothing to go on with
}

// Run trains with a backend, a [Backend] or, for the algorithm "authors", an
// [AuthorsBackend], that was prepared for m's hyperparameters and vectors, from where p says until the epochs are done
// or the stop rule ends them. Then it completes m: Dictionary, Codes and
// Info.Epochs, but not Info.Device, of which it knows nothing. After each epoch it
// calls observe, unless it is nil, whose error ends the training too. When ctx is
// cancelled it returns ctx's error. A backend of another algorithm than m's, or of
// atoms of another number or length, is an error.
func Run(ctx context.Context, b Resumable, m *model.Model, p Progress, observe func(Progress) error) error {
	r := run{learned: b, h: m.Info.Training, words: m.Info.Input.Words, dim: m.Info.Input.Dim}
	minibatch, isMinibatch := b.(Backend)
	authors, isAuthors := b.(AuthorsBackend)
	switch wantAuthors := r.h.Algorithm == "authors"; {
	case isMinibatch && !wantAuthors:
		if p.Batch == 0 {
			p.Batch = BatchWords(r.words, r.h.DictionarySteps)
		}
		r.epoch = func(t int) (d DictionaryPass, c CodePass, err error) {
			if d, err = minibatch.DictionaryPass(ctx, p.Batch); err != nil {
				return d, c, err
			}
			// Steps that need shortening often ask too much of a batch's size.
			if 10*d.Shortened > d.Steps {
				p.Batch = max(1, p.Batch/2)
			}
			c, err = minibatch.CodePass(ctx, t)
			return d, c, err
		}
	case isAuthors && wantAuthors:
		p.Batch = 1
		r.epoch = func(t int) (DictionaryPass, CodePass, error) {
			loss, c, err := authors.AuthorsPass(ctx, t)
			return DictionaryPass{Loss: loss, Steps: r.words}, c, err
		}
	default:
		return fmt.Errorf("train: %T does not train with the algorithm %q", b, r.h.Algorithm)
	}
	if err := r.epochs(&p, observe); err != nil {
		return err
	}
	m.Info.Epochs = p.Epochs
	return Fetch(m, b)
}

// Fetch copies what was learned so far into m.
func Fetch(m *model.Model, b Learned) (err error) {
	codes, err := b.Codes()
	if err != nil {
		return err
	}
	m.Codes.CSR = *codes
	m.Dictionary.Atoms, err = b.Dictionary()
	return err
}

// run is a training with either algorithm.
type run struct {
	learned    Learned
	epoch      func(t int) (DictionaryPass, CodePass, error)
	h          model.Hyperparameters
	words, dim int
}

func (r run) epochs(p *Progress, observe func(Progress) error) error {
	for !p.Done {
		start := time.Now()
		t := len(p.Epochs) + 1
		d, c, err := r.epoch(t)
		if err != nil {
			return err
		}
		e, err := r.measure(t, d, c)
		if err != nil {
			return err
		}
		e.Seconds = time.Since(start).Seconds()
		p.Epochs = append(p.Epochs, e)
		p.Done = r.done(p.Epochs)
		if observe == nil {
			continue
		}
		if err := observe(*p); err != nil {
			return err
		}
	}
	return nil
}

// done reports whether the training ends with these epochs.
func (r run) done(epochs []model.Epoch) bool {
	t := len(epochs)
	if t == 0 || t >= r.h.Epochs || r.h.Stop != "authors" {
		return t >= r.h.Epochs
	}
	previous := 0.0
	if t > 1 {
		previous = epochs[t-2].RunningError
	}
	return authorsDone(r.h.Method, t, epochs[t-1].RunningError, previous)
}

func authorsDone(method string, t int, runningError, previous float64) bool {
	tolerance, _ := AuthorsStop(method)
	return t >= authorsFewest && (runningError <= authorsGoodError || math.Abs(runningError-previous) <= tolerance)
}

// measure turns sums into an epoch's metrics.
func (r run) measure(t int, d DictionaryPass, c CodePass) (model.Epoch, error) {
	words := float64(r.words)
	dictionary, err := r.learned.Dictionary()
	if err != nil {
		return model.Epoch{}, err
	}
	if len(dictionary) != r.h.Atoms*r.dim {
		return model.Epoch{}, fmt.Errorf("train: the backend's dictionary has %d numbers, and the model's %d atoms of length %d", len(dictionary), r.h.Atoms, r.dim)
	}
	squares, norms := atomNorms(dictionary, r.dim)
	e := model.Epoch{
		Epoch:        t,
		RunningError: d.Loss / words,
		Error:        c.Loss / words,
		Sparsity:     1 - float64(c.Nonzeros)/(words*float64(r.h.Atoms)),
		L1:           c.L1 / words,
		AtomNorm:     norms / float64(r.h.Atoms),
		UnusedAtoms:  r.h.Atoms - c.UsedAtoms,
		LineSearch:   float64(d.Shortened) / float64(d.Steps),
	}
	e.Objective = e.Error + r.h.Lambda*e.L1 + r.h.Tau*squares/words
	for _, metric := range []struct {
		name  string
		value float64
	}{{"running error", e.RunningError}, {"error", e.Error}, {"mean |a|", e.L1}, {"atom norm", e.AtomNorm}} {
		if math.IsNaN(metric.value) || math.IsInf(metric.value, 0) {
			return e, fmt.Errorf("%w: %s is %v after epoch %d; try a lower --rate, or scale the vectors to a mean norm near 3",
				ErrDiverged, metric.name, metric.value, t)
		}
	}
	return e, nil
}

// atomNorms returns ‖D‖² and the sum of the atoms' norms.
func atomNorms(d []float32, dim int) (squares, norms float64) {
	for ; len(d) > 0; d = d[dim:] {
		var sum float64
		for _, x := range d[:dim] {
			sum += float64(x) * float64(x)
		}
		squares += sum
		norms += math.Sqrt(sum)
	}
	return squares, norms
}
