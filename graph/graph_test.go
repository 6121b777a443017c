package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats/scalar"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"overcomplete/internal/testonly/near"
)

// losses are ours and some that only a user would have, which together take every
// elementwise operation that there is.
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
	{"pseudo-huber", expression(func(b *builder, r *gorgonia.Node) *gorgonia.Node {
		root := b.sqrt(b.add(b.mul(b.constant(0.25), b.square(r)), b.constant(1)))
		return b.mul(b.constant(4), b.sub(root, b.constant(1)))
	}), func(r float64) float64 { return 4 * (math.Sqrt(1+r*r/4) - 1) }},
	{"geman-mcclure", expression(func(b *builder, r *gorgonia.Node) *gorgonia.Node {
		return b.sub(b.constant(1), b.div(b.constant(1), b.add(b.constant(1), b.square(r))))
	}), func(r float64) float64 { return r * r / (1 + r*r) }},
	{"leaky", expression(func(b *builder, r *gorgonia.Node) *gorgonia.Node {
		return b.div(b.sub(b.square(r), b.relu(r)), b.add(b.abs(r), b.constant(2)))
	}), func(r float64) float64 { return (r*r - max(r, 0)) / (math.Abs(r) + 2) }},
}

func expression(loss func(b *builder, r *gorgonia.Node) *gorgonia.Node) Loss {
	return func(r *gorgonia.Node) (*gorgonia.Node, error) {
		b := builder{graph: r.Graph(), dtype: r.Dtype()}
		return loss(&b, r), b.err
	}
}

// problem is a random small problem, its matrices as the tape takes them.
type problem struct {
	spec   Spec
	words  int
	inputs map[string][]float64
}

func (p problem) sizes() (n, k, l int) { return p.words, p.spec.Atoms, p.spec.Dim }

