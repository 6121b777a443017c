package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
	"overcomplete/train"
	"overcomplete/vectors"
)

// New makes the trainer under test. Each device defines workers; 0 is its default.
type New func(p backend.Problem, workers int) (backend.Trainer, error)

// open makes a trainer, which is closed at the end of the test.
func (n New) open(t *testing.T, p backend.Problem, workers int) backend.Trainer {
	t.Helper()
	b, err := n(p, workers)
	return testonly.Opened(t, b, err)
}

// Float32 is the tolerance of a trainer in float32 after three epochs, relative to the largest number. Sums of up
// to a few hundred terms are rounded by 6e-8 each, and epochs accumulate the errors. Near the threshold, a code
// may be zero in one training and tiny in the other, which changes values by no more than rounding does.
const Float32 = 2e-4

// Run tests a device's training, in the authors' order or not. It compares the training with the tape machine,
// within the tolerance, and tests the guarantees of [backend.Trainer].
func Run(t *testing.T, authorsOrder bool, tolerance float64, newTrainer New) {
	s := suite{authorsOrder, Tolerance{tolerance, tolerance, tolerance}, newTrainer}
	for _, p := range problems {
		t.Run(p.name, func(t *testing.T) { s.againstOracle(t, s.sized(p)) })
	}
	t.Run("workers", s.sameBits)
	t.Run("cancelled", s.cancelled)
	t.Run("cancelled later", s.cancelledLater)
	t.Run("resumed", s.resumed)
}

// A Tolerance is the largest error of a trainer, relative to the largest number.
type Tolerance struct{ Sums, Dictionary, Codes float64 }

// RunSmall compares the training of the smallest problems with the tape machine, for a device that rounds more
// than float32.
func RunSmall(t *testing.T, tolerance Tolerance, newTrainer New) {
	for _, p := range problems {
		if p.rows <= 20 {
			t.Run(p.name, func(t *testing.T) { suite{false, tolerance, newTrainer}.againstOracle(t, p) })
		}
	}
}

type suite struct {
	authorsOrder bool
	tolerance    Tolerance
	start        New
}

// sized reduces the rows for the authors' order, in which every row is a step.
func (s suite) sized(p problem) problem {
	if s.authorsOrder {
		p.rows = min(p.rows, 40)
	}
	return p
}

// problem is a small problem whose shape may be difficult for a device.
type problem struct {
	name             string
	rows, atoms, dim int
	batch            int // rows per dictionary step
	change           func(*backend.Problem)
	zeroRows         int // every zeroRows-th row is zero; 0 for none

	late bool // add an epoch whose number times λ exceeds all sums, so that all codes are zero

	// The oracle checks that the problem has these cases:
	shortens bool // steps with α < 1
	damps    bool // rows with 0 < β < 1
}

var problems = []problem{
	{name: "plain", rows: 40, atoms: 24, dim: 6, batch: 8, late: true},
	{name: "nonnegative", rows: 40, atoms: 24, dim: 6, batch: 8, change: func(p *backend.Problem) { p.Hyperparameters.Method = "B" }},
	{name: "huber", rows: 40, atoms: 24, dim: 6, batch: 8, change: huber},
	{name: "huber nonnegative", rows: 33, atoms: 17, dim: 5, batch: 7, change: func(p *backend.Problem) {
		huber(p)
		p.Hyperparameters.Method = "B"
	}},
	{name: "bold steps", rows: 40, atoms: 24, dim: 6, batch: 20, change: func(p *backend.Problem) { p.Hyperparameters.Rate = 1 }, shortens: true, damps: true},
	{name: "bold huber steps", rows: 40, atoms: 24, dim: 6, batch: 8, change: func(p *backend.Problem) {
		huber(p)
		p.Hyperparameters.Rate = 0.5
	}, shortens: true, damps: true},
	{name: "no tau", rows: 20, atoms: 10, dim: 4, batch: 5, change: func(p *backend.Problem) { p.Hyperparameters.Tau = 0 }},
	{name: "no lambda", rows: 20, atoms: 10, dim: 4, batch: 5, change: func(p *backend.Problem) { p.Hyperparameters.Lambda = 0 }},
	{name: "all codes zero", rows: 20, atoms: 10, dim: 4, batch: 5, change: func(p *backend.Problem) { p.Hyperparameters.Lambda = 1e4 }},
	{name: "one row", rows: 1, atoms: 12, dim: 4, batch: 1},
	{name: "batches of one row", rows: 6, atoms: 12, dim: 4, batch: 1},
	{name: "batch larger than the input", rows: 6, atoms: 12, dim: 4, batch: 10},
	{name: "one atom", rows: 20, atoms: 1, dim: 4, batch: 5},
	{name: "one dimension", rows: 20, atoms: 5, dim: 1, batch: 5},
	{name: "odd sizes", rows: 131, atoms: 67, dim: 13, batch: 37},
	{name: "wide", rows: 9, atoms: 150, dim: 520, batch: 4}, // D is larger than a block
	{name: "odd sizes, sparse", rows: 131, atoms: 67, dim: 13, batch: 37, change: func(p *backend.Problem) { p.Hyperparameters.Lambda = 0.6 }},
	{name: "wide, sparse", rows: 9, atoms: 150, dim: 520, batch: 4, change: func(p *backend.Problem) { p.Hyperparameters.Lambda = 25 }},
	{name: "long, sparse", rows: 600, atoms: 20, dim: 520, batch: 520, change: func(p *backend.Problem) { p.Hyperparameters.Lambda = 5 }},
	{name: "long", rows: 300, atoms: 20, dim: 520, batch: 260}, // the residuals are larger than a block
	{name: "zero vectors", rows: 20, atoms: 10, dim: 4, batch: 5, zeroRows: 3},
	{name: "zero vectors alone", rows: 20, atoms: 10, dim: 4, batch: 5, zeroRows: 1},
}

