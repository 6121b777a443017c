package graph

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats/scalar"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

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
	return problem{
		spec:  Spec{Atoms: atoms, Dim: dim, Lambda: 0.3, Tau: 0.01, Rate: 0.05},
		words: words,
		inputs: map[string][]float64{
			"X": normal(words*dim, 1), "A": a, "D": normal(atoms*dim, 0.6),
			"H": squares(atoms * dim), "S": normal(words*atoms, 2), "Q": squares(words * atoms),
			"n": {float64(words)}, "t": {3},
		},
	}
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
				compare(t, l.name+" gradient of "+name, got[name], want, 1e-5)
			}
			penalty := make([]float64, len(p.inputs["D"]))
			for i, d := range p.inputs["D"] {
				penalty[i] = 2 * p.spec.Tau * d
			}
			compare(t, "gradient of the penalty", got["penalty"], penalty, 1e-12)
		}
	}
}

// compare fails where got differs from want by more than tol, relative to the
// largest element wanted.
func compare(t *testing.T, what string, got, want []float64, tol float64) {
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
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
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

var steps = []struct {
	name     string
	build    Build
	byHand   func(problem) map[string][]float64
	words    []int
	products int // that the algorithm needs
}{
	{"dictionary", Dictionary, dictionaryByHand, []int{1, 6}, 4}, // AD, AᵀR, (A∘A)ᵀ(R∘R), AP
	{"code", Code, codeByHand, []int{1, 6}, 3},                   // AD, RDᵀ, aD
	{"authors", Authors, authorsByHand, []int{1}, 3},             // aD, aᵀr, rDᵀ
	{"evaluate", Evaluate, func(p problem) map[string][]float64 {
		loss := dictionaryByHand(p)["loss"]
		return map[string][]float64{"loss": loss, "error": loss}
	}, []int{1, 6}, 1}, // AD
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
	for _, step := range steps {
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
						compare(t, what, got[name], want[name], tol)
					}
				}
			}
		}
	}
}

// Only the few values that the algorithm needs are left after lowering.
func TestPrograms(t *testing.T) {
	for _, step := range steps {
		for _, l := range losses {
			s := newProblem(1, 4, 9, 4).spec
			s.Loss = l.loss
			p, err := Compile(step.build, s)
			if err != nil {
				t.Fatal(err)
			}
			products := 0
			for _, s := range p.Steps {
				products += len(s.Products)
				for _, v := range slices.Concat(s.Products, s.Body, s.Totals, s.Scalars) {
					_, x := v.ConstantFactor()
					if c, _ := x.ConstantFactor(); c != 1 {
						t.Errorf("%s, %s: chain of constants in %s", step.name, l.name, v.Formula())
					}
					if len(v.Args) > 0 && !slices.ContainsFunc(v.Args, func(a *Value) bool { return a.Op != Const }) {
						t.Errorf("%s, %s: constants not folded in %s", step.name, l.name, v.Formula())
					}
				}
			}
			if products != step.products {
				t.Errorf("%s, %s: %d products, want %d:\n%v", step.name, l.name, products, step.products, p)
			}
		}
	}
}

// Lowering keeps the meaning: the program, interpreted plainly in float64 and
// step by step, computes what the tape computes.
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
				in := newInterpreter(p)
				in.run(program)
				for _, out := range program.Outputs {
					what := fmt.Sprintf("%s, %s, %+v: %s", step.name, l.name, p.spec, out.Name)
					compare(t, what, in.read(out.Value), want[out.Name], 1e-12)
				}
			}
		}
	}
}

// interpreter runs a program as a backend does: it has the inputs, which results
// overwrite, and what steps have kept. A value that is neither does not exist.
type interpreter struct {
	problem
	kept  map[*Value][]float64
	local map[*Value][]float64 // of the current step
}

func newInterpreter(p problem) *interpreter {
	p.inputs = maps.Clone(p.inputs)
	return &interpreter{problem: p, kept: make(map[*Value][]float64)}
}

