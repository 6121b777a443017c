package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	gonum "gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"

	"overcomplete/testonly"
)

// losses lists the losses.
var losses = []struct {
	name string
	loss Loss
	each func(r float64) float64 // ℓ(r), stated independently
}{
	{"squared", Squared, func(r float64) float64 { return r * r }},
	{"huber", Huber(0.7), func(r float64) float64 {
		if math.Abs(r) <= 0.7 {
			return r * r
		}
		return 2*0.7*math.Abs(r) - 0.7*0.7
	}},
}

// problem is a small random problem with its matrices row-major, as Run expects them.
type problem struct {
	spec   Spec
	words  int
	inputs map[string][]float64
}

func (p problem) sizes() (n, k, l int) { return p.words, p.spec.Atoms, p.spec.Dim }

func newProblem(seed uint64, rows, atoms, dim int) problem {
	rng := rand.New(rand.NewPCG(seed, 0))
	normal := func(size int, scale float64) []float64 {
		x := make([]float64, size)
		for i := range x {
			x[i] = scale * rng.NormFloat64()
		}
		return x
	}
	squares := func(size int) []float64 {
		x := normal(size, 1)
		for i := range x {
			x[i] *= x[i]
		}
		return x
	}
	a := normal(rows*atoms, 0.5)
	for i := range a {
		if rng.IntN(3) == 0 {
			a[i] = 0
		}
	}
	p := problem{
		spec:  Spec{Atoms: atoms, Dim: dim, Lambda: 0.3, Tau: 0.01, Rate: 0.05, Norm: 1.5},
		words: rows,
		inputs: map[string][]float64{
			"X": normal(rows*dim, 1), "A": a, "D": normal(atoms*dim, 0.6),
			"H": squares(atoms * dim), "S": normal(rows*atoms, 2), "Q": squares(rows * atoms),
			"n": {float64(rows)}, "t": {3},
			"Z": normal(rows*atoms, 0.5), "s": {0.05}, "m": {0.7}, "B": normal(atoms*dim, 3), "G": make([]float64, atoms*atoms),
			"W": normal(atoms*dim, 0.6), "c": {0.8},
		},
	}
	// G and B are sums over codes that use all atoms except one.
	codes, unused := normal(2*atoms*atoms, 1), 1
	for i := range codes {
		if i%atoms == unused {
			codes[i] = 0
		}
	}
	for i := range p.inputs["G"] {
		for n := 0; n < len(codes); n += atoms {
			p.inputs["G"][i] += codes[n+i/atoms] * codes[n+i%atoms]
		}
	}
	clear(p.inputs["B"][unused*dim:][:dim])
	return p
}

func run(t *testing.T, build Build, p problem) map[string][]float64 {
	t.Helper()
	e, err := build(p.spec, p.words)
	testonly.Must(t, err)
	out, err := e.Run(p.inputs)
	testonly.Must(t, err)
	return out
}

// gradients builds an expression of only the loss, the penalty and their gradients.
func gradients(s Spec, rows int) (*Expression, error) {
	b := newBuilder("gradients", s, rows)
	X, A, D := b.input("X"), b.input("A"), b.input("D")
	loss := b.loss(b.sub(X, b.product(A, D)))
	grads := b.grads(loss, X, A, D)
	b.output("loss", loss)
	b.output("X", grads[0])
	b.output("A", grads[1])
	b.output("D", grads[2])
	b.output("penalty", b.penaltyGradient(D))
	return b.done()
}

// The oracle evaluates the loss by its definition, so that the test covers the tape's forward and backward
// passes.
func TestGradientsMatchFiniteDifferences(t *testing.T) {
	for _, l := range losses {
		for seed := range uint64(5) {
			p := newProblem(seed, 4, 7, 3)
			p.spec.Loss = l.loss
			got := run(t, gradients, p)
			loss := func(inputs map[string][]float64) float64 {
				var sum float64
				for _, r := range residual(p, inputs) {
					sum += l.each(r)
				}
				return sum
			}
			if want := loss(p.inputs); !scalar.EqualWithinRel(got["loss"][0], want, 1e-12) {
				t.Errorf("%s: loss %v, want %v", l.name, got["loss"][0], want)
			}
			for _, name := range []string{"X", "A", "D"} {
				want := fd.Gradient(nil, func(x []float64) float64 {
					inputs := map[string][]float64{"X": p.inputs["X"], "A": p.inputs["A"], "D": p.inputs["D"]}
					inputs[name] = x
					return loss(inputs)
				}, p.inputs[name], &fd.Settings{Formula: fd.Central})
				testonly.Near(t, l.name+" gradient of "+name, got[name], want, 1e-5)
			}
			penalty := make([]float64, len(p.inputs["D"]))
			for i, d := range p.inputs["D"] {
				penalty[i] = 2 * p.spec.Tau * d
			}
			testonly.Near(t, "gradient of the penalty", got["penalty"], penalty, 1e-12)
		}
	}
}

