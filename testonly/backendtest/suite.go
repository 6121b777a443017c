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
	testonly.Must(t, err)
	t.Cleanup(func() {
		testonly.Must(t, b.Close())
	})
	return b
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

// huber sets Huber's loss.
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

// againstOracle compares the results of each epoch.
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
		dictionary, codes := learned(t, b)
		testonly.Near(t, at("dictionary"), encodetest.Widen(dictionary), oracle.d, s.tolerance.Dictionary)
		testonly.Near(t, at("codes"), dense(t, codes), oracle.a, s.tolerance.Codes)
		if got.Steps != want.Steps || got.Shortened != want.Shortened {
			t.Errorf("%s, want %d and %d", at(fmt.Sprintf("%d steps, %d shortened", got.Steps, got.Shortened)), want.Steps, want.Shortened)
		}
		if int(got.Nonzeros) != codes.Nonzeros() || got.UsedAtoms() != usedAtoms(codes) {
			t.Errorf("epoch %d: says %d nonzeros in %d atoms, has %d in %d", e, got.Nonzeros, got.UsedAtoms(), codes.Nonzeros(), usedAtoms(codes))
		}
		if slack := 2 + want.Nonzeros/100; got.Nonzeros-want.Nonzeros > slack || want.Nonzeros-got.Nonzeros > slack {
			t.Errorf("epoch %d: %d nonzeros, want %d", e, got.Nonzeros, want.Nonzeros)
		}
	}
	if !s.authorsOrder && (p.shortens && oracle.shortened == 0 || p.damps && oracle.damped == 0) {
		t.Errorf("the oracle met %d shortened steps and %d damped rows: the problem does not test what it is for", oracle.shortened, oracle.damped)
	}
}

func learned(t *testing.T, b backend.Trainer) ([]float32, *vectors.CSR) {
	t.Helper()
	dictionary := atomsOf(t, b)
	codes, err := b.Codes()
	testonly.Must(t, err)
	return dictionary, codes
}

// result holds the results of a training.
type result struct {
	sums       backend.Sums // metrics of the last epoch, without times
	dictionary []float32
	codes      *vectors.CSR
}

// trained runs the epochs after+1 to last.
func trained(t *testing.T, b backend.Trainer, p problem, after, last int) (r result) {
	t.Helper()
	for e := after + 1; e <= last; e++ {
		var err error
		if r.sums, err = b.Epoch(t.Context(), e, p.batch); err != nil {
			t.Fatal(err)
		}
	}
	r.sums.DictionarySeconds, r.sums.CodeSeconds = 0, 0
	r.dictionary, r.codes = learned(t, b)
	return r
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
	one := trained(t, s.start.open(t, p.make(s.authorsOrder, 9), 1), p, 0, epochs)
	for _, workers := range []int{2, 7} {
		if !reflect.DeepEqual(trained(t, s.start.open(t, p.make(s.authorsOrder, 9), workers), p, 0, epochs), one) {
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
	whole := trained(t, open(seed), p, 0, epochs)
	for at := 1; at < epochs; at++ {
		from, to := open(seed), open(seed+1) // restored values must not come from the seed
		r := trained(t, from, p, 0, at)
		testonly.Must(t, to.Restore(r.dictionary, r.codes))
		saved := make(map[checkpoint.Matrix][]float32)
		failure := errors.New("disk")
		for m, size := range map[checkpoint.Matrix]int{
			checkpoint.SquaredGradients: p.atoms * p.dim, checkpoint.GradientSums: p.rows * p.atoms, checkpoint.SquareSums: p.rows * p.atoms,
		} {
			if err := from.SaveState(m, func(part []float32) error {
				saved[m] = append(saved[m], part...)
				return nil
			}); err != nil || len(saved[m]) != size {
				t.Fatalf("%d numbers of %s saved, want %d; error %v", len(saved[m]), m, size, err)
			}
			if err := to.LoadState(m, func(part []float32) error {
				saved[m] = saved[m][copy(part, saved[m]):]
				return nil
			}); err != nil || len(saved[m]) > 0 {
				t.Fatalf("%d numbers of %s were not restored; error %v", len(saved[m]), m, err)
			}
			fails := func([]float32) error { return failure }
			if err := from.SaveState(m, fails); err != failure {
				t.Errorf("error %v of saving, want %v", err, failure)
			}
			if err := from.LoadState(m, fails); err != failure {
				t.Errorf("error %v of restoring, want %v", err, failure)
			}
		}
		if !reflect.DeepEqual(trained(t, to, p, at, epochs), whole) {
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
