package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	gonum "gonum.org/v1/gonum/floats"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
)

// NewLearner makes the learner under test. Each device defines workers; 0 is its default.
type NewLearner func(x []float32, d *model.Dictionary, norm float64, o encode.Options, workers int) (backend.Learner, error)

// open makes a learner, which is closed at the end of the test.
func (n NewLearner) open(t *testing.T, p learningProblem, workers int) backend.Learner {
	t.Helper()
	l, err := n(p.x, p.dictionary, p.norm, p.options, workers)
	return testonly.Opened(t, l, err)
}

// LearnerTolerance bounds the errors of a learner after each batch. The expected metrics, G and B follow from the
// learner's previous dictionary; errors are relative to them. The expected dictionary follows from the learner's G
// and B; its error is relative to the norm of atoms.
type LearnerTolerance struct {
	Codes, Products, Atoms float64 // for the metrics, for G and B, and for atoms

	// Step, if not nil, returns the step size of the latest batch, which may differ from [backend.Spectrum]'s.
	Step func() float64
}

// LearnerFloat32 is the tolerance for learners in float32. The rounding of the polish accumulates in the codes. The
// change of an atom is a difference of sums, which are rounded by 6e-8; it can be a few hundred times smaller than
// the sums.
var LearnerFloat32 = LearnerTolerance{Codes: 3e-5, Products: 6e-5, Atoms: 1e-5}