func residual(p problem, in map[string][]float64) []float64 {
	n, k, l := p.sizes()
	r := slices.Clone(in["X"])
	for i := range n {
		for a := range k {
			for j := range l {
				r[i*l+j] -= in["A"][i*k+a] * in["D"][a*l+j]
			}
		}
	}
	return r
}

// The formulas of the algorithm for the squared loss, written out by hand.

func dictionaryByHand(p problem) map[string][]float64 {
	n, k, l := p.sizes()
	A, D, tau := p.inputs["A"], p.inputs["D"], p.spec.Tau
	R := residual(p, p.inputs)
	H, P, W := slices.Clone(p.inputs["H"]), make([]float64, k*l), make([]float64, n*l)
	var loss, wr, ww float64
	for _, r := range R {
		loss += r * r
	}
	for a := range k {
		for j := range l {
			var M, N float64
			d := D[a*l+j]
			for i := range n {
				M += A[i*k+a] * R[i*l+j]
				N += A[i*k+a] * A[i*k+a] * R[i*l+j] * R[i*l+j]
			}
			G := -2*M + 2*tau*float64(n)*d
			H[a*l+j] += max(0, 4*N-8*tau*d*M+4*tau*tau*float64(n)*d*d)
			P[a*l+j] = p.spec.Rate * G / math.Sqrt(H[a*l+j]+Epsilon)
			for i := range n {
				W[i*l+j] += A[i*k+a] * P[a*l+j]
			}
		}
	}
	for i := range W {
		wr += W[i] * R[i]
		ww += W[i] * W[i]
	}
	alpha := min(1, max(0, -wr/ww))
	newD := slices.Clone(D)
	for i := range newD {
		newD[i] -= alpha * P[i]
	}
	return map[string][]float64{"loss": {loss}, "alpha": {alpha}, "H": H, "D": newD}
}

func codesByHand(p problem, R, D []float64) (S, Q, A []float64) {
	n, k, l := p.sizes()
	S, Q, A = slices.Clone(p.inputs["S"]), slices.Clone(p.inputs["Q"]), make([]float64, n*k)
	for i := range n {
		for a := range k {
			var g float64
			for j := range l {
				g -= 2 * R[i*l+j] * D[a*l+j]
			}
			S[i*k+a] += g
			Q[i*k+a] += g * g
			s := S[i*k+a]
			if u := math.Abs(s) - p.inputs["t"][0]*p.spec.Lambda; u > 0 {
				A[i*k+a] = -s / math.Abs(s) * p.spec.Rate * u / math.Sqrt(Q[i*k+a])
			}
			if p.spec.Nonnegative {
				A[i*k+a] = max(A[i*k+a], 0)
			}
		}
	}
	return S, Q, A
}

func codeByHand(p problem) map[string][]float64 {
	n, k, l := p.sizes()
	D := p.inputs["D"]
	S, Q, A := codesByHand(p, residual(p, p.inputs), D)
	var loss float64
	for i := range n {
		x, decoded := p.inputs["X"][i*l:][:l], make([]float64, l)
		var xp, pp float64
		for j := range decoded {
			for a := range k {
				decoded[j] += A[i*k+a] * D[a*l+j]
			}
			xp += x[j] * decoded[j]
			pp += decoded[j] * decoded[j]
		}
		beta := 1.0
		if pp > 0 {
			beta = min(1, max(0, xp/pp))
		}
		for a := range k {
			A[i*k+a] *= beta
		}
		for j := range decoded {
			loss += (x[j] - beta*decoded[j]) * (x[j] - beta*decoded[j])
		}
	}
	return map[string][]float64{"S": S, "Q": Q, "A": A, "loss": {loss}, "error": {loss}}
}

func authorsByHand(p problem) map[string][]float64 {
	_, k, l := p.sizes()
	R := residual(p, p.inputs)
	D, H := slices.Clone(p.inputs["D"]), slices.Clone(p.inputs["H"])
	var loss float64
	for _, r := range R {
		loss += r * r
	}
	for a := range k {
		for j := range l {
			g := -2*p.inputs["A"][a]*R[j] + 2*p.spec.Tau*D[a*l+j]
			H[a*l+j] += g * g
			D[a*l+j] -= p.spec.Rate * g / math.Sqrt(H[a*l+j])
		}
	}
	S, Q, A := codesByHand(p, R, D)
	return map[string][]float64{"loss": {loss}, "H": H, "D": D, "S": S, "Q": Q, "A": A}
}