func (in *interpreter) run(p *Program) {
	for _, s := range p.Steps {
		in.local = make(map[*Value][]float64)
		for _, v := range slices.Concat(s.Products, s.Body) {
			in.local[v] = in.compute(v)
			for _, out := range p.Outputs {
				if _, isInput := in.inputs[out.Name]; isInput && out.Value == v {
					in.inputs[out.Name] = in.local[v]
				}
			}
		}
		for _, v := range slices.Concat(s.Totals, s.Scalars) {
			in.kept[v] = in.compute(v)
		}
		for _, v := range s.Keeps {
			in.kept[v] = in.local[v]
		}
	}
	in.local = nil
}

// read returns a value that is at hand, computing only the factors of a product.
func (in *interpreter) read(v *Value) []float64 {
	if x, ok := in.local[v]; ok {
		return x
	}
	if x, ok := in.kept[v]; ok {
		return x
	}
	switch v.Op {
	case Load, Const, Transpose, Square:
		return in.compute(v)
	}
	panic(fmt.Sprintf("%v is not at hand", v))
}

func (in *interpreter) shape(v *Value) (rows, cols int) {
	n, k, l := in.sizes()
	size := map[Axis]int{One: 1, Words: n, Atoms: k, Dims: l}
	return size[v.Shape[0]], size[v.Shape[1]]
}

func (in *interpreter) compute(v *Value) []float64 {
	rows, cols := in.shape(v)
	out := make([]float64, rows*cols)
	args := make([][]float64, len(v.Args))
	for i, a := range v.Args {
		args[i] = in.read(a)
	}
	at := func(i, r, c int) float64 { // element r, c of argument i, broadcast
		ar, ac := in.shape(v.Args[i])
		return args[i][min(r, ar-1)*ac+min(c, ac-1)]
	}
	for r := range rows {
		for c := range cols {
			out[r*cols+c] = in.element(v, r, c, at)
		}
	}
	return out
}

func (in *interpreter) element(v *Value, r, c int, at func(i, r, c int) float64) float64 {
	_, cols := in.shape(v)
	switch v.Op {
	case Load:
		return in.inputs[v.Name][r*cols+c]
	case Const:
		return v.Const
	case Add:
		return at(0, r, c) + at(1, r, c)
	case Sub:
		return at(0, r, c) - at(1, r, c)
	case Mul:
		return at(0, r, c) * at(1, r, c)
	case Div:
		return at(0, r, c) / at(1, r, c)
	case Square:
		return at(0, r, c) * at(0, r, c)
	case Sqrt:
		return math.Sqrt(at(0, r, c))
	case Abs:
		return math.Abs(at(0, r, c))
	case Sign:
		return map[bool]float64{true: 1}[at(0, r, c) > 0] - map[bool]float64{true: 1}[at(0, r, c) < 0]
	case NotNegative:
		return map[bool]float64{true: 1}[at(0, r, c) >= 0]
	case Relu:
		return max(at(0, r, c), 0)
	case Shrink:
		return v.Shrinkage.Apply(at(0, r, c), at(1, r, c), at(2, r, c))
	case Ratio:
		return ClampedRatio(at(0, r, c), at(1, r, c))
	case ScaleRows:
		return at(0, r, c) * at(1, r, 0)
	case Transpose:
		return at(0, c, r)
	}
	var sum float64
	argRows, argCols := in.shape(v.Args[0])
	switch v.Op {
	case Sum:
		for i := range argRows * argCols {
			sum += at(0, i/argCols, i%argCols)
		}
	case RowSum:
		for j := range argCols {
			sum += at(0, r, j)
		}
	case MatMul:
		for j := range argCols {
			sum += at(0, r, j) * at(1, j, c)
		}
	}
	return sum
}