func huber(p *backend.Problem) {
	p.Hyperparameters.Loss, p.Hyperparameters.HuberDelta = model.Huber, 0.4
}

// make returns the problem for trainers, with steps of p.batch rows.
func (p problem) make(authorsOrder bool, seed uint64) backend.Problem {
	h := train.Paper()
	h.AuthorsOrder, h.Atoms, h.Lambda, h.Tau = authorsOrder, p.atoms, 0.1, 1e-3
	h.DictionarySteps, h.Seed = max(1, p.rows/p.batch), seed
	problem := backend.Problem{Dim: p.dim, Hyperparameters: h}
	if p.change != nil {
		p.change(&problem)
	}
	rng := rand.New(rand.NewPCG(5, uint64(p.rows*p.atoms)))
	problem.X = make([]float32, p.rows*p.dim)
	for i := range problem.X {
		problem.X[i] = float32(rng.NormFloat64())
		if p.zeroRows > 0 && i/p.dim%p.zeroRows == 0 {
			problem.X[i] = 0
		}
	}
	return problem
}

func (s suite) againstOracle(t *testing.T, p problem) {
	problem := p.make(s.authorsOrder, 3)
	b := s.start.open(t, problem, 0)
	oracle := NewOracle(problem)
	epochs := []int{1, 2, 3}
	if p.late {
		epochs = append(epochs, 10000)
	}
	for _, e := range epochs {
		got, err := b.Epoch(t.Context(), e, p.batch)
		testonly.Must(t, err)
		want, err := oracle.Epoch(t.Context(), e, p.batch)
		testonly.Must(t, err)
		at := func(what string) string { return fmt.Sprintf("epoch %d: %s", e, what) }
		testonly.Near(t, at("running loss"), []float64{got.RunningLoss}, []float64{want.RunningLoss}, s.tolerance.Sums)
		testonly.Near(t, at("loss"), []float64{got.Loss}, []float64{want.Loss}, s.tolerance.Sums)
		testonly.Near(t, at("error"), []float64{got.Error}, []float64{want.Error}, s.tolerance.Sums)
		testonly.Near(t, at("sum of |a|"), []float64{got.L1}, []float64{want.L1}, s.tolerance.Sums)
		r := Learned(t, b)
		testonly.Near(t, at("dictionary"), encodetest.Widen(r.Dictionary), oracle.d, s.tolerance.Dictionary)
		testonly.Near(t, at("codes"), dense(t, r.Codes), oracle.a, s.tolerance.Codes)
		if got.Steps != want.Steps || got.Shortened != want.Shortened {
			t.Errorf("%s, want %d and %d", at(fmt.Sprintf("%d steps, %d shortened", got.Steps, got.Shortened)), want.Steps, want.Shortened)
		}
		if int(got.Nonzeros) != r.Codes.Nonzeros() || got.UsedAtoms() != usedAtoms(r.Codes) {
			t.Errorf("epoch %d: says %d nonzeros in %d atoms, has %d in %d", e, got.Nonzeros, got.UsedAtoms(), r.Codes.Nonzeros(), usedAtoms(r.Codes))
		}
		if slack := 2 + want.Nonzeros/100; got.Nonzeros-want.Nonzeros > slack || want.Nonzeros-got.Nonzeros > slack {
			t.Errorf("epoch %d: %d nonzeros, want %d", e, got.Nonzeros, want.Nonzeros)
		}
	}
	if !s.authorsOrder && (p.shortens && oracle.shortened == 0 || p.damps && oracle.damped == 0) {
		t.Errorf("the oracle met %d shortened steps and %d damped rows: the problem does not test what it is for", oracle.shortened, oracle.damped)
	}
}

// A Result holds the results of a training.
type Result struct {
	Sums       backend.Sums // metrics of the last epoch, without times
	Dictionary []float32
	Codes      *vectors.CSR
}

// Learned returns the current dictionary and codes, without metrics.
func Learned(t *testing.T, b backend.Trainer) Result {
	t.Helper()
	dictionary := atomsOf(t, b)
	codes, err := b.Codes()
	testonly.Must(t, err)
	return Result{Dictionary: dictionary, Codes: codes}
}