func newProblem(seed uint64, words, atoms, dim int) problem {
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
	a := normal(words*atoms, 0.5)
	for i := range a {
		if rng.IntN(3) == 0 {
			a[i] = 0
		}
	}
	p := problem{
		spec:  Spec{Atoms: atoms, Dim: dim, Lambda: 0.3, Tau: 0.01, Rate: 0.05, Norm: 1.5},
		words: words,
		inputs: map[string][]float64{
			"X": normal(words*dim, 1), "A": a, "D": normal(atoms*dim, 0.6),
			"H": squares(atoms * dim), "S": normal(words*atoms, 2), "Q": squares(words * atoms),
			"n": {float64(words)}, "t": {3},
			"Z": normal(words*atoms, 0.5), "s": {0.05}, "m": {0.7}, "B": normal(atoms*dim, 3), "G": make([]float64, atoms*atoms),
			"W": normal(atoms*dim, 0.6), "c": {0.8},
		},
	}
	// G is that of codes which have not used one of the atoms, nor has B then.
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

func run(t *testing.T, build Build, p problem, dtype tensor.Dtype) map[string][]float64 {
	t.Helper()
	e, err := build(p.spec, p.words, dtype)
	if err != nil {
		t.Fatal(err)
	}
	tape := NewTape(e)
	defer tape.Close()
	out, err := tape.Run(p.inputs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// gradients is a step with nothing but the loss, the penalty and their gradients.
func gradients(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
	b, err := newBuilder("gradients", s, words, dtype)
	if err != nil {
		return nil, err
	}
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

// The loss is evaluated here from its definition, so that neither the tape's
// forward nor its backward pass is taken on trust.
func TestGradientsMatchFiniteDifferences(t *testing.T) {
	for _, l := range losses {
		for seed := range uint64(5) {
			p := newProblem(seed, 4, 7, 3)
			p.spec.Loss = l.loss
			got := run(t, gradients, p, tensor.Float64)
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
				near.Equal(t, l.name+" gradient of "+name, got[name], want, 1e-5)
			}
			penalty := make([]float64, len(p.inputs["D"]))
			for i, d := range p.inputs["D"] {
				penalty[i] = 2 * p.spec.Tau * d
			}
			near.Equal(t, "gradient of the penalty", got["penalty"], penalty, 1e-12)
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

func encodeByHand(p problem) map[string][]float64 {
	n, k, l := p.sizes()
	A, Z, D, size, m := p.inputs["A"], p.inputs["Z"], p.inputs["D"], p.inputs["s"][0], p.inputs["m"][0]
	R := residual(p, map[string][]float64{"X": p.inputs["X"], "A": Z, "D": D})
	newA, newZ := make([]float64, n*k), make([]float64, n*k)
	for i := range n {
		var against float64
		for a := i * k; a < (i+1)*k; a++ {
			x := Z[a]
			for j := range l {
				x += 2 * size * R[i*l+j] * D[a%k*l+j]
			}
			switch threshold := p.spec.Lambda * size; {
			case x > threshold:
				newA[a] = x - threshold
			case x < -threshold && !p.spec.Nonnegative:
				newA[a] = x + threshold
			}
			against += (Z[a] - newA[a]) * (newA[a] - A[a])
		}
		for a := i * k; a < (i+1)*k; a++ {
			if newZ[a] = newA[a]; against <= 0 {
				newZ[a] += m * (newA[a] - A[a])
			}
		}
	}
	return map[string][]float64{"A": newA, "Z": newZ}
}

func learnByHand(p problem) map[string][]float64 {
	_, k, l := p.sizes()
	D, G, B, W, c := p.inputs["D"], p.inputs["G"], p.inputs["B"], p.inputs["W"], p.inputs["c"][0]
	newD := slices.Clone(D)
	for a := range k {
		u := newD[a*l:][:l]
		var square float64
		for j := range u {
			descent := B[a*l+j] - c*(D[a*l+j]-W[a*l+j])
			for other := range k {
				descent -= G[a*k+other] * D[other*l+j]
			}
			if G[a*k+a] > 1e-8 {
				u[j] += descent / (G[a*k+a] + c)
			}
			square += u[j] * u[j]
		}
		for j := range u {
			u[j] *= p.spec.Norm / math.Sqrt(square)
		}
	}
	return map[string][]float64{"D": newD}
}

// statement is a step of the package's, its formulas and the numbers of words that it is
// tested with.
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
}

// encoding are the steps of encoders and of online learning.
var encoding = []statement{
	{"encode", Encode, encodeByHand, []int{1, 6}},
	{"learn", Learn, learnByHand, []int{1}},
}

// boldRate makes steps so long that the line search and the damping shorten
// them; TestBoldRate checks that they do.
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

// The tape against the written-out formulas. Float64 sums differ only in their
// order; float32 has 24 bits and its sums here are short.
func TestTapeMatchesFormulas(t *testing.T) {
	for _, step := range slices.Concat(steps, encoding) {
		for _, words := range step.words {
			for _, nonneg := range []bool{false, true} {
				p := newProblem(7, words, 9, 4)
				p.spec.Nonnegative = nonneg
				p.spec.Rate = boldRate
				want := step.byHand(p)
				for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-12, tensor.Float32: 3e-6} {
					got := run(t, step.build, p, dtype)
					if len(got) != len(want) {
						t.Errorf("%s: %d outputs, want %d", step.name, len(got), len(want))
					}
					for name := range want {
						what := fmt.Sprintf("%s, %d words, nonnegative %v, %v: %s", step.name, words, nonneg, dtype, name)
						near.Equal(t, what, got[name], want[name], tol)
					}
				}
			}
		}
	}
}

// Lowering keeps the meaning: the program, interpreted plainly in float64 and
// step by step, computes what the tape computes, whether what was fused is run as
// one or as the steps that it is made of.
func TestProgramsMatchTape(t *testing.T) {
	for _, step := range steps {
		for _, l := range losses {
			// Without a penalty, signs and factors fall differently.
			for _, change := range []func(*Spec){
				func(*Spec) {},
				func(s *Spec) { s.Nonnegative = true },
				func(s *Spec) { s.Tau = 0 },
				func(s *Spec) { s.Lambda = 0 },
			} {
				p := newProblem(7, step.words[len(step.words)-1], 9, 4)
				p.spec.Loss, p.spec.Rate = l.loss, boldRate
				change(&p.spec)
				want := run(t, step.build, p, tensor.Float64)
				program, err := Compile(step.build, p.spec)
				if err != nil {
					t.Fatal(err)
				}
				for _, fused := range []bool{false, true} {
					in := newInterpreter(p, program)
					for _, s := range program.Steps {
						in.run(s, fused)
					}
					for name := range want {
						what := fmt.Sprintf("%s, %s, %+v, fused %v: %s", step.name, l.name, p.spec, fused, name)
						near.Equal(t, what, in.read(name), want[name], 1e-12)
					}
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
		for _, step := range slices.Concat(steps, encoding) {
			if _, err := step.build(s, 3, tensor.Float32); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one saying %q", step.name, err, want)
			}
		}
	}
	for want, builds := range map[string][]Build{"rate is 0": {Dictionary, Code, Authors}, "norm is 0": {Learn}} {
		for _, build := range builds {
			if _, err := build(Spec{Atoms: 4, Dim: 2}, 3, tensor.Float32); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one saying %q", err, want)
			}
		}
	}
}

// custom is a step of a test's own.
func custom(outputs func(b *builder)) Build {
	return func(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
		b, err := newBuilder("custom", s, words, dtype)
		if err != nil {
			return nil, err
		}
		outputs(b)
		return b.done()
	}
}

// changed is a step with one of its outputs changed.
func changed(build Build, output string, change func(b *builder, n *gorgonia.Node) *gorgonia.Node) Build {
	return func(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
		e, err := build(s, words, dtype)
		if err != nil {
			return nil, err
		}
		b := builder{graph: e.Graph, dtype: dtype}
		for i, out := range e.Outputs {
			if out.Name == output {
				e.Outputs[i].Node = change(&b, out.Node)
			}
		}
		return e, b.err
	}
}

// What is not in the list of steps is refused, by program, step and value.
func TestCompileErrors(t *testing.T) {
	square := func(b *builder, n *gorgonia.Node) *gorgonia.Node { return b.square(n) }
	for _, test := range []struct {
		name  string
		build Build
		want  string
	}{
		{"S with more added", changed(Code, "S", func(b *builder, n *gorgonia.Node) *gorgonia.Node { return b.add(n, b.square(n)) }),
			"step 2 (correlate) of the code program: S′ = v1 + v1² is no dual averaging"},
		{"another Q", changed(Code, "Q", func(b *builder, n *gorgonia.Node) *gorgonia.Node { return b.sqrt(n) }),
			"step 2 (correlate) of the code program: Q′ = √(v1) is no dual averaging"},
		{"codes used twice", changed(Code, "A", square), "step 4 (elementwise) of the code program: no step computes n×K values"},
		{"codes that nobody wants", custom(func(b *builder) {
			X, A, D, S, Q, t := b.input("X"), b.input("A"), b.input("D"), b.input("S"), b.input("Q"), b.input("t")
			g := b.grads(b.loss(b.sub(X, b.product(A, D))), A)[0]
			newS, newQ, _ := b.dualAveraging(g, S, Q, t)
			b.output("S", newS)
			b.output("Q", newQ)
		}), "step 2 (correlate) of the custom program: it leaves [S′ Q′]"},
		{"gradients by a batch", custom(func(b *builder) {
			R := b.sub(b.input("X"), b.product(b.input("A"), b.input("D")))
			b.output("S", b.product(R, b.transpose(b.expr.Inputs[2].Node)))
		}), "step 2 (correlate) of the custom program: it leaves [S′]"},
		{"products with X", custom(func(b *builder) {
			b.output("D", b.product(b.transpose(b.input("A")), b.input("X")))
		}), "step 1 (accumulate) of the custom program: no kernel for the product Aᵀ · X"},
		{"squares in a decode step", custom(func(b *builder) {
			b.output("sum", b.sum(b.product(b.square(b.input("A")), b.square(b.input("D")))))
		}), "step 1 (decode) of the custom program: no kernel for the product (A²) · (D²)"},
		{"a product of atoms", custom(func(b *builder) {
			D := b.input("D")
			b.output("sum", b.sum(b.product(b.transpose(D), D)))
		}), "step 1 (accumulate) of the custom program: no step computes L×L values"},
		{"elementwise codes", custom(func(b *builder) { b.output("sum", b.sum(b.square(b.input("A")))) }),
			"step 1 (elementwise) of the custom program: no step computes n×K values"},
		{"an input read after it is overwritten", custom(func(b *builder) {
			X, A, D, H := b.input("X"), b.input("A"), b.input("D"), b.input("H")
			b.output("H", b.add(H, b.product(b.transpose(A), b.sub(X, b.product(A, D)))))
			b.output("sum", b.sum(H)) // the total would be that of the new H
		}), "step 2 (accumulate) of the custom program: it reads H after it was overwritten"},
		{"a product with what is overwritten", custom(func(b *builder) {
			A, D := b.input("A"), b.input("D")
			newD := b.sub(D, b.product(b.transpose(A), b.product(A, D)))
			b.output("D", newD)
			b.output("sum", b.sum(b.mul(D, b.product(b.transpose(A), b.product(A, newD)))))
		}), "step 4 (accumulate) of the custom program: it reads D after it was overwritten"},
		{"the old codes after the new", func(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
			e, err := Authors(s, words, dtype)
			b := builder{graph: e.Graph, expr: e, err: err}
			X, A, D, newA := e.Inputs[0].Node, e.Inputs[1].Node, e.Inputs[2].Node, e.Outputs[5].Node
			R := b.sub(X, b.product(A, D))
			b.output("sum", b.sum(b.product(A, b.product(b.transpose(newA), R))))
			return b.done()
		}, "step 5 (decode) of the authors program: A · p4 reads A after it was overwritten"},
		{"a matrix that is not the training's", custom(func(b *builder) {
			b.output("W", b.product(b.input("A"), b.input("D")))
		}), "result W of the custom program: no step leaves A · D there"},
		{"a matrix of another shape", custom(func(b *builder) {
			b.output("H", b.product(b.input("A"), b.input("D")))
		}), "result H of the custom program: no step leaves A · D there"},
		{"an input", custom(func(b *builder) { b.output("D", b.input("D")) }), "result D of the custom program: no step leaves D there"},
		{"a number that is given", custom(func(b *builder) { b.output("n²", b.square(b.input("n"))) }), "n² is n², with nothing to compute"},
		{"codes of another loss", func(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
			s.Loss = Huber(0.3)
			return Encode(s, words, dtype)
		}, "step 1 (proximal) of the encode program: A′ = soft(Z + 2·s∘p2, 0) is no soft-thresholding of Z after a step along (X − Z · D) · Dᵀ"},
		{"codes in another way", changed(Encode, "A", square), "step 1 (proximal) of the encode program: A′ = v1² is no soft-thresholding"},
		{"a threshold of another size", custom(func(b *builder) {
			X, A, Z, D := b.input("X"), b.input("A"), b.input("Z"), b.input("D")
			g := b.grads(b.loss(b.sub(X, b.product(Z, D))), Z)[0]
			newA := b.apply(softOp(), b.sub(Z, b.mul(b.input("s"), g)), b.input("m"))
			b.output("A", newA)
			b.output("Z", b.add(newA, b.sub(newA, A)))
		}), "step 1 (proximal) of the custom program: A′ = soft(Z + 2·s∘p2, m) is no soft-thresholding"},
		{"another momentum", changed(Encode, "Z", square), "step 1 (proximal) of the encode program: Z′ = (A′ + diag(onward)·(A′ − A))² is no momentum with restart"},
		{"codes without a point beyond", custom(func(b *builder) { b.output("A", b.apply(softOp(), b.input("Z"), b.input("s"))) }),
			"step 1 (proximal) of the custom program: it computes [A], want A and Z"},
		{"atoms with another length", changed(Learn, "D", square), "step 1 (atom update) of the learn program: D′ = unit(U)² does not move atoms"},
		{"atoms that go too far", custom(func(b *builder) {
			D, G, B := b.input("D"), b.input("G"), b.input("B")
			step := b.apply(overDiagonalOp(LeastUse), b.sub(b.product(G, D), b.add(B, B)), G, b.input("c"))
			b.output("D", b.apply(unitOp(), b.sub(D, step), D))
		}), "step 1 (atom update) of the custom program: D′ = unit(D − (diag(G) + c)⁻¹·(p1 − 2·B)) does not move atoms to D + (diag(G) + c)⁻¹·(B − G · D − c∘(D − W))"},
		{"products of codes that are kept", custom(func(b *builder) { b.output("G", b.square(b.input("G"))) }),
			"step 1 (atom update) of the custom program: it computes [G], want D"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := Compile(test.build, Spec{Atoms: 4, Dim: 2, Rate: 1, Norm: 1})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q\n%v", err, test.want, p)
			}
		})
	}
}

// The step that training spends most of the dictionary's time in is recognised,
// whatever the loss and the penalty: on the CPU it is much faster than its parts.
func TestDictionaryIsFused(t *testing.T) {
	for _, l := range losses {
		for _, tau := range []float64{0, 1e-5} {
			p, err := Compile(Dictionary, Spec{Atoms: 4, Dim: 2, Tau: tau, Rate: 0.05, Loss: l.loss})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := p.Steps[len(p.Steps)-1].(*Update); !ok || len(p.Steps) != 2 {
				t.Errorf("%s, τ = %v: no update in\n%v", l.name, tau, p)
			}
		}
	}
}

// Temporaries that are not needed at the same time share memory: a GPU keeps them in
// shared memory, which is small.
func TestTemporariesShareMemory(t *testing.T) {
	for _, step := range steps {
		for _, l := range losses[:2] {
			p, err := Compile(step.build, Spec{Atoms: 4, Dim: 2, Tau: 1e-5, Rate: 0.05, Loss: l.loss})
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for _, v := range p.Vectors {
				if v.Rows == One {
					rows++
				}
			}
			if rows > 4 {
				t.Errorf("%s, %s: %d temporary rows", step.name, l.name, rows)
			}
		}
	}
}

// Lowering knows Gorgonia's operations by what their String methods say, which is
// no promise of Gorgonia's: go.mod pins the version.
func TestGorgoniaStrings(t *testing.T) {
	type node = *gorgonia.Node
	for want, make := range map[string]func(b *builder, A, D node) node{
		"A · D":           func(b *builder, A, D node) node { return b.product(A, D) },
		"Dᵀ · D":          func(b *builder, A, D node) node { return b.product(b.transpose(D), D) },
		"D + D²":          func(b *builder, A, D node) node { return b.add(D, b.square(D)) },
		"D − D²":          func(b *builder, A, D node) node { return b.sub(D, b.square(D)) },
		"D∘√(D)":          func(b *builder, A, D node) node { return b.mul(D, b.sqrt(D)) },
		"D/|D|":           func(b *builder, A, D node) node { return b.div(D, b.abs(D)) },
		"−1·D":            func(b *builder, A, D node) node { return b.neg(D) },
		"max(D, 0)":       func(b *builder, A, D node) node { return b.relu(D) },
		"Σ D":             func(b *builder, A, D node) node { return b.sum(D) },
		"Σ_row D":         func(b *builder, A, D node) node { return b.rowSum(D) },
		"[Σ_row D ≥ 0]":   func(b *builder, A, D node) node { return b.notNegative(b.rowSum(D)) },
		"diag(Σ_row D)·D": func(b *builder, A, D node) node { return b.scaleRows(D, b.rowSum(D)) },
		// Of gradients: broadcasts of a scalar, products with a transposed factor.
		"sign(D)":      func(b *builder, A, D node) node { return b.grads(b.sum(b.abs(D)), D)[0] },
		"2·D":          func(b *builder, A, D node) node { return b.grads(b.sum(b.square(D)), D)[0] },
		"2·Aᵀ · A · D": func(b *builder, A, D node) node { return b.grads(b.sum(b.square(b.product(A, D))), D)[0] },
		"2·A · D · Dᵀ": func(b *builder, A, D node) node { return b.grads(b.sum(b.square(b.product(A, D))), A)[0] },
	} {
		b, err := newBuilder("test", Spec{Atoms: 5, Dim: 3, Rate: 1}, 4, tensor.Float64)
		if err != nil {
			t.Fatal(err)
		}
		b.output("out", make(b, b.input("A"), b.input("D")))
		e, err := b.done()
		if err != nil {
			t.Fatal(err)
		}
		l := newLowering(e)
		v, err := l.lower(e.Outputs[0].Node)
		if err != nil || v.formula(true) != want {
			t.Errorf("%s is lowered to %v, error %v: this Gorgonia calls its operations otherwise than the one lower.go was written for", want, v, err)
		}
	}
}

// A loss is refused by the name of the operation that is not listed.
func TestCompileRefusesLoss(t *testing.T) {
	_, err := Compile(Code, Spec{Atoms: 4, Dim: 2, Rate: 1, Loss: gorgonia.Softplus})
	want := `graph: lowering S of the code step: operation "sigmoid" has no lowering` // the gradient of softplus
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The listing is what `overcomplete graph` shows.
func ExampleCompile() {
	p, err := Compile(Dictionary, Spec{Atoms: 3000, Dim: 300, Lambda: 0.5, Tau: 1e-5, Rate: 0.05})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	// Output:
	// dictionary: 2 steps, 4 products
	//   1 decode n×L
	//       p1 = A · D
	//       R = X − p1
	//       loss = Σ R²
	//       keep R
	//   2 update, three steps as one
	//       accumulate K×L
	//           p2 = Aᵀ · R
	//           p3 = (A²)ᵀ · (R²)
	//           H′ = H + max(4·p3 − 8e−05·D∘p2 + 4e−10·n∘D², 0)
	//           v1 = (2e−05·n∘D − 2·p2)/√(H′ + 1e−30)
	//           keep H′, v1
	//       decode n×L
	//           p4 = A · v1
	//           s1 = Σ R∘p4
	//           s2 = Σ p4²
	//           alpha = clamp(−20·s1 / s2, 0, 1)
	//       elementwise K×L
	//           D′ = D − 0.05·alpha∘v1
	//           keep D′
}

// Another loss is another expression; nothing else changes.
func ExampleHuber() {
	p, err := Compile(Code, Spec{Atoms: 3000, Dim: 300, Lambda: 0.5, Tau: 1e-5, Rate: 0.05, Loss: Huber(0.3), Nonnegative: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	// Output:
	// code: 3 steps, 3 products
	//   1 decode n×L
	//       p1 = A · D
	//       R = X − p1
	//       v1 = R − max(|R| − 0.3, 0)∘sign(R)
	//       keep v1
	//   2 correlate n×K
	//       p2 = v1 · Dᵀ
	//       S′ = S − 2·p2
	//       Q′ = Q + 4·p2²
	//       a = max(shrink(S′, Q′, t; λ=0.5, η=0.05), 0)
	//       keep S′, Q′, a
	//   3 decode n×L
	//       p = a · D
	//       β = clamp(Σ_row X∘p / Σ_row p², 0, 1)
	//       A′ = diag(β)·a
	//       v2 = X − diag(β)·p
	//       v3 = v2²
	//       loss = Σ (v3 − max(|v2| − 0.3, 0)²)
	//       error = Σ v3
	//       keep A′
}
