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

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/testonly/encodetest"
	"overcomplete/internal/testonly/near"
	"overcomplete/model"
)

// NewLearner makes the learner under test. What a device calls workers is its own
// affair; 0 is its default.
type NewLearner func(x []float32, d *model.Dictionary, norm float64, o encode.Options, workers int) (backend.Learner, error)

// open makes a learner for a test, at whose end it is closed.
func (n NewLearner) open(t *testing.T, p learning, workers int) backend.Learner {
	t.Helper()
	l, err := n(p.x, p.dictionary, p.norm, p.options, workers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// LearnerTolerance is how far a learner may be from the truth: what it has measured and
// remembers of its codes from that of the formulas' codes of the dictionary that it had, as a
// part of it, and then each number of its dictionary from the formula's, as a part of the atoms' norm.
type LearnerTolerance struct {
	Codes, Atoms float64

	// Encoder, if not nil, makes an encoder of the device that takes the steps that the learner has
	// just taken. Its codes stand for the formulas', where these have other nonzeros because of the
	// device's rounding. Such an encoder has a test of its own.
	Encoder func(d *model.Dictionary, o encode.Options) (encode.Encoder, error)
}

// LearnerFloat32 is for learners that compute in float32: 25 steps build on each other's
// rounding in the codes. An atom moves by a difference of sums, which rounds to 6e-8 of
// these; rows that few atoms leave little of make it some hundred times smaller.
var LearnerFloat32 = LearnerTolerance{Codes: 3e-5, Atoms: 1e-5}

// RunLearner tests that a device's learner does what [backend.Learner] says.
func RunLearner(t *testing.T, tolerance LearnerTolerance, newLearner NewLearner) {
	for _, p := range learnings {
		t.Run(p.name, func(t *testing.T) { againstTape(t, p.make(1), tolerance, newLearner) })
	}
	plain := learnings[0].make(1)
	t.Run("workers", func(t *testing.T) {
		large := learning{atoms: 130, dim: 40, batches: []int{300, 100}}.make(1)
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
		p := learnings[0].make(scale)
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
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l := newLearner.open(t, plain, 0)
		if err := l.Learn(ctx, plain.order, 0, 0, &backend.Sums{Used: make([]bool, plain.atoms)}); err != context.Canceled {
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

// learning is what there is to learn from, of a shape that may be awkward for a device.
type learning struct {
	name        string
	atoms, dim  int
	batches     []int // rows of each
	most        int   // nonzeros of a code; 0 for a sixth of the atoms
	nonnegative bool
	centred     bool // the dictionary has a mean
	zeroRows    bool
	twice       bool    // rows are in a batch twice, one after the other
	pull        float64 // towards the anchors

	x          []float32 // as many rows as all batches have
	order      []int32   // the rows of all batches
	norm       float64
	dictionary *model.Dictionary
	options    encode.Options
}

// Sizes are such that no rounding changes which values are kept, of two that are nearly equal.
var learnings = []learning{
	{name: "plain", atoms: 40, dim: 8, batches: []int{40, 30, 17}},
	{name: "nonnegative", atoms: 40, dim: 8, batches: []int{40, 30, 17}, nonnegative: true},
	{name: "anchored", atoms: 40, dim: 8, batches: []int{40, 30, 17}, pull: 0.7},
	{name: "anchored, odd sizes", atoms: 147, dim: 21, batches: []int{123}, pull: 0.7},
	{name: "with a mean", atoms: 24, dim: 6, batches: []int{40, 40}, centred: true},
	{name: "zero rows", atoms: 24, dim: 6, batches: []int{40, 40}, zeroRows: true},
	{name: "odd sizes", atoms: 147, dim: 21, batches: []int{131, 67}}, // blocks of atoms, and one that is not full
	{name: "odd sizes, nonnegative", atoms: 147, dim: 21, batches: []int{131, 61}, nonnegative: true},
	{name: "rows twice", atoms: 40, dim: 8, batches: []int{40, 30, 17}, twice: true},
	{name: "wide", atoms: 70, dim: 300, batches: []int{50}},
	{name: "atoms that no row uses", atoms: 60, dim: 8, batches: []int{20, 5}, most: 1},
	{name: "one row", atoms: 12, dim: 4, batches: []int{1, 1, 1}},
	{name: "one atom", atoms: 1, dim: 4, batches: []int{20, 20}},
	{name: "one dimension", atoms: 5, dim: 1, batches: []int{20, 20}},
}

// make fills in what there is to learn from, of rows that are scaled.
func (p learning) make(scale float32) learning {
	rows := 0
	for _, n := range p.batches {
		rows += n
	}
	// A dictionary that the rows are not of.
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

// remembered is how much of G and B before counts after a batch.
func (p learning) remembered(batch int) float64 {
	if batch == 0 {
		return 0
	}
	return 0.7
}

func squares(x []float64) (sum float64) {
	for _, v := range x {
		sum += v * v
	}
	return sum
}

func atomsOf(t *testing.T, l backend.Learner) []float32 {
	t.Helper()
	atoms, err := l.Dictionary()
	if err != nil {
		t.Fatal(err)
	}
	return atoms
}

// hasLearned is all that comes of learning.
type hasLearned struct {
	sums        backend.Sums
	codes, rows []float32 // G and B
	atoms       []float32
}

func learnedBy(t *testing.T, l backend.Learner, p learning) (r hasLearned) {
	t.Helper()
	r.sums.Used = make([]bool, p.atoms)
	rest := p.order
	for i, n := range p.batches {
		if err := l.Learn(t.Context(), rest[:n], p.remembered(i), p.pull, &r.sums); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	r.codes, r.rows, r.atoms = saved(t, l, checkpoint.CodeProducts), saved(t, l, checkpoint.RowProducts), atomsOf(t, l)
	return r
}

// saved returns a matrix of a learner.
func saved(t *testing.T, l backend.Learner, m checkpoint.Matrix) (all []float32) {
	t.Helper()
	if err := l.SaveState(m, func(part []float32) error {
		all = append(all, part...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// learnerResumed compares, bit by bit, a learner with one that was saved and restored on the
// way.
func learnerResumed(t *testing.T, newLearner NewLearner) {
	p := learning{atoms: 147, dim: 21, batches: []int{60, 40}}.make(1)
	first, rest := p.order[:60], p.order[60:]
	learn := func(l backend.Learner, rows []int32, remember float64) (r hasLearned) {
		t.Helper()
		r.sums.Used = make([]bool, p.atoms)
		if err := l.Learn(t.Context(), rows, remember, 0.5, &r.sums); err != nil {
			t.Fatal(err)
		}
		r.atoms = atomsOf(t, l)
		return r
	}
	from := newLearner.open(t, p, 0)
	learn(from, first, 0)
	to := newLearner.open(t, p, 0) // from the same anchors
	if err := to.Restore(atomsOf(t, from)); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("disk")
	for m, size := range map[checkpoint.Matrix]int{checkpoint.CodeProducts: p.atoms * p.atoms, checkpoint.RowProducts: p.atoms * p.dim, checkpoint.Direction: p.dim} {
		saved := saved(t, from, m)
		if len(saved) != size {
			t.Fatalf("%d numbers of %s saved, want %d", len(saved), m, size)
		}
		if err := to.LoadState(m, func(part []float32) error {
			saved = saved[copy(part, saved):]
			return nil
		}); err != nil || len(saved) > 0 {
			t.Fatalf("%d numbers of %s were not restored; error %v", len(saved), m, err)
		}
		fails := func([]float32) error { return failure }
		if err := from.SaveState(m, fails); err != failure {
			t.Errorf("error %v of saving, want %v", err, failure)
		}
		if err := newLearner.open(t, p, 0).LoadState(m, fails); err != failure {
			t.Errorf("error %v of restoring, want %v", err, failure)
		}
	}
	if want, got := learn(from, rest, 0.7), learn(to, rest, 0.7); !reflect.DeepEqual(got, want) {
		t.Error("resumed, other bits are learned")
	}
}

// againstTape compares what is measured and remembered of each batch with the formulas, which
// encodetest compares with the tape machine, and the atoms with theirs, which graph compares with it.
func againstTape(t *testing.T, p learning, tolerance LearnerTolerance, newLearner NewLearner) {
	x, start := slices.Clone(p.x), slices.Clone(p.dictionary.Atoms)
	l := newLearner.open(t, p, 0)
	s := statistics{p.atoms, p.dim, make([]float64, p.atoms*p.atoms), make([]float64, p.atoms*p.dim), encodetest.Widen(start), p.pull}
	rest := p.order
	for batch, n := range p.batches {
		at := func(what string) string { return fmt.Sprintf("batch %d: %s", batch+1, what) }
		atoms := atomsOf(t, l)
		before := encodetest.Widen(atoms)
		sums := backend.Sums{RunningLoss: 1, L1: 2, Nonzeros: 3, Used: make([]bool, p.atoms)} // which it adds to
		if err := l.Learn(t.Context(), rest[:n], p.remembered(batch), p.pull, &sums); err != nil {
			t.Fatal(err)
		}
		own := tolerance.codes(t, p, atoms, rest[:n])
		s.forget(p.remembered(batch))
		wantSums, wantUsed := []float64{1, 2, 3}, make([]bool, p.atoms)
		var square float64
		for i, row := range rest[:n] {
			y := encodetest.Widen(p.x[int(row)*p.dim:][:p.dim])
			for j := range p.dictionary.Mean {
				y[j] -= float64(p.dictionary.Mean[j])
			}
			a := encodetest.Code(y, before, p.options)
			if own != nil {
				a = encodetest.Row(own, i)
			}
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
		g, b := encodetest.Widen(saved(t, l, checkpoint.CodeProducts)), encodetest.Widen(saved(t, l, checkpoint.RowProducts))
		for name, m := range map[string][2][]float64{"G": {g, s.g}, "B": {b, s.b}} {
			var off float64
			for i, got := range m[0] {
				off += (got - m[1][i]) * (got - m[1][i])
			}
			// A product of two codes is off by what both are.
			if size := math.Sqrt(squares(m[1])); !(math.Sqrt(off) <= 2*tolerance.Codes*size) || size == 0 {
				t.Error(at(fmt.Sprintf("%s, of norm %v, is off by %.2g of it", name, size, math.Sqrt(off)/size)))
			}
		}
		if p.nonnegative && slices.Min(g) < 0 {
			t.Error(at(fmt.Sprintf("codes have a product of %v", slices.Min(g))))
		}
		if (tolerance.Codes == LearnerFloat32.Codes || own != nil) && !slices.Equal(sums.Used, wantUsed) {
			t.Error(at(fmt.Sprintf("atoms used are %v, want %v", sums.Used, wantUsed)))
		}
		s.g, s.b = g, b
		want, got := slices.Clone(before), encodetest.Widen(atomsOf(t, l))
		s.move(want, p.norm)
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

// codes returns those that the tolerance's encoder makes of some rows, or nil.
func (tolerance LearnerTolerance) codes(t *testing.T, p learning, atoms []float32, rows []int32) *encode.Codes {
	t.Helper()
	if tolerance.Encoder == nil {
		return nil
	}
	e, err := tolerance.Encoder(&model.Dictionary{Dim: p.dim, Atoms: atoms, Mean: p.dictionary.Mean}, p.options)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var x []float32
	for _, i := range rows {
		x = append(x, p.x[int(i)*p.dim:][:p.dim]...)
	}
	return encodetest.Encode(t, e, x)
}

// statistics are G = Σ aᵀa and B = Σ aᵀy, and what else says where atoms go.
type statistics struct {
	atoms, dim int
	g, b       []float64

	anchors []float64
	pull    float64
}

func (s *statistics) forget(remember float64) {
	for _, m := range [][]float64{s.g, s.b} {
		for i := range m {
			m[i] *= remember
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

// move moves each atom of d in turn to the minimum, by the formula of [overcomplete/graph.Learn].
func (s *statistics) move(d []float64, norm float64) {
	const leastUse = 1e-8 // stated again, so that another constant in the program fails
	for k := range s.atoms {
		atom, g := d[k*s.dim:][:s.dim], s.g[k*s.atoms:][:s.atoms]
		if !(g[k] > leastUse) {
			continue
		}
		moved := make([]float64, s.dim)
		for j := range moved {
			rest := s.b[k*s.dim+j] - s.pull*(atom[j]-s.anchors[k*s.dim+j])
			for other, product := range g {
				rest -= product * d[other*s.dim+j]
			}
			moved[j] = atom[j] + rest/(g[k]+s.pull)
		}
		length := math.Sqrt(squares(moved))
		for j := range atom {
			atom[j] = norm * moved[j] / length
		}
	}
}

// leastUse tests that atoms move whose codes have a Σa² above 1e-8, and no others.
func leastUse(t *testing.T, newLearner NewLearner) {
	p := learning{atoms: 4, dim: 3, batches: []int{5}}.make(1)
	clear(p.x) // of which no code has a nonzero
	l := newLearner.open(t, p, 0)
	want := statistics{p.atoms, p.dim, make([]float64, p.atoms*p.atoms), make([]float64, p.atoms*p.dim), encodetest.Widen(p.dictionary.Atoms), 0}
	for k, use := range []float64{1, 1e-6, 1.1e-8, 0.9e-8} {
		want.g[k*p.atoms+k], want.b[k*p.dim] = use, use*p.norm
	}
	for m, values := range map[checkpoint.Matrix][]float64{checkpoint.CodeProducts: want.g, checkpoint.RowProducts: want.b, checkpoint.Direction: {1, 0, 0}} {
		if err := l.LoadState(m, func(part []float32) error {
			for i := range part {
				part[i] = float32(values[i])
			}
			values = values[len(part):]
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Learn(t.Context(), p.order, 1, 0, &backend.Sums{Used: make([]bool, p.atoms)}); err != nil {
		t.Fatal(err)
	}
	moved := slices.Clone(want.anchors)
	want.move(moved, p.norm)
	near.Equal(t, "atoms", encodetest.Widen(atomsOf(t, l)), moved, 1e-5)
	if first, last := p.dim*2, p.dim*3; slices.Equal(moved[first:last], want.anchors[first:last]) || !slices.Equal(moved[last:], want.anchors[last:]) {
		t.Error("the last atom moves, or the one before it does not")
	}
}