// RunLearner tests that a device's learner implements [backend.Learner].
func RunLearner(t *testing.T, tolerance LearnerTolerance, newLearner NewLearner) {
	for _, p := range learningProblems {
		t.Run(p.name, func(t *testing.T) { againstTape(t, p.make(1), tolerance, newLearner) })
	}
	plain := learningProblems[0].make(1)
	t.Run("workers", func(t *testing.T) {
		large := learningProblem{atoms: 70, dim: 20, batches: []int{150, 50}}.make(1)
		one := learnedBy(t, newLearner.open(t, large, 1), large)
		for _, workers := range []int{2, 7} {
			if !reflect.DeepEqual(learnedBy(t, newLearner.open(t, large, workers), large), one) {
				t.Errorf("%d workers do not learn what one does", workers)
			}
		}
	})
	t.Run("scale", func(t *testing.T) {
		const scale = 1 << 7
		want := learnedBy(t, newLearner.open(t, plain, 0), plain)
		p := learningProblems[0].make(scale)
		scaled := learnedBy(t, newLearner.open(t, p, 0), p)
		for i := range want.atoms {
			want.atoms[i] *= scale
		}
		want.sums.RunningLoss *= scale * scale
		for i := range want.rows {
			want.rows[i] *= scale
		}
		if !reflect.DeepEqual(scaled, want) {
			t.Errorf("of rows %d times as long other bits are learned", scale)
		}
	})
	t.Run("resumed", func(t *testing.T) { learnerResumed(t, newLearner) })
	t.Run("least use", func(t *testing.T) { leastUse(t, newLearner) })
	t.Run("noise", func(t *testing.T) {
		p := learningProblem{atoms: 40, dim: 8, batches: []int{64, 30}}.make(1) // 64, so that the mean is exact
		once, twice, batches := newLearner.open(t, p, 0), newLearner.open(t, p, 0), p.minibatches()
		sums := learn(t, once, batches, 2, 0.25)
		first := learn(t, twice, batches[:1], 2, 0.25)
		second := learn(t, twice, batches[1:], 2, first.RunningLoss/64)
		if !slices.Equal(atomsOf(t, once), atomsOf(t, twice)) || sums.RunningLoss != first.RunningLoss+second.RunningLoss {
			t.Error("the noise of a step isn't the mean loss of the step before")
		}
	})
	t.Run("no step size", func(t *testing.T) {
		for _, atom := range []float32{0, 1e25} {
			l := newLearner.open(t, plain, 0)
			testonly.Must(t, l.Restore(slices.Repeat([]float32{atom}, plain.atoms*plain.dim)))
			if _, err := l.Learn(t.Context(), plain.minibatches(), 0, 0, nil); !errors.Is(err, encode.ErrDictionary) {
				t.Errorf("atoms of %v: error %v, want %v", atom, err, encode.ErrDictionary)
			}
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l := newLearner.open(t, plain, 0)
		if _, err := l.Learn(ctx, []backend.Minibatch{{Rows: plain.order}}, 0, 0, nil); err != context.Canceled {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
		if got := atomsOf(t, l); !slices.Equal(got, plain.dictionary.Atoms) {
			t.Error("atoms have moved")
		}
	})
	t.Run("refuses", func(t *testing.T) {
		for _, d := range []model.Dictionary{{Dim: 3}, {Dim: 3, Atoms: make([]float32, 7)}, {Dim: 3, Atoms: make([]float32, 6)}} {
			if _, err := newLearner(plain.x[:3], &d, 1, plain.options, 0); err == nil {
				t.Errorf("no error for %+v", d)
			}
		}
		if _, err := newLearner(plain.x, plain.dictionary, plain.norm, encode.Options{Steps: 1}, 0); err == nil {
			t.Error("no error for codes of no nonzeros")
		}
		if _, err := newLearner(plain.x[1:], plain.dictionary, plain.norm, plain.options, 0); err == nil {
			t.Error("no error for a row that lacks a number")
		}
	})
}

// learningProblem is a learning problem whose shape may be difficult for a device.
type learningProblem struct {
	name         string
	atoms, dim   int
	batches      []int // number of rows of each batch
	most         int   // limit of nonzeros per row; 0 for a sixth of the atoms
	nonnegative  bool
	centred      bool // the dictionary has a mean
	zeroRows     bool
	twice        bool // a batch contains every row twice in succession
	anchorWeight float64

	x          []float32 // rows of all batches
	order      []int32   // row numbers of all batches
	norm       float64
	dictionary *model.Dictionary
	options    encode.Options
}

// The sizes are chosen such that rounding never decides which of two nearly equal values is kept.
var learningProblems = []learningProblem{
	{name: "plain", atoms: 40, dim: 8, batches: []int{40, 30, 17}},
	{name: "nonnegative", atoms: 40, dim: 8, batches: []int{40, 30, 17}, nonnegative: true},
	{name: "anchored", atoms: 40, dim: 8, batches: []int{40, 30, 17}, anchorWeight: 0.7},
	{name: "anchored, odd sizes", atoms: 147, dim: 21, batches: []int{123}, anchorWeight: 0.7},
	{name: "with a mean", atoms: 24, dim: 6, batches: []int{40, 40}, centred: true},
	{name: "zero rows", atoms: 24, dim: 6, batches: []int{40, 40}, zeroRows: true},
	{name: "odd sizes", atoms: 147, dim: 21, batches: []int{131, 67}}, // several blocks of atoms, the last one partial
	{name: "a block and an atom", atoms: 33, dim: 8, batches: []int{40, 30}},
	{name: "several panels", atoms: 421, dim: 9, batches: []int{150}, most: 12},
	{name: "odd sizes, nonnegative", atoms: 147, dim: 21, batches: []int{131, 61}, nonnegative: true},
	{name: "rows twice", atoms: 40, dim: 8, batches: []int{40, 30, 17}, twice: true},
	{name: "dense codes", atoms: 40, dim: 30, batches: []int{40, 30, 17}, most: 36, nonnegative: true},
	{name: "wide", atoms: 70, dim: 300, batches: []int{50}},
	{name: "atoms that no row uses", atoms: 60, dim: 8, batches: []int{20, 5}, most: 1},
	{name: "one row", atoms: 12, dim: 4, batches: []int{1, 1, 1}},
	{name: "one atom", atoms: 1, dim: 4, batches: []int{20, 20}},
	{name: "one dimension", atoms: 5, dim: 1, batches: []int{20, 20}},
}

// make fills in the problem; scale is the scale of rows.
func (p learningProblem) make(scale float32) learningProblem {
	rows := 0
	for _, n := range p.batches {
		rows += n
	}
	// Reversed, the dictionary doesn't generate the rows.
	p.x, p.dictionary = encodetest.Problem(rows, p.dim, p.atoms)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range p.batches {
		first := len(p.order)
		for i, row := range rng.Perm(n) {
			if p.order = append(p.order, int32(first+row)); p.twice {
				p.order[first+i] = p.order[first+i/2*2]
			}
		}
	}
	slices.Reverse(p.dictionary.Atoms)
	for i := range p.x {
		if p.x[i] *= scale; p.zeroRows && i/p.dim%3 == 0 {
			p.x[i] = 0
		}
	}
	p.norm = math.Sqrt(squares(encodetest.Widen(p.x)) / float64(rows))
	for k := range p.atoms {
		d := p.dictionary.Atom(k)
		length := math.Sqrt(squares(encodetest.Widen(d)))
		for j := range d {
			d[j] = float32(float64(d[j]) / length * p.norm)
		}
	}
	if p.centred {
		p.dictionary.Mean = slices.Clone(p.x[:p.dim])
	}
	p.options = encode.Options{Lambda: 0.04 * p.norm * p.norm, Steps: 20, Nonzeros: p.most, Nonnegative: p.nonnegative}
	if p.most == 0 {
		p.options.Nonzeros = 1 + p.atoms/6
	}
	return p
}

func (p learningProblem) forgetting(batch int) float64 {
	if batch == 0 {
		return 0
	}
	return 0.7
}

func (p learningProblem) minibatches() (all []backend.Minibatch) {
	rest := p.order
	for i, n := range p.batches {
		all = append(all, backend.Minibatch{Rows: rest[:n], Forgetting: p.forgetting(i)})
		rest = rest[n:]
	}
	return all
}

func squares(x []float64) (sum float64) {
	for _, v := range x {
		sum += v * v
	}
	return sum
}

// atomsOf returns the atoms of l. It checks their squared norms.
func atomsOf(t *testing.T, l backend.Learned) []float32 {
	t.Helper()
	atoms, err := l.Dictionary()
	testonly.Must(t, err)
	squares, err := l.AtomSquares()
	testonly.Must(t, err)
	for k, want := range backend.AtomSquares(atoms, len(atoms)/len(squares)) {
		if got := squares[k]; math.Abs(got-want) > 1e-6*want { // a GPU rounds each square to float32
			t.Errorf("‖d‖² of atom %d is %v, want %v", k, got, want)
		}
	}
	return atoms
}

// results holds all results of learning.
type results struct {
	sums        backend.Sums
	codes, rows []float32 // G and B
	atoms       []float32
}

func learnedBy(t *testing.T, l backend.Learner, p learningProblem) (r results) {
	t.Helper()
	r.sums = learn(t, l, p.minibatches(), p.anchorWeight, 1)
	r.codes, r.rows, r.atoms = Saved(t, l, checkpoint.CodeProducts), Saved(t, l, checkpoint.RowProducts), atomsOf(t, l)
	return r
}

// learn returns the sums of steps of learning. It fails if the learner doesn't report each step.
func learn(t *testing.T, l backend.Learner, batches []backend.Minibatch, anchor, noise float64) backend.Sums {
	t.Helper()
	var got, want []int
	sums, err := l.Learn(t.Context(), batches, anchor, noise, func(n int) { got = append(got, n) })
	testonly.Must(t, err)
	for _, b := range batches {
		want = append(want, len(b.Rows))
	}
	if !slices.Equal(got, want) || sums.Steps != len(want) {
		t.Errorf("%d steps of %d rows, want %d", sums.Steps, got, want)
	}
	return sums
}

// learnerResumed compares a learner, bit by bit, with one that is saved and restored after a batch.
func learnerResumed(t *testing.T, newLearner NewLearner) {
	p := learningProblem{atoms: 147, dim: 21, batches: []int{60, 40}}.make(1)
	first, rest := p.order[:60], p.order[60:]
	learn := func(l backend.Learner, rows []int32, forgetting float64) (r results) {
		t.Helper()
		r.sums = learn(t, l, []backend.Minibatch{{Rows: rows, Forgetting: forgetting}}, 0.5, 1)
		r.atoms = atomsOf(t, l)
		return r
	}
	whole, from := newLearner.open(t, p, 0), newLearner.open(t, p, 0)
	learn(whole, first, 0)
	learn(from, first, 0)
	to := newLearner.open(t, p, 0) // with the same anchors
	testonly.Must(t, to.Restore(atomsOf(t, from)))
	copyState(t, from, to, map[checkpoint.Matrix]int{
		checkpoint.CodeProducts: p.atoms * p.atoms, checkpoint.RowProducts: p.atoms * p.dim, checkpoint.Direction: p.dim,
	})
	if want, got := learn(whole, rest, 0.7), learn(to, rest, 0.7); !reflect.DeepEqual(got, want) {
		t.Error("resumed, other bits are learned")
	}
}

// againstTape compares the metrics, G and B of each batch with the formulas, which encodetest compares with the tape
// machine. It compares the atoms with the tape machine.
func againstTape(t *testing.T, p learningProblem, tolerance LearnerTolerance, newLearner NewLearner) {
	x, start := slices.Clone(p.x), slices.Clone(p.dictionary.Atoms)
	l := newLearner.open(t, p, 0)
	s := statistics{p.atoms, p.dim, make([]float64, p.atoms*p.atoms), make([]float64, p.atoms*p.dim), encodetest.Widen(start), p.anchorWeight}
	rest := p.order
	for batch, n := range p.batches {
		at := func(what string) string { return fmt.Sprintf("batch %d: %s", batch+1, what) }
		atoms := atomsOf(t, l)
		before := encodetest.Widen(atoms)
		var spectrum backend.Spectrum
		if batch > 0 {
			spectrum.Direction = Saved(t, l, checkpoint.Direction)
		}
		size, err := spectrum.StepSize(&model.Dictionary{Dim: p.dim, Atoms: atoms})
		testonly.Must(t, err)
		sums := learn(t, l, p.minibatches()[batch:batch+1], p.anchorWeight, 1)
		if tolerance.Step != nil {
			size = tolerance.Step()
		}
		s.forget(p.forgetting(batch))
		wantSums, wantUsed := make([]float64, 3), make([]bool, p.atoms)
		var square float64
		for _, row := range rest[:n] {
			y := encodetest.Widen(p.x[int(row)*p.dim:][:p.dim])
			for j := range p.dictionary.Mean {
				y[j] -= float64(p.dictionary.Mean[j])
			}
			a := encodetest.CodeOf(y, before, size, p.options, p.atoms+1)
			for k, v := range a {
				if wantSums[1] += math.Abs(v); v != 0 {
					wantSums[2]++
					wantUsed[k] = true
				}
			}
			wantSums[0] += squares(encodetest.Residual(y, before, a))
			square += squares(y)
			s.add(a, y)
		}
		for i, got := range []float64{sums.RunningLoss, sums.L1, float64(sums.Nonzeros)} {
			if of := []float64{square, wantSums[1], wantSums[2]}[i]; !(math.Abs(got-wantSums[i]) <= tolerance.Codes*of) {
				t.Error(at(fmt.Sprintf("%s is %v, want %v", []string{"the loss", "Σ|a|", "the number of nonzeros"}[i], got, wantSums[i])))
			}
		}
		g, b := encodetest.Widen(Saved(t, l, checkpoint.CodeProducts)), encodetest.Widen(Saved(t, l, checkpoint.RowProducts))
		for name, m := range map[string][2][]float64{"G": {g, s.g}, "B": {b, s.b}} {
			var off float64
			for i, got := range m[0] {
				off += (got - m[1][i]) * (got - m[1][i])
			}
			if size := math.Sqrt(squares(m[1])); !(math.Sqrt(off) <= tolerance.Products*size) || size == 0 {
				t.Error(at(fmt.Sprintf("%s, of norm %v, is off by %.2g of it", name, size, math.Sqrt(off)/size)))
			}
		}
		if p.nonnegative && slices.Min(g) < 0 {
			t.Error(at(fmt.Sprintf("codes have a product of %v", slices.Min(g))))
		}
		if !slices.Equal(sums.Used, wantUsed) {
			t.Error(at(fmt.Sprintf("atoms used are %v, want %v", sums.Used, wantUsed)))
		}
		s.g, s.b = g, b
		want, got := slices.Clone(before), encodetest.Widen(atomsOf(t, l))
		s.update(t, want, p.norm)
		unused := 0
		for k := range p.atoms {
			atom := got[k*p.dim : (k+1)*p.dim]
			if used := s.g[k*p.atoms+k] != 0; !used {
				if unused++; !slices.Equal(atom, before[k*p.dim:(k+1)*p.dim]) {
					t.Error(at(fmt.Sprintf("atom %d has moved, and no row uses it", k)))
				}
			} else if batch == 0 && !sums.Used[k] {
				t.Error(at(fmt.Sprintf("atom %d is used, and that is not said", k)))
			}
			if d := math.Sqrt(squares(atom))/p.norm - 1; !(math.Abs(d) <= 1e-6) {
				t.Error(at(fmt.Sprintf("the norm of atom %d is off by %.2g of it", k, d)))
			}
			for j, v := range atom {
				if !(math.Abs(v-want[k*p.dim+j]) <= tolerance.Atoms*p.norm) {
					t.Fatal(at(fmt.Sprintf("number %d of atom %d is %v, want %v, from %v", j, k, v, want[k*p.dim+j], before[k*p.dim+j])))
				}
			}
		}
		if unused == p.atoms || unused == 0 && p.most == 1 {
			t.Error(at(fmt.Sprintf("no row uses %d of %d atoms: a poor test", unused, p.atoms)))
		}
		rest = rest[n:]
	}
	if !slices.Equal(p.x, x) || !slices.Equal(p.dictionary.Atoms, start) {
		t.Error("the learner has changed the rows, or the dictionary that it was given")
	}
}

// statistics holds G = Σ aᵀa, B = Σ aᵀy and the other inputs of a dictionary update.
type statistics struct {
	atoms, dim int
	g, b       []float64

	anchors      []float64
	anchorWeight float64
}

func (s *statistics) forget(forgetting float64) {
	for _, m := range [][]float64{s.g, s.b} {
		for i := range m {
			m[i] *= forgetting
		}
	}
}

func (s *statistics) add(a, y []float64) {
	for k, v := range a {
		for j, other := range a {
			s.g[k*s.atoms+j] += v * other
		}
		for j, other := range y {
			s.b[k*s.dim+j] += v * other
		}
	}
}

// update updates the atoms of d in blocks by [graph.Learn].
func (s *statistics) update(t *testing.T, d []float64, norm float64) {
	t.Helper()
	const block = 32 // a copy of backend.BlockAtoms, so that a change of it fails
	for lo := 0; lo < s.atoms; lo += block {
		hi := min(lo+block, s.atoms)
		learn, err := graph.Learn(graph.Spec{Atoms: hi - lo, Dim: s.dim, Norm: norm}, 1)
		testonly.Must(t, err)
		var g, b []float64 // G and B of the block; B without the parts of other atoms
		for k := lo; k < hi; k++ {
			row, rest := s.g[k*s.atoms:][:s.atoms], slices.Clone(s.b[k*s.dim:][:s.dim])
			for other, product := range row {
				if other < lo || other >= hi {
					gonum.AddScaled(rest, -product, d[other*s.dim:][:s.dim])
				}
			}
			g, b = append(g, row[lo:hi]...), append(b, rest...)
		}
		atoms := d[lo*s.dim : hi*s.dim]
		out, err := learn.Run(map[string][]float64{"D": atoms, "G": g, "B": b, "W": s.anchors[lo*s.dim : hi*s.dim], "c": {s.anchorWeight}})
		testonly.Must(t, err)
		copy(atoms, out["D"])
	}
}

// leastUse tests that an atom is updated if and only if the sum of its squared codes exceeds 1e-8, and that an atom
// without a direction stays.
func leastUse(t *testing.T, newLearner NewLearner) {
	p := learningProblem{atoms: 5, dim: 3, batches: []int{5}}.make(1)
	clear(p.x) // all codes are zero
	l := newLearner.open(t, p, 0)
	want := statistics{p.atoms, p.dim, make([]float64, p.atoms*p.atoms), make([]float64, p.atoms*p.dim), encodetest.Widen(p.dictionary.Atoms), 0}
	for k, use := range []float64{1, 1e-6, 1.1e-8, 0.9e-8, 1} {
		want.g[k*p.atoms+k], want.b[k*p.dim] = use, use*p.norm
	}
	noDirection := 4 * p.dim
	want.b[noDirection] = math.NaN()
	for m, values := range map[checkpoint.Matrix][]float64{checkpoint.CodeProducts: want.g, checkpoint.RowProducts: want.b, checkpoint.Direction: {1, 0, 0}} {
		testonly.Must(t, l.LoadState(m, func(part []float32) error {
			for i := range part {
				part[i] = float32(values[i])
			}
			values = values[len(part):]
			return nil
		}))
	}
	learn(t, l, []backend.Minibatch{{Rows: p.order, Forgetting: 1}}, 0, 0)
	moved := slices.Clone(want.anchors)
	want.update(t, moved, p.norm)
	got := encodetest.Widen(atomsOf(t, l))
	testonly.Near(t, "atoms", got[:noDirection], moved[:noDirection], 1e-5)
	if !slices.Equal(got[noDirection:], want.anchors[noDirection:]) {
		t.Errorf("an atom with a NaN in its products moves to %v", got[noDirection:])
	}
	first, last := p.dim*2, p.dim*3
	used := gonum.Distance(moved[first:last], want.anchors[first:last], 2)
	unused := gonum.Distance(moved[last:noDirection], want.anchors[last:noDirection], 2)
	if used < 0.01*p.norm || unused > 1e-6*p.norm {
		t.Errorf("the atom of least use moves by %v, and the next by %v", used, unused)
	}
}
