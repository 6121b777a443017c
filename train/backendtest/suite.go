package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"overcomplete/graph"
	"overcomplete/train"
	"overcomplete/vectors"
)

// New makes the backend under test, for the authors' algorithm if authors is
// set. What a backend calls workers is its own affair; 0 is its default.
type New func(spec graph.Spec, x []float32, seed uint64, authors bool, workers int) (train.Backend, error)

// problem is a small problem of a shape that may be awkward for a backend.
type problem struct {
	name              string
	words, atoms, dim int
	batch             int // words of a dictionary step
	change            func(*graph.Spec)
	zeroRows          bool
}

var problems = []problem{
	{name: "plain", words: 40, atoms: 24, dim: 6, batch: 8},
	{name: "nonnegative", words: 40, atoms: 24, dim: 6, batch: 8, change: func(s *graph.Spec) { s.Nonnegative = true }},
	{name: "huber", words: 40, atoms: 24, dim: 6, batch: 8, change: func(s *graph.Spec) { s.Loss = graph.Huber(0.4) }},
	{name: "huber nonnegative", words: 33, atoms: 17, dim: 5, batch: 7, change: func(s *graph.Spec) {
		s.Loss, s.Nonnegative = graph.Huber(0.4), true
	}},
	{name: "no tau", words: 20, atoms: 10, dim: 4, batch: 5, change: func(s *graph.Spec) { s.Tau = 0 }},
	{name: "no lambda", words: 20, atoms: 10, dim: 4, batch: 5, change: func(s *graph.Spec) { s.Lambda = 0 }},
	{name: "all codes zero", words: 20, atoms: 10, dim: 4, batch: 5, change: func(s *graph.Spec) { s.Lambda = 1e4 }},
	{name: "one word", words: 1, atoms: 12, dim: 4, batch: 1},
	{name: "batches of one word", words: 6, atoms: 12, dim: 4, batch: 1},
	{name: "one atom", words: 20, atoms: 1, dim: 4, batch: 5},
	{name: "one dimension", words: 20, atoms: 5, dim: 1, batch: 5},
	{name: "odd sizes", words: 131, atoms: 67, dim: 13, batch: 37},
	{name: "wide", words: 9, atoms: 150, dim: 520, batch: 4}, // several blocks of atoms
	{name: "zero vectors", words: 20, atoms: 10, dim: 4, batch: 5, zeroRows: true},
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

// Run tests a backend against the tape machine and its promises.
func Run(t *testing.T, make New) {
	for _, p := range problems {
		t.Run("minibatch/"+p.name, func(t *testing.T) { againstOracle(t, make, p, false) })
	}
	t.Run("workers", func(t *testing.T) { sameBits(t, make, false) })
	t.Run("cancel", func(t *testing.T) { cancelled(t, make, false) })
}

// RunAuthors does the same for a backend that has the authors' algorithm.
func RunAuthors(t *testing.T, make New) {
	for _, p := range problems {
		t.Run("authors/"+p.name, func(t *testing.T) { againstOracle(t, make, p, true) })
	}
	t.Run("authors/workers", func(t *testing.T) { sameBits(t, make, true) })
	t.Run("authors/cancel", func(t *testing.T) { cancelled(t, make, true) })
}

// epoch runs one epoch of either algorithm.
func epoch(ctx context.Context, b train.Backend, authors bool, batch, t int) (d train.DictionaryPass, c train.CodePass, err error) {
	if authors {
		d.Loss, c, err = b.(train.AuthorsBackend).AuthorsPass(ctx, t)
		return d, c, err
	}
	if d, err = b.DictionaryPass(ctx, batch); err != nil {
		return d, c, err
	}
	c, err = b.CodePass(ctx, t)
	return d, c, err
}

// againstOracle compares three epochs. The backend rounds to float32, 6e-8
// relative, in sums of up to a few hundred terms, and each epoch builds on the
// last; a code at the threshold may be zero in one and just not in the other,
// which moves values by no more than the rounding does.
func againstOracle(t *testing.T, make New, p problem, authors bool) {
	const seed, tolerance = 3, 2e-4
	spec, x := p.make()
	b, err := make(spec, x, seed, authors, 0)
	if err != nil {
		t.Fatal(err)
	}
	oracle := NewOracle(spec, x, seed)
	for e := 1; e <= 3; e++ {
		d, c, err := epoch(context.Background(), b, authors, p.batch, e)
		if err != nil {
			t.Fatal(err)
		}
		wantD, wantC, err := epoch(context.Background(), oracle, authors, p.batch, e)
		if err != nil {
			t.Fatal(err)
		}
		at := func(what string) string { return fmt.Sprintf("epoch %d: %s", e, what) }
		near(t, at("running loss"), []float64{d.Loss}, []float64{wantD.Loss}, tolerance)
		near(t, at("loss"), []float64{c.Loss}, []float64{wantC.Loss}, tolerance)
		near(t, at("sum of |a|"), []float64{c.L1}, []float64{wantC.L1}, tolerance)
		near(t, at("dictionary"), widen(b.Dictionary()), oracle.d, tolerance)
		codes := b.Codes()
		near(t, at("codes"), dense(t, codes), oracle.a, tolerance)
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
func dense(t *testing.T, s *vectors.Sparse) []float64 {
	t.Helper()
	out := make([]float64, s.Rows*s.Cols)
	for i := range s.Rows {
		index, value := s.Row(i)
		previous := int32(-1)
		for j, k := range index {
			if k <= previous || int(k) >= s.Cols || value[j] == 0 {
				t.Fatalf("row %d: value %v in column %d after column %d", i, value[j], k, previous)
			}
			previous = k
			out[i*s.Cols+int(k)] = float64(value[j])
		}
	}
	return out
}

func usedAtoms(s *vectors.Sparse) int {
	used := slices.Clone(s.Index)
	slices.Sort(used)
	return len(slices.Compact(used))
}

// sameBits compares the results of different numbers of workers, bit by bit.
func sameBits(t *testing.T, make New, authors bool) {
	p := problem{words: 300, atoms: 150, dim: 20, batch: 41}
	spec, x := p.make()
	type result struct {
		d      train.DictionaryPass
		c      train.CodePass
		atoms  []float32
		values []float32
		index  []int32
	}
	train := func(workers int) (r result) {
		b, err := make(spec, x, 9, authors, workers)
		if err != nil {
			t.Fatal(err)
		}
		for e := 1; e <= 3; e++ {
			if r.d, r.c, err = epoch(context.Background(), b, authors, p.batch, e); err != nil {
				t.Fatal(err)
			}
		}
		codes := b.Codes()
		r.atoms, r.values, r.index = b.Dictionary(), codes.Value, codes.Index
		return r
	}
	one := train(1)
	for _, workers := range []int{2, 7} {
		r := train(workers)
		if r.d != one.d || r.c != one.c || !slices.Equal(r.atoms, one.atoms) || !slices.Equal(r.values, one.values) || !slices.Equal(r.index, one.index) {
			t.Errorf("%d workers do not compute what one does", workers)
		}
	}
}

// cancelled checks that passes end early, with the context's error.
func cancelled(t *testing.T, make New, authors bool) {
	spec, x := problems[0].make()
	b, err := make(spec, x, 1, authors, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := epoch(ctx, b, authors, 5, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if authors {
		return
	}
	if _, err := b.CodePass(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("code pass: error %v, want %v", err, context.Canceled)
	}
}
