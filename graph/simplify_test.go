package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// term is a value beside what it must evaluate to, element by element.
type term struct {
	value *Value
	want  []float64
}

// Every constructor, on every pair of a few vectors, numbers and multiples of
// them, means what it says. Simplification may only change the rounding.
func TestSimplifierKeepsMeaning(t *testing.T) {
	p := newProblem(3, 1, 4, 3)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range p.inputs["X"] {
		p.inputs["X"][i] = rng.NormFloat64()
	}
	s := newSimplifier()
	x, n := s.load("X", Shape{Words, Dims}), s.load("n", Shape{})
	p.inputs["n"][0] = 1.7
	all := func(f func(i int) float64) []float64 {
		out := make([]float64, 3)
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	X := p.inputs["X"]
	base := []term{
		{x, X},
		{s.node(Abs, x.Shape, x), all(func(i int) float64 { return math.Abs(X[i]) })},
		{s.node(Relu, x.Shape, x), all(func(i int) float64 { return max(X[i], 0) })},
		{s.node(NotNegative, x.Shape, x), all(func(i int) float64 { return map[bool]float64{true: 1}[X[i] >= 0] })},
		{n, all(func(int) float64 { return 1.7 })},
		{s.constant(2.5), all(func(int) float64 { return 2.5 })},
	}
	var terms []term
	for _, b := range base {
		for _, c := range []float64{-2, -1, 0, 1, 3} {
			terms = append(terms, term{s.scaled(c, b.value), all(func(i int) float64 { return c * b.want[i] })})
		}
	}
	check := func(what string, got *Value, want func(i int) float64) {
		t.Helper()
		in := newInterpreter(p)
		values := in.deep(got)
		for i := range 3 {
			w := want(i)
			g := values[min(i, len(values)-1)]
			if math.IsNaN(w) || math.IsInf(w, 0) {
				continue // a division by zero may have met a constant
			}
			if math.Abs(g-w) > 1e-12*max(1, math.Abs(w)) {
				t.Fatalf("%s = %s: %v, want %v", what, got.Formula(), g, w)
			}
		}
	}
	for _, a := range terms {
		for op, f := range map[Op]func(float64) float64{
			Square: func(v float64) float64 { return v * v }, Abs: math.Abs,
			Sign:        func(v float64) float64 { return map[bool]float64{true: 1}[v > 0] - map[bool]float64{true: 1}[v < 0] },
			NotNegative: func(v float64) float64 { return map[bool]float64{true: 1}[v >= 0] },
			Relu:        func(v float64) float64 { return max(v, 0) }, Sqrt: math.Sqrt,
		} {
			check(fmt.Sprintf("%v of %v", op, a.value), s.unary(op, a.value), func(i int) float64 { return f(a.want[i]) })
		}
		for _, b := range terms {
			for name, make := range map[string]struct {
				value func(a, b *Value) (*Value, error)
				want  func(a, b float64) float64
			}{
				"+":             {func(a, b *Value) (*Value, error) { return s.sum2(a, b, 1) }, func(a, b float64) float64 { return a + b }},
				"−":             {func(a, b *Value) (*Value, error) { return s.sum2(a, b, -1) }, func(a, b float64) float64 { return a - b }},
				"∘":             {s.mul, func(a, b float64) float64 { return a * b }},
				"/":             {s.div, func(a, b float64) float64 { return a / b }},
				"clamped ratio": {s.ratio, ClampedRatio},
			} {
				v, err := make.value(a.value, b.value)
				if err != nil {
					t.Fatal(err)
				}
				check(fmt.Sprintf("(%v) %s (%v)", a.value, name, b.value), v, func(i int) float64 { return make.want(a.want[i], b.want[i]) })
			}
		}
	}
}

// deep computes a value and all that it is made of.
func (in *interpreter) deep(v *Value) []float64 {
	for _, a := range v.Args {
		in.kept[a] = in.deep(a)
	}
	return in.compute(v)
}
