package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"overcomplete/graph"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// New makes the backend under test for the vectors x. What a backend calls
// workers is its own affair; 0 is its default.
type New[B train.Resumable] func(spec graph.Spec, x []float32, seed uint64, workers int) (B, error)

// open makes a backend for a test, at whose end it is closed if it can be.
func (n New[B]) open(t *testing.T, spec graph.Spec, x []float32, seed uint64, workers int) B {
	t.Helper()
	b, err := n(spec, x, seed, workers)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := any(b).(io.Closer); ok {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return b
}

// Float32 is how far a backend that computes in float32 may be from the tape
// machine after three epochs, as a part of the largest number: it rounds to 6e-8
// relative, in sums of up to a few hundred terms, and each epoch builds on the
// last. A code at the threshold may be zero in one and just not in the other,
// which moves values by no more than the rounding does.
const Float32 = 2e-4

// Run tests a backend against the tape machine, from which it may be as far as
// the tolerance says, and its promises.
func Run[B train.Backend](t *testing.T, tolerance float64, newBackend New[B]) {
	pass := func(ctx context.Context, b train.Backend, p problem, epoch int) (d train.DictionaryPass, c train.CodePass, err error) {
		if d, err = b.DictionaryPass(ctx, p.batch); err != nil {
			return d, c, err
		}
		c, err = b.CodePass(ctx, epoch)
		return d, c, err
	}
	suite[train.Backend]{
		tolerance: tolerance,
		start: func(spec graph.Spec, x []float32, seed uint64, workers int) (train.Backend, error) {
			return newBackend(spec, x, seed, workers)
		},
		oracle: func(o *Oracle) train.Backend { return o },
		epoch:  pass,
	}.run(t)

	t.Run("cancelled code pass", func(t *testing.T) {
		spec, x := problems[0].make()
		b := newBackend.open(t, spec, x, 1, 0)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := b.CodePass(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	})
}

// RunAuthors does the same for the authors' algorithm.
func RunAuthors[B train.AuthorsBackend](t *testing.T, tolerance float64, newBackend New[B]) {
	suite[train.AuthorsBackend]{
		tolerance: tolerance,
		most:      40, // every word is a step: what takes more of them is for batches
		start: func(spec graph.Spec, x []float32, seed uint64, workers int) (train.AuthorsBackend, error) {
			return newBackend(spec, x, seed, workers)
		},
		oracle: func(o *Oracle) train.AuthorsBackend { return o },
		epoch: func(ctx context.Context, b train.AuthorsBackend, _ problem, epoch int) (d train.DictionaryPass, c train.CodePass, err error) {
			d.Loss, c, err = b.AuthorsPass(ctx, epoch)
			return d, c, err
		},
	}.run(t)
}

// suite is what both algorithms are tested for.
type suite[B train.Resumable] struct {
	tolerance float64
	most      int // words of a problem, if not 0
	start     New[B]
	oracle    func(*Oracle) B
	epoch     func(ctx context.Context, b B, p problem, epoch int) (train.DictionaryPass, train.CodePass, error)
}

func (s suite[B]) run(t *testing.T) {
	for _, p := range problems {
		if s.most > 0 {
			p.words = min(p.words, s.most)
		}
		t.Run(p.name, func(t *testing.T) { s.againstOracle(t, p) })
	}
	t.Run("workers", s.sameBits)
	t.Run("cancelled", s.cancelled)
	t.Run("resumed", s.resumed)
}

// problem is a small problem of a shape that may be awkward for a backend.
type problem struct {
	name              string
	words, atoms, dim int
	batch             int // words of a dictionary step
	change            func(*graph.Spec)
	zeroRows          bool

	// What the oracle must meet, so that the problem tests it.
	shortens bool // steps with α < 1
	damps    bool // words with 0 < β < 1
}

var problems = []problem{
	{name: "plain", words: 40, atoms: 24, dim: 6, batch: 8},
	{name: "nonnegative", words: 40, atoms: 24, dim: 6, batch: 8, change: func(s *graph.Spec) { s.Nonnegative = true }},
	{name: "huber", words: 40, atoms: 24, dim: 6, batch: 8, change: func(s *graph.Spec) { s.Loss = graph.Huber(0.4) }},
	{name: "huber nonnegative", words: 33, atoms: 17, dim: 5, batch: 7, change: func(s *graph.Spec) {
		s.Loss, s.Nonnegative = graph.Huber(0.4), true
	}},
	{name: "pseudo-huber", words: 20, atoms: 10, dim: 4, batch: 5, change: func(s *graph.Spec) { s.Loss = pseudoHuber }},
	{name: "bold steps", words: 40, atoms: 24, dim: 6, batch: 20, change: func(s *graph.Spec) { s.Rate = 1 }, shortens: true, damps: true},
	{name: "bold huber steps", words: 40, atoms: 24, dim: 6, batch: 8, change: func(s *graph.Spec) {
		s.Rate, s.Loss = 0.5, graph.Huber(0.4)
	}, shortens: true, damps: true},
	{name: "no tau", words: 20, atoms: 10, dim: 4, batch: 5, change: func(s *graph.Spec) { s.Tau = 0 }},
	{name: "no lambda", words: 20, atoms: 10, dim: 4, batch: 5, change: func(s *graph.Spec) { s.Lambda = 0 }},
	{name: "all codes zero", words: 20, atoms: 10, dim: 4, batch: 5, change: func(s *graph.Spec) { s.Lambda = 1e4 }},
	{name: "one word", words: 1, atoms: 12, dim: 4, batch: 1},
	{name: "batches of one word", words: 6, atoms: 12, dim: 4, batch: 1},
	{name: "batch of more words than there are", words: 6, atoms: 12, dim: 4, batch: 10},
	{name: "one atom", words: 20, atoms: 1, dim: 4, batch: 5},
	{name: "one dimension", words: 20, atoms: 5, dim: 1, batch: 5},
	{name: "odd sizes", words: 131, atoms: 67, dim: 13, batch: 37},
	{name: "wide", words: 9, atoms: 150, dim: 520, batch: 4}, // D does not fit in a block
	{name: "odd sizes, sparse", words: 131, atoms: 67, dim: 13, batch: 37, change: func(s *graph.Spec) { s.Lambda = 0.6 }},
	{name: "wide, sparse", words: 9, atoms: 150, dim: 520, batch: 4, change: func(s *graph.Spec) { s.Lambda = 25 }},
	{name: "long, sparse", words: 600, atoms: 20, dim: 520, batch: 520, change: func(s *graph.Spec) { s.Lambda = 5 }},
	{name: "long", words: 300, atoms: 20, dim: 520, batch: 260}, // nor do the residuals
	{name: "zero vectors", words: 20, atoms: 10, dim: 4, batch: 5, zeroRows: true},
}

// pseudoHuber is 4(√(1+r²/4) − 1), a loss that no executor has heard of: r²/2
// near 0.
func pseudoHuber(r *gorgonia.Node) (*gorgonia.Node, error) {
	constant := func(x float64) *gorgonia.Node {
		if r.Dtype() == tensor.Float32 {
			return gorgonia.NewConstant(float32(x))
		}
		return gorgonia.NewConstant(x)
	}
	half := gorgonia.Must(gorgonia.HadamardProd(constant(0.25), gorgonia.Must(gorgonia.Square(r))))
	root := gorgonia.Must(gorgonia.Sqrt(gorgonia.Must(gorgonia.Add(half, constant(1)))))
	return gorgonia.HadamardProd(constant(4), gorgonia.Must(gorgonia.Sub(root, constant(1))))
}

func (p problem) make() (graph.Spec, []float32) {
	spec := graph.Spec{Atoms: p.atoms, Dim: p.dim, Lambda: 0.1, Tau: 1e-3, Rate: 0.05}
	if p.change != nil {
		p.change(&spec)
	}
	rng := rand.New(rand.NewPCG(5, uint64(p.words*p.atoms)))
	x := make([]float32, p.words*p.dim)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
		if p.zeroRows && i/p.dim%3 == 0 {
			x[i] = 0
		}
	}
	return spec, x
}

// againstOracle compares three epochs.
func (s suite[B]) againstOracle(t *testing.T, p problem) {
	const seed = 3
	spec, x := p.make()
	b := s.start.open(t, spec, x, seed, 0)
	oracle := NewOracle(spec, x, seed)
	for e := 1; e <= 3; e++ {
		d, c, err := s.epoch(context.Background(), b, p, e)
		if err != nil {
			t.Fatal(err)
		}
		wantD, wantC, err := s.epoch(context.Background(), s.oracle(oracle), p, e)
		if err != nil {
			t.Fatal(err)
		}
		at := func(what string) string { return fmt.Sprintf("epoch %d: %s", e, what) }
		near(t, at("running loss"), []float64{d.Loss}, []float64{wantD.Loss}, s.tolerance)
		near(t, at("loss"), []float64{c.Loss}, []float64{wantC.Loss}, s.tolerance)
		near(t, at("sum of |a|"), []float64{c.L1}, []float64{wantC.L1}, s.tolerance)
		dictionary, codes := learned(t, b)
		near(t, at("dictionary"), widen(dictionary), oracle.d, s.tolerance)
		near(t, at("codes"), dense(t, codes), oracle.a, s.tolerance)
		if d.Steps != wantD.Steps || d.Shortened != wantD.Shortened {
			t.Errorf("%s, want %d and %d", at(fmt.Sprintf("%d steps, %d shortened", d.Steps, d.Shortened)), wantD.Steps, wantD.Shortened)
		}
		if int(c.Nonzeros) != codes.Nonzeros() || c.UsedAtoms != usedAtoms(codes) {
			t.Errorf("epoch %d: says %d nonzeros in %d atoms, has %d in %d", e, c.Nonzeros, c.UsedAtoms, codes.Nonzeros(), usedAtoms(codes))
		}
		if slack := 2 + int(wantC.Nonzeros)/100; int(c.Nonzeros-wantC.Nonzeros) > slack || int(wantC.Nonzeros-c.Nonzeros) > slack {
			t.Errorf("epoch %d: %d nonzeros, want %d", e, c.Nonzeros, wantC.Nonzeros)
		}
	}
	if _, minibatch := any(b).(train.Backend); minibatch && (p.shortens && oracle.shortened == 0 || p.damps && oracle.damped == 0) {
		t.Errorf("the oracle met %d shortened steps and %d damped words: the problem does not test what it is for", oracle.shortened, oracle.damped)
	}
}

func learned(t *testing.T, b train.Learned) ([]float32, *vectors.CSR) {
	t.Helper()
	dictionary, err := b.Dictionary()
	if err != nil {
		t.Fatal(err)
	}
	codes, err := b.Codes()
	if err != nil {
		t.Fatal(err)
	}
	return dictionary, codes
}

// near fails where got differs from want by more than tol times the largest
// element wanted.
func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, want %d", what, len(got), len(want))
		return
	}
	var size float64
	for _, w := range want {
		size = max(size, math.Abs(w))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*size) {
			t.Errorf("%s: element %d is %v, want %v (±%.1g)", what, i, got[i], want[i], tol*size)
			return
		}
	}
}

