package backendtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/testonly/near"
	"overcomplete/model"
	"overcomplete/vectors"
)

// RunProgram compiles a step, runs it once on all of a trainer's words, in an epoch,
// and returns the results that are numbers. What else it computes is the trainer's.
type RunProgram func(b backend.Trainer, build graph.Build, spec graph.Spec, epoch int) (map[string]float64, error)

// oneStep is how far a device that computes in float32 may be from the tape machine
// after one step, as a part of the largest number: it rounds to 6e-8 relative, in sums
// of some tens of terms, and AdaGrad and the ratios of sums divide by small ones.
const oneStep = 2e-5

// RunPrograms tests that a device runs what graph.Compile accepts, not only the steps
// that it trains with, to what the tape machine computes, and that what is refused is
// refused in graph's own words.
func RunPrograms(t *testing.T, newTrainer New, run RunProgram) {
	losses := map[string]graph.Loss{"squared": graph.Squared, "huber": graph.Huber(0.4), "pseudo-huber": pseudoHuber, "bounded": bounded}
	for _, build := range []graph.Build{graph.Dictionary, graph.Code, graph.Authors, graph.Evaluate} {
		for name, loss := range losses {
			for _, method := range []model.Method{model.Signed, model.Nonnegative} {
				t.Run(fmt.Sprintf("%s/%s/%s", nameOf(t, build), name, method), func(t *testing.T) {
					runProgram(t, newTrainer, run, build, func(p *backend.Problem) {
						p.Loss, p.Hyperparameters.Method = loss, method
					})
				})
			}
		}
	}
	for _, c := range customs {
		t.Run(c.name, func(t *testing.T) {
			runProgram(t, newTrainer, run, c.build, func(*backend.Problem) {})
		})
	}
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			b, p := start(t, newTrainer, func(*backend.Problem) {})
			_, err := run(b, r.build, p.Spec(), 1)
			_, want := graph.Compile(r.build, p.Spec())
			if err == nil || want == nil || err.Error() != want.Error() || !strings.Contains(err.Error(), r.want) {
				t.Errorf("error %v, graph says %v; want one with %q", err, want, r.want)
			}
		})
	}
	t.Run("loss of an unlisted operation", func(t *testing.T) {
		p := problems[0].make(model.Minibatch, 1)
		p.Loss, p.Hyperparameters.Loss = gorgonia.Softplus, "softplus"
		_, want := graph.Compile(graph.Dictionary, p.Spec())
		if _, err := newTrainer(p, 0); err == nil || want == nil || err.Error() != want.Error() || !strings.Contains(err.Error(), `"softplus"`) {
			t.Errorf("error %v, graph says %v", err, want)
		}
	})
}

func nameOf(t *testing.T, build graph.Build) string {
	t.Helper()
	e, err := build(graph.Spec{Atoms: 2, Dim: 2, Rate: 1}, 1, tensor.Float64)
	if err != nil {
		t.Fatal(err)
	}
	return e.Name
}

// bounded is 1 − 1/(1+r²), another loss that no executor has heard of.
func bounded(r *gorgonia.Node) (*gorgonia.Node, error) {
	one := number(r, 1)
	inverse := gorgonia.Must(gorgonia.HadamardDiv(one, gorgonia.Must(gorgonia.Add(one, gorgonia.Must(gorgonia.Square(r))))))
	return gorgonia.Sub(one, inverse)
}

// number is a constant for an expression with n.
func number(n *gorgonia.Node, x float64) *gorgonia.Node {
	if n.Dtype() == tensor.Float32 {
		return gorgonia.NewConstant(float32(x))
	}
	return gorgonia.NewConstant(x)
}

// custom is a step with the inputs of graph.Dictionary, and outputs of its own.
type custom struct {
	name  string
	build graph.Build
	want  string // of a refusal
}

func newCustom(name, want string, outputs func(X, A, D, H, n *gorgonia.Node) []graph.Output) custom {
	return custom{name, func(s graph.Spec, words int, dtype tensor.Dtype) (*graph.Expression, error) {
		e, err := graph.Dictionary(s, words, dtype)
		if err != nil {
			return nil, err
		}
		in := make(map[string]*gorgonia.Node)
		for _, i := range e.Inputs {
			in[i.Name] = i.Node
		}
		e.Name, e.Outputs = name, outputs(in["X"], in["A"], in["D"], in["H"], in["n"])
		return e, nil
	}, want}
}

// The operations of customs.
type node = *gorgonia.Node

func add(a, b node) node     { return gorgonia.Must(gorgonia.Add(a, b)) }
func sub(a, b node) node     { return gorgonia.Must(gorgonia.Sub(a, b)) }
func times(a, b node) node   { return gorgonia.Must(gorgonia.HadamardProd(a, b)) }
func over(a, b node) node    { return gorgonia.Must(gorgonia.HadamardDiv(a, b)) }
func square(a node) node     { return gorgonia.Must(gorgonia.Square(a)) }
func total(a node) node      { return gorgonia.Must(gorgonia.Sum(a)) }
func product(a, b node) node { return gorgonia.Must(gorgonia.Mul(a, b)) }
func transpose(a node) node  { return gorgonia.Must(gorgonia.Transpose(a, 1, 0)) }