// curvature returns h_a; see [Learn].
func curvature(g []float64, atoms, a int) float64 {
	var sum float64
	for _, v := range g[a*atoms:][:atoms] {
		sum += math.Abs(v)
	}
	return max(g[a*atoms+a], sum/1.8)
}

// statement is a step of the package with its formulas and the numbers of rows to test. The gradients of TestLearnMinimises
// test the step "learn", and encodetest's FloatCode tests the step "encode".
type statement struct {
	name   string
	build  Build
	byHand func(problem) map[string][]float64
	words  []int
}

var steps = []statement{
	{"dictionary", Dictionary, dictionaryByHand, []int{1, 6}},
	{"code", Code, codeByHand, []int{1, 6}},
	{"authors", Authors, authorsByHand, []int{1}},
	{"evaluate", Evaluate, func(p problem) map[string][]float64 {
		loss := dictionaryByHand(p)["loss"]
		return map[string][]float64{"loss": loss, "error": loss}
	}, []int{1, 6}},
	{"encode", Encode, nil, nil},
	{"learn", Learn, nil, nil},
}

// boldRate is a learning rate at which the line search and the damping shorten steps, as TestBoldRate checks.
const boldRate = 2

func TestBoldRate(t *testing.T) {
	p := newProblem(7, 6, 9, 4)
	p.spec.Rate = boldRate
	if alpha := dictionaryByHand(p)["alpha"][0]; alpha <= 0 || alpha >= 1 {
		t.Errorf("α = %v", alpha)
	}
	S, Q, undamped := codesByHand(p, residual(p, p.inputs), p.inputs["D"])
	damped := codeByHand(p)
	if !slices.Equal(S, damped["S"]) || !slices.Equal(Q, damped["Q"]) || slices.Equal(undamped, damped["A"]) {
		t.Error("no code was damped")
	}
}

// The tape's results equal the handwritten formulas, except for the order of sums.
func TestTapeMatchesFormulas(t *testing.T) {
	for _, step := range steps {
		for _, rows := range step.words {
			for _, nonneg := range []bool{false, true} {
				p := newProblem(7, rows, 9, 4)
				p.spec.Nonnegative, p.spec.Rate = nonneg, boldRate
				want, got := step.byHand(p), run(t, step.build, p)
				if len(got) != len(want) {
					t.Errorf("%s: %d outputs, want %d", step.name, len(got), len(want))
				}
				for name := range want {
					testonly.Near(t, fmt.Sprintf("%s, %d words, nonnegative %v: %s", step.name, rows, nonneg, name), got[name], want[name], 1e-12)
				}
			}
		}
	}
}

func TestSpecErrors(t *testing.T) {
	good := Spec{Atoms: 4, Dim: 2, Lambda: 1, Tau: 1, Rate: 1}
	for want, change := range map[string]func(*Spec){
		"number of atoms is 0": func(s *Spec) { s.Atoms = 0 },
		"vector length is -1":  func(s *Spec) { s.Dim = -1 },
		"lambda is -1":         func(s *Spec) { s.Lambda = -1 },
		"lambda is NaN":        func(s *Spec) { s.Lambda = math.NaN() },
		"tau is +Inf":          func(s *Spec) { s.Tau = math.Inf(1) },
		"rate is -2":           func(s *Spec) { s.Rate = -2 },
		"norm is NaN":          func(s *Spec) { s.Norm = math.NaN() },
	} {
		s := good
		change(&s)
		for _, step := range steps {
			_, err := step.build(s, 3)
			testonly.ErrorSays(t, step.name, err, want)
		}
	}
	for want, builds := range map[string][]Build{"rate is 0": {Dictionary, Code, Authors}, "norm is 0": {Learn}} {
		for _, build := range builds {
			_, err := build(Spec{Atoms: 4, Dim: 2}, 3)
			testonly.ErrorSays(t, "other builders", err, want)
		}
	}
}