// Trained runs the epochs after+1 to last, with batch rows in a dictionary step.
func Trained(t *testing.T, b backend.Trainer, batch, after, last int) Result {
	t.Helper()
	var sums backend.Sums
	for e := after + 1; e <= last; e++ {
		var err error
		sums, err = b.Epoch(t.Context(), e, batch)
		testonly.Must(t, err)
	}
	r := Learned(t, b)
	r.Sums = sums
	r.Sums.DictionarySeconds, r.Sums.CodeSeconds = 0, 0
	return r
}

// Saved returns a matrix of the state of a trainer or learner.
func Saved(t *testing.T, b backend.Learned, m checkpoint.Matrix) (all []float32) {
	t.Helper()
	testonly.Must(t, b.SaveState(m, func(part []float32) error {
		all = append(all, part...)
		return nil
	}))
	return all
}

// Load sets a matrix of the state of a trainer or learner.
func Load(t *testing.T, b backend.Learned, m checkpoint.Matrix, values []float32) {
	t.Helper()
	testonly.Must(t, b.LoadState(m, func(part []float32) error {
		values = values[copy(part, values):]
		return nil
	}))
	if len(values) > 0 {
		t.Fatalf("%d numbers of %s were not loaded", len(values), m)
	}
}

// copyState copies matrices of the given sizes from a trainer or learner to another. It checks that failures to save and
// to load are returned; thereafter, nothing may use from.
func copyState(t *testing.T, from, to backend.Learned, sizes map[checkpoint.Matrix]int) {
	t.Helper()
	failure := errors.New("disk")
	for m, size := range sizes {
		saved := Saved(t, from, m)
		if len(saved) != size {
			t.Fatalf("%d numbers of %s saved, want %d", len(saved), m, size)
		}
		Load(t, to, m, saved)
		fails := func([]float32) error { return failure }
		if err := from.SaveState(m, fails); err != failure {
			t.Errorf("error %v of saving, want %v", err, failure)
		}
		if err := from.LoadState(m, fails); err != failure {
			t.Errorf("error %v of restoring, want %v", err, failure)
		}
	}
}

// dense validates s and returns it as a dense matrix.
func dense(t *testing.T, s *vectors.CSR) []float64 {
	t.Helper()
	testonly.Must(t, s.Validate())
	out := make([]float64, s.Rows*s.Cols)
	for i := range s.Rows {
		index, value := s.Row(i)
		for j, k := range index {
			out[i*s.Cols+int(k)] = float64(value[j])
		}
	}
	return out
}

func usedAtoms(s *vectors.CSR) int {
	used := slices.Clone(s.Index)
	slices.Sort(used)
	return len(slices.Compact(used))
}

// sameBits compares the results of different numbers of workers, bit by bit.
func (s suite) sameBits(t *testing.T) {
	// Atoms and residuals have several blocks, rows several tiles. Codes are dense in the first epoch and sparse
	// in the others.
	const epochs = 2
	p := s.sized(problem{rows: 300, atoms: 400, dim: 200, batch: 150})
	one := Trained(t, s.start.open(t, p.make(s.authorsOrder, 9), 1), p.batch, 0, epochs)
	for _, workers := range []int{2, 7} {
		if !reflect.DeepEqual(Trained(t, s.start.open(t, p.make(s.authorsOrder, 9), workers), p.batch, 0, epochs), one) {
			t.Errorf("%d workers do not compute what one does", workers)
		}
	}
}

// resumed compares a training, bit by bit, with one that is saved and restored after each of the epochs.
func (s suite) resumed(t *testing.T) {
	p := problem{rows: 130, atoms: 70, dim: 9, batch: 33}
	const seed, epochs = 9, 4
	open := func(seed uint64) backend.Trainer {
		return s.start.open(t, p.make(s.authorsOrder, seed), 0)
	}
	whole := Trained(t, open(seed), p.batch, 0, epochs)
	for at := 1; at < epochs; at++ {
		from, to := open(seed), open(seed+1) // restored values must not come from the seed
		r := Trained(t, from, p.batch, 0, at)
		testonly.Must(t, to.Restore(r.Dictionary, r.Codes))
		copyState(t, from, to, map[checkpoint.Matrix]int{
			checkpoint.SquaredGradients: p.atoms * p.dim, checkpoint.GradientSums: p.rows * p.atoms, checkpoint.SquareSums: p.rows * p.atoms,
		})
		if !reflect.DeepEqual(Trained(t, to, p.batch, at, epochs), whole) {
			t.Errorf("resumed after epoch %d, the results have other bits", at)
		}
	}
}

// cancelled checks that an epoch with a cancelled context returns the context's error at once.
func (s suite) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := s.start.open(t, problems[0].make(s.authorsOrder, 1), 0)
	if _, err := b.Epoch(ctx, 1, problems[0].batch); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// cancelledLater cancels the context between an epoch's two passes.
func (s suite) cancelledLater(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := problems[0].make(s.authorsOrder, 1)
	var done atomic.Int64
	p.Rows = func(n int) {
		if done.Add(int64(n)) == int64(p.Len()) {
			cancel()
		}
	}
	b := s.start.open(t, p, 0)
	if _, err := b.Epoch(ctx, 1, problems[0].batch); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if n := int(done.Load()); n >= 2*p.Len() {
		t.Errorf("%d rows were reported as done", n)
	}
}