// dense checks that s is well formed and spreads it out.
func dense(t *testing.T, s *vectors.CSR) []float64 {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
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
func (s suite[B]) sameBits(t *testing.T) {
	// Atoms and residuals make several blocks, words several tiles.
	p := problem{words: 300, atoms: 400, dim: 200, batch: 150}
	spec, x := p.make()
	type result struct {
		d          train.DictionaryPass
		c          train.CodePass
		dictionary []float32
		codes      *vectors.CSR
	}
	trained := func(workers int) (r result) {
		b := s.start.open(t, spec, x, 9, workers)
		for e := 1; e <= 3; e++ {
			var err error
			if r.d, r.c, err = s.epoch(context.Background(), b, p, e); err != nil {
				t.Fatal(err)
			}
		}
		r.dictionary, r.codes = learned(t, b)
		return r
	}
	one := trained(1)
	for _, workers := range []int{2, 7} {
		if !reflect.DeepEqual(trained(workers), one) {
			t.Errorf("%d workers do not compute what one does", workers)
		}
	}
}

// resumed compares, bit by bit, a training with one that was saved and restored
// on the way, for each epoch that it could be.
func (s suite[B]) resumed(t *testing.T) {
	p := problem{words: 130, atoms: 70, dim: 9, batch: 33}
	spec, x := p.make()
	const seed, epochs = 9, 4
	type result struct {
		d          train.DictionaryPass
		c          train.CodePass
		dictionary []float32
		codes      *vectors.CSR
	}
	trained := func(b B, from, to int) (r result) {
		for e := from + 1; e <= to; e++ {
			var err error
			if r.d, r.c, err = s.epoch(context.Background(), b, p, e); err != nil {
				t.Fatal(err)
			}
		}
		r.dictionary, r.codes = learned(t, b)
		return r
	}
	whole := trained(s.start.open(t, spec, x, seed, 0), 0, epochs)
	for at := 1; at < epochs; at++ {
		b := s.start.open(t, spec, x, seed, 0)
		r := trained(b, 0, at)
		saved := make(map[model.Matrix][]float32)
		again := s.start.open(t, spec, x, seed+1, 0) // what is restored must not come from the seed
		from, to := train.Resumable(b), train.Resumable(again)
		if err := to.Restore(r.dictionary, r.codes); err != nil {
			t.Fatal(err)
		}
		failure := errors.New("disk")
		for m, size := range map[model.Matrix]int{
			model.SquaredGradients: p.atoms * p.dim, model.GradientSums: p.words * p.atoms, model.SquareSums: p.words * p.atoms,
		} {
			if err := from.SaveMatrix(m, func(part []float32) error {
				saved[m] = append(saved[m], part...)
				return nil
			}); err != nil || len(saved[m]) != size {
				t.Fatalf("%d numbers of %s saved, want %d; error %v", len(saved[m]), m, size, err)
			}
			if err := to.RestoreMatrix(m, func(part []float32) error {
				saved[m] = saved[m][copy(part, saved[m]):]
				return nil
			}); err != nil || len(saved[m]) > 0 {
				t.Fatalf("%d numbers of %s were not restored; error %v", len(saved[m]), m, err)
			}
			fails := func([]float32) error { return failure }
			if err := from.SaveMatrix(m, fails); err != failure {
				t.Errorf("error %v of saving, want %v", err, failure)
			}
			if err := from.RestoreMatrix(m, fails); err != failure {
				t.Errorf("error %v of restoring, want %v", err, failure)
			}
		}
		if !reflect.DeepEqual(trained(again, at, epochs), whole) {
			t.Errorf("resumed after epoch %d, the training comes to other bits", at)
		}
	}
}

// cancelled checks that an epoch ends at once, with the context's error.
func (s suite[B]) cancelled(t *testing.T) {
	spec, x := problems[0].make()
	b := s.start.open(t, spec, x, 1, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := s.epoch(ctx, b, problems[0], 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