var customs = []custom{
	newCustom("squares without an update", "", func(X, A, D, H, n node) []graph.Output {
		R := sub(X, product(A, D))
		return []graph.Output{{Name: "H", Node: add(H, product(transpose(square(A)), square(R)))}}
	}),
	newCustom("unclamped squares", "", func(X, A, D, H, n node) []graph.Output {
		R := sub(X, product(A, D))
		newH := add(H, add(product(transpose(square(A)), square(R)), square(D)))
		step := over(product(transpose(A), R), gorgonia.Must(gorgonia.Sqrt(add(newH, number(D, 1)))))
		return []graph.Output{{Name: "H", Node: newH}, {Name: "D", Node: add(D, times(number(D, 0.3), step))}}
	}),
	newCustom("gradient of a batch", "", func(X, A, D, H, n node) []graph.Output {
		newD := add(D, times(number(D, 0.1), product(transpose(A), sub(X, product(A, D)))))
		return []graph.Output{{Name: "D", Node: newD}, {Name: "loss", Node: total(square(sub(X, product(A, newD))))}}
	}),
	newCustom("numbers", "", func(X, A, D, H, n node) []graph.Output {
		R := sub(X, product(A, D))
		s, q := total(square(R)), total(gorgonia.Must(gorgonia.Abs(R)))
		mean := over(s, add(n, number(D, 2)))
		return []graph.Output{
			{Name: "mean", Node: mean}, {Name: "product", Node: times(sub(s, q), q)},
			{Name: "D", Node: over(D, add(mean, q))}, {Name: "H", Node: sub(over(times(n, H), number(D, 40)), mean)},
		}
	}),
	newCustom("elementwise work alone", "", func(X, A, D, H, n node) []graph.Output {
		newH := add(gorgonia.Must(gorgonia.Rectify(D)), times(number(D, 0.5), H))
		return []graph.Output{{Name: "H", Node: newH}, {Name: "D", Node: times(gorgonia.Must(gorgonia.Sign(D)), newH)}}
	}),
	newCustom("a product as it is", "", func(X, A, D, H, n node) []graph.Output {
		return []graph.Output{{Name: "D", Node: product(transpose(A), product(A, D))}}
	}),
	newCustom("two products of a shape", "", func(X, A, D, H, n node) []graph.Output {
		return []graph.Output{{Name: "sum", Node: total(square(times(product(A, D), product(A, H))))}} // squared, for no sum to cancel
	}),
}

var refusals = []custom{
	newCustom("a product with X", "step 1 (accumulate) of the a product with X program: no kernel for the product Aᵀ · X",
		func(X, A, D, H, n node) []graph.Output {
			return []graph.Output{{Name: "D", Node: product(transpose(A), X)}}
		}),
	newCustom("work on codes", "step 1 (elementwise) of the work on codes program: no step computes n×K values",
		func(X, A, D, H, n node) []graph.Output {
			return []graph.Output{{Name: "sum", Node: total(square(A))}}
		}),
	newCustom("a late read", "step 1 (elementwise) of the a late read program: it reads D after it was overwritten",
		func(X, A, D, H, n node) []graph.Output {
			return []graph.Output{{Name: "D", Node: square(D)}, {Name: "H", Node: add(D, square(square(D)))}}
		}),
}

// start opens a trainer of a small problem.
func start(t *testing.T, newTrainer New, change func(*backend.Problem)) (backend.Trainer, backend.Problem) {
	t.Helper()
	p := problem{words: 20, atoms: 17, dim: 6, batch: 20, change: change}.make(model.Minibatch, 1)
	return newTrainer.open(t, p, 2), p
}

// runProgram compares a program, from a state of random numbers, with the tape.
func runProgram(t *testing.T, newTrainer New, run RunProgram, build graph.Build, change func(*backend.Problem)) {
	const epoch = 3
	b, p := start(t, newTrainer, change)
	words, k := p.Len(), p.Hyperparameters.Atoms
	in := map[string][]float64{"X": widen(p.X), "n": {float64(words)}, "t": {epoch}}

	rng := rand.New(rand.NewPCG(7, 7))
	codes := &vectors.CSR{Rows: words, Cols: k, Ptr: []int64{0}}
	for range words {
		for j := range k {
			if rng.IntN(3) == 0 {
				codes.Index, codes.Value = append(codes.Index, int32(j)), append(codes.Value, float32(rng.NormFloat64()))
			}
		}
		codes.Ptr = append(codes.Ptr, int64(len(codes.Value)))
	}
	in["A"] = dense(t, codes)
	random := func(name string, n int, squares bool) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
			if squares {
				x[i] *= x[i]
			}
		}
		in[name] = widen(x)
		return x
	}
	if err := b.Restore(random("D", k*p.Dim, false), codes); err != nil {
		t.Fatal(err)
	}
	matrices := map[string]checkpoint.Matrix{"H": checkpoint.SquaredGradients, "S": checkpoint.GradientSums, "Q": checkpoint.SquareSums}
	for name, m := range matrices {
		rest := random(name, map[string]int{"H": k * p.Dim, "S": words * k, "Q": words * k}[name], name != "S")
		if err := b.Exchange(backend.Restore, m, func(part []float32) error {
			rest = rest[copy(part, rest):]
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}

	expression, err := build(p.Spec(), words, tensor.Float64)
	if err != nil {
		t.Fatal(err)
	}
	tape := graph.NewTape(expression)
	defer tape.Close()
	want, err := tape.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := run(b, build, p.Spec(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		var got []float64
		switch m, ok := matrices[name]; {
		case ok:
			err = b.Exchange(backend.Save, m, func(part []float32) error {
				got = append(got, widen(part)...)
				return nil
			})
		case name == "A":
			_, codes := learned(t, b)
			got = dense(t, codes)
		case name == "D":
			d, _ := learned(t, b)
			got = widen(d)
		default:
			got = []float64{numbers[name]}
		}
		if err != nil {
			t.Fatal(err)
		}
		near.Equal(t, name, got, w, oneStep)
	}
}