// An atom that shares few rows with the others moves to the minimum of tr(DᵀGD) − 2tr(DᵀB) + c‖D − W‖² given the
// others, and is then scaled. The gradient is zero at the minimum. Other atoms take a part of that step.
func TestLearnMinimises(t *testing.T) {
	p := newProblem(5, 1, 7, 3)
	_, k, l := p.sizes()
	for i := range k * k {
		if a, b := i/k, i%k; a != b && (a > 4 || b > 4) { // the last atoms share few rows with others
			p.inputs["G"][i] /= 50
		}
	}
	D, G, c := p.inputs["D"], p.inputs["G"], p.inputs["c"][0]
	got := run(t, Learn, p)["D"]
	minima := 0
	for a := range k {
		atom := got[a*l:][:l]
		if norm := gonum.Norm(atom, 2); math.Abs(norm-p.spec.Norm) > 1e-12 {
			t.Errorf("atom %d has norm %v, want %v", a, norm, p.spec.Norm)
		}
		objective := func(atom []float64) float64 {
			D := slices.Clone(D)
			copy(D[a*l:], atom)
			return learnObjective(p, D)
		}
		settings := &fd.Settings{Formula: fd.Central}
		slope := fd.Gradient(nil, objective, D[a*l:][:l], settings)
		direction := slices.Clone(D[a*l:][:l]) // the old direction, for an atom without use
		if g := G[a*k+a]; g > 0 {
			h := curvature(G, k, a)
			gonum.AddScaled(direction, -1/(2*(h+c)), slope)
			if norm := gonum.Norm(fd.Gradient(nil, objective, direction, settings), 2); h == g {
				if minima++; norm > 1e-7 {
					t.Errorf("atom %d: the gradient has norm %v at the minimum", a, norm)
				}
			}
		}
		gonum.Scale(p.spec.Norm/gonum.Norm(direction, 2), direction)
		testonly.Near(t, fmt.Sprint("atom ", a), atom, direction, 1e-6)
	}
	if minima == 0 || minima == k {
		t.Errorf("%d of %d atoms minimise the objective: a poor test", minima, k)
	}
}

// learnObjective returns tr(DᵀGD) − 2tr(DᵀB) + c‖D − W‖².
func learnObjective(p problem, D []float64) (sum float64) {
	_, k, l := p.sizes()
	G, B, W, c := p.inputs["G"], p.inputs["B"], p.inputs["W"], p.inputs["c"][0]
	for i := range k {
		for j := range l {
			for other := range k {
				sum += D[i*l+j] * G[i*k+other] * D[other*l+j]
			}
			sum += -2*D[i*l+j]*B[i*l+j] + c*(D[i*l+j]-W[i*l+j])*(D[i*l+j]-W[i*l+j])
		}
	}
	return sum
}

// Atoms that all rows use together converge: later updates hardly move them. Without the bound on the curvature they
// would overshoot together, and never settle.
func TestLearnConverges(t *testing.T) {
	p := newProblem(3, 1, 32, 5)
	_, k, l := p.sizes()
	rng := rand.New(rand.NewPCG(4, 0))
	p.inputs["c"] = []float64{0}
	clear(p.inputs["G"])
	clear(p.inputs["B"])
	for range 200 { // rows with positive codes of all atoms
		a, x := make([]float64, k), make([]float64, l)
		for i := range a {
			a[i] = 1 + rng.Float64()
			gonum.AddScaled(x, a[i], p.inputs["D"][i*l:][:l])
		}
		for i, v := range a {
			gonum.AddScaled(p.inputs["G"][i*k:][:k], v, a)
			gonum.AddScaled(p.inputs["B"][i*l:][:l], v, x)
		}
	}
	for i := range p.inputs["D"] {
		p.inputs["D"][i] = rng.NormFloat64()
	}
	var change float64
	for range 100 {
		D := run(t, Learn, p)["D"]
		change = gonum.Distance(D, p.inputs["D"], math.Inf(1)) / p.spec.Norm
		p.inputs["D"] = D
	}
	if change > 0.01 {
		t.Errorf("after 100 updates an atom still moves by %.2g of its norm", change)
	}
}

// An atom without use keeps its direction, and so does an atom whose minimum is the zero vector.
func TestLearnKeepsAtoms(t *testing.T) {
	p := problem{spec: Spec{Atoms: 4, Dim: 2, Norm: 2}, words: 1, inputs: map[string][]float64{
		"D": {3, 4, 0, -1, 1, 0, 1, 0},
		"G": {1e-9, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 1e-6}, // the first is unused, the last is used little
		"B": {7, 7, 0, 0, 0, 3, 0, 3e-6},                            // the minimum of the second is 0
		"W": make([]float64, 8), "c": {0},
	}}
	testonly.Near(t, "D", run(t, Learn, p)["D"], []float64{1.2, 1.6, 0, -2, 0, 2, 0, 2}, 1e-15)
}
