package train

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A Learner learns a dictionary on a device from batches of rows, and keeps none of
// them: of all rows so far it has G = Σ aᵀa, K×K, and B = Σ aᵀy, K×L, in which earlier
// ones count less (Mairal et al., Online Dictionary Learning for Sparse Coding, ICML
// 2009). After an error, of a cancelled context too, its state is of no use.
type Learner interface {
	// Device says what learns, for [model.Info].
	Device() string

	// Learn makes codes A for x, n×L row-major, less the dictionary's mean, as an encoder
	// does; makes G = remember·G + AᵀA and B = remember·B + AᵀY with them; and moves each
	// atom in turn to where tr(DᵀGD) − 2tr(DᵀB) is least with the others fixed, scaled to
	// its norm. It returns the codes. It does not change x.
	Learn(ctx context.Context, x []float32, remember float64) (*encode.Codes, error)

	// Atoms returns a copy of D, K×L.
	Atoms() ([]float32, error)

	// SaveMatrix calls f with a matrix of its state ([model.Info.Matrices]), in parts.
	SaveMatrix(m model.Matrix, f func(part []float32) error) error

	// Restore replaces the atoms, before anything is learned, and RestoreMatrix a matrix
	// then, which f fills in parts.
	Restore(atoms []float32) error
	RestoreMatrix(m model.Matrix, f func(part []float32) error) error

	// Close gives up what the learner has on its device.
	Close() error
}

const (
	// fewestRows is how many rows a batch has at least: each moves all atoms, which takes
	// as long as encoding some hundred rows.
	fewestRows = 256

	// remembered is how many rows G and B remember, about, as a share of all: atoms move, and
	// older codes were made with others.
	remembered = 0.25

	// littleGain is the share of a pass's error below which the next is not worth its time.
	littleGain = 0.02
)

// online trains with a learner. An epoch is a pass over all rows, in an order of its
// own.
type online struct {
	Learner
	Problem
	started bool // G and B hold something
}

// newOnline starts a training of the recipe "best" from atoms of a norm. The learner
// subtracts the mean, as an encoder does.
func newOnline(p Problem, start *model.Dictionary, norm float64, device Device) (*online, error) {
	h := p.Hyperparameters
	l, err := device.Learner(start, norm, encode.Options{
		Lambda: h.Lambda * norm * norm, Nonnegative: h.Method == "B", Steps: encode.DefaultSteps, Most: encode.Most(1-h.Sparsity, h.Atoms),
	})
	if err != nil {
		return nil, err
	}
	return &online{Learner: l, Problem: p}, nil
}

// Epoch implements [Trainer].
func (o *online) Epoch(ctx context.Context, epoch, batch int) (sums Sums, err error) {
	start := time.Now()
	order := rand.New(rand.NewPCG(o.Hyperparameters.Seed, uint64(epoch))).Perm(o.Len())
	used := make([]bool, o.Hyperparameters.Atoms)
	rows := make([]float32, 0, batch*o.Dim)
	for part := range slices.Chunk(order, batch) {
		rows = rows[:0]
		for _, i := range part {
			rows = append(rows, o.X[i*o.Dim:][:o.Dim]...)
		}
		remember := 0.
		if o.started {
			remember = max(0, 1-float64(len(part))/(remembered*float64(o.Len())))
		}
		a, err := o.Learn(ctx, rows, remember)
		if err != nil {
			return sums, err
		}
		o.started = true
		sums.Steps++
		for _, loss := range a.Loss {
			sums.RunningLoss += loss
		}
		sums.Nonzeros += int64(len(a.Value))
		for i, v := range a.Value {
			sums.L1 += math.Abs(float64(v))
			used[a.Index[i]] = true
		}
		if o.Words != nil {
			o.Words(len(part))
		}
	}
	for _, u := range used {
		if u {
			sums.UsedAtoms++
		}
	}
	// No pass is made to measure alone: encoding does that in the end.
	sums.Loss, sums.Error = sums.RunningLoss, sums.RunningLoss
	sums.DictionarySeconds = time.Since(start).Seconds()
	return sums, nil
}

// Dictionary implements [Trainer].
func (o *online) Dictionary() ([]float32, error) { return o.Atoms() }

// Codes implements [Trainer]. A learner keeps none.
func (o *online) Codes() (*vectors.CSR, error) {
	return &vectors.CSR{Rows: o.Len(), Cols: o.Hyperparameters.Atoms, Ptr: make([]int64, o.Len()+1)}, nil
}

// Restore implements [Resumable].
func (o *online) Restore(dictionary []float32, _ *vectors.CSR) error {
	o.started = true
	return o.Learner.Restore(dictionary)
}
