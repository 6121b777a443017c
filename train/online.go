package train

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A Learner learns a dictionary on a device from batches of rows, and keeps none of
// them: of all rows so far it has G = Σ aᵀa, K×K, and B = Σ aᵀy, K×L, in which earlier
// ones count less (Mairal et al., Online Dictionary Learning for Sparse Coding, ICML
// 2009).
type Learner interface {
	// Device says what learns, for [model.Info].
	Device() string

	// Learn makes codes for x, n×L row-major, less the dictionary's mean, as an encoder
	// does; makes G = remember·G + AᵀA and B = remember·B + AᵀY with them; and moves each
	// atom in turn to where tr(DᵀGD) − 2tr(DᵀB) is least with the others fixed, scaled to
	// its norm. It returns the codes. It does not change x.
	Learn(ctx context.Context, x []float32, remember float64) (*encode.Codes, error)

	// Atoms returns a copy of D, K×L.
	Atoms() ([]float32, error)

	// Close gives up what the learner has on its device.
	Close() error
}

// online trains with a learner: an epoch is a pass over all rows, in an order of its
// own.
type online struct {
	Learner
	Problem
	options encode.Options
	seen    bool // G and B hold something
}

// Epoch implements [Trainer].
func (o *online) Epoch(ctx context.Context, epoch, batch int) (sums Sums, err error) {
	start := time.Now()
	order := rand.New(rand.NewPCG(o.Hyperparameters.Seed, uint64(epoch))).Perm(o.Len())
	used := make([]bool, o.Hyperparameters.Atoms)
	rows := make([]float32, 0, batch*o.Dim)
	for len(order) > 0 {
		n := min(batch, len(order))
		rows = rows[:0]
		for _, i := range order[:n] {
			rows = append(rows, o.X[i*o.Dim:][:o.Dim]...)
		}
		order = order[n:]
		remember := 0.
		if o.seen {
			remember = max(0, 1 - float64(100*n)/float64(envInt("OC_MEM",100)*o.Len()))
		}
		a, err := o.Learn(ctx, rows, remember)
		if err != nil {
			return sums, err
		}
		o.seen = true
		for _, loss := range a.Loss {
			sums.RunningLoss += loss
		}
		sums.Nonzeros += int64(len(a.Value))
		for i, v := range a.Value {
			sums.L1 += math.Abs(float64(v))
			used[a.Index[i]] = true
		}
		sums.Steps++
		if o.Words != nil {
			o.Words(n)
		}
	}
	for _, u := range used {
		if u {
			sums.UsedAtoms++
		}
	}
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

// newOnline starts a training of the recipe "best".
func newOnline(m *model.Model, p Problem, device Device) (*online, error) {
	h := p.Hyperparameters
	square := meanSquare(p.X, &m.Dictionary)
	norm := math.Sqrt(square)
	o := encode.Options{Lambda: h.Lambda * square, Nonnegative: h.Method == "B", Steps: envInt("OC_STEPS", 20), Most: encode.Most(1-h.Sparsity, h.Atoms)}
	d := m.Dictionary
	d.Atoms = startFromWords(p.X, &m.Dictionary, norm, h.Atoms, h.Seed)
	l, err := device.Learner(&d, norm, o)
	if err != nil {
		return nil, err
	}
	return &online{Learner: l, Problem: p, options: o}, nil
}

// meanSquare returns mean‖x − μ‖².
func meanSquare(x []float32, d *model.Dictionary) float64 {
	var sum float64
	y := make([]float32, d.Dim)
	for i := 0; i < len(x); i += d.Dim {
		d.Center(y, x[i:i+d.Dim])
		for _, v := range y {
			sum += float64(v) * float64(v)
		}
	}
	return sum / float64(len(x)/d.Dim)
}

func envInt(name string, def int) int {
	if v, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return v
	}
	return def
}