func TestSpecErrors(t *testing.T) {
	good := Spec{Atoms: 4, Dim: 2, Lambda: 1, Tau: 1, Rate: 1}
	for want, change := range map[string]func(*Spec){
		"number of atoms is 0": func(s *Spec) { s.Atoms = 0 },
		"vector length is -1":  func(s *Spec) { s.Dim = -1 },
		"lambda is -1":         func(s *Spec) { s.Lambda = -1 },
		"lambda is NaN":        func(s *Spec) { s.Lambda = math.NaN() },
		"tau is +Inf":          func(s *Spec) { s.Tau = math.Inf(1) },
		"rate is 0":            func(s *Spec) { s.Rate = 0 },
	} {
		s := good
		change(&s)
		for _, step := range steps {
			if _, err := step.build(s, 3, tensor.Float32); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one saying %q", step.name, err, want)
			}
		}
	}
}

// A loss that lowering cannot handle is refused by the operation's name (the
// gradient of softplus is a sigmoid).
func TestCompileErrors(t *testing.T) {
	s := Spec{Atoms: 4, Dim: 2, Rate: 1, Loss: gorgonia.Softplus}
	if _, err := Compile(Code, s); err == nil || !strings.Contains(err.Error(), `operation "sigmoid" has no lowering`) {
		t.Errorf("error %v", err)
	}
	overwritten := func(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
		b, err := newBuilder("overwritten", s, words, dtype)
		if err != nil {
			return nil, err
		}
		A, D := b.input("A"), b.input("D")
		newD := b.sub(D, b.product(b.transpose(A), b.product(A, D)))
		W := b.product(A, newD)
		b.output("D", newD)
		b.output("loss", b.sum(b.mul(D, b.product(b.transpose(A), W))))
		return b.done()
	}
	// The total would be that of the new H.
	summed := func(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
		b, err := newBuilder("summed", s, words, dtype)
		if err != nil {
			return nil, err
		}
		X, A, H := b.input("X"), b.input("A"), b.input("H")
		b.output("H", b.add(H, b.product(b.transpose(A), X)))
		b.output("sum", b.sum(H))
		return b.done()
	}
	if _, err := Compile(summed, s); err == nil || !strings.Contains(err.Error(), "reads H after it was overwritten") {
		t.Errorf("error %v", err)
	}
	// Here a product overwrites D before a product reads it.
	product := func(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
		b, err := newBuilder("product", s, words, dtype)
		if err != nil {
			return nil, err
		}
		X, A, D := b.input("X"), b.input("A"), b.input("D")
		newD := b.product(b.transpose(A), X)
		b.output("D", newD)
		b.output("loss", b.sum(b.mul(b.product(A, newD), b.product(A, D))))
		b.output("late", b.sum(b.mul(D, b.product(b.transpose(A), b.product(A, newD)))))
		return b.done()
	}
	if _, err := Compile(product, s); err == nil || !strings.Contains(err.Error(), "reads D after it was overwritten") {
		t.Errorf("error %v", err)
	}
	if _, err := Compile(overwritten, s); err == nil || !strings.Contains(err.Error(), "reads D after it was overwritten") {
		t.Errorf("error %v", err)
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
	// dictionary: 4 steps, 4 products
	//   1 decode n×L
	//       p1 = A · D
	//       R = X − p1
	//       loss = Σ R²
	//       keep R
	//   2 accumulate K×L
	//       p2 = Aᵀ · R
	//       p3 = (A²)ᵀ · (R²)
	//       H′ = H + max(4·p3 − 8e−05·D∘p2 + 4e−10·n∘D², 0)
	//       v1 = (2e−05·n∘D − 2·p2)/√(H′ + 1e−30)
	//       keep H′, v1
	//   3 decode n×L
	//       p4 = A · v1
	//       s1 = Σ R∘p4
	//       s2 = Σ p4²
	//       alpha = clamp(−20·s1 / s2, 0, 1)
	//   4 elementwise K×L
	//       D′ = D − 0.05·alpha∘v1
	//       keep D′
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
