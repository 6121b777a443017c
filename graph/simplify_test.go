package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// term is a value beside what it must evaluate to, element by element.
type term struct {
	value *value
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
	x, n := s.load("X"), s.load("n")
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
		{s.node(opAbs, x.shape, x), all(func(i int) float64 { return math.Abs(X[i]) })},
		{s.node(opRelu, x.shape, x), all(func(i int) float64 { return max(X[i], 0) })},
		{s.node(opNotNegative, x.shape, x), all(func(i int) float64 { return is(X[i] >= 0) })},
		{n, all(func(int) float64 { return 1.7 })},
		{s.constant(2.5), all(func(int) float64 { return 2.5 })},
	}
	var terms []term
	for _, b := range base {
		for _, c := range []float64{-2, -1, 0, 1, 3} {
			terms = append(terms, term{s.scaled(c, b.value), all(func(i int) float64 { return c * b.want[i] })})
		}
	}
	check := func(what string, got *value, want func(i int) float64) {
		t.Helper()
		for i := range 3 {
			w, g := want(i), element(got, p.inputs, i)
			if math.IsNaN(w) || math.IsInf(w, 0) {
				continue // a division by zero may have met a constant
			}
			if math.Abs(g-w) > 1e-12*max(1, math.Abs(w)) {
				t.Fatalf("%s = %s: %v, want %v", what, got.formula(true), g, w)
			}
		}
	}
	for _, a := range terms {
		for op, f := range map[valueOp]func(float64) float64{
			opSquare: func(v float64) float64 { return v * v }, opAbs: math.Abs,
			opSign:        func(v float64) float64 { return is(v > 0) - is(v < 0) },
			opNotNegative: func(v float64) float64 { return is(v >= 0) },
			opRelu:        func(v float64) float64 { return max(v, 0) }, opSqrt: math.Sqrt,
		} {
			check(fmt.Sprintf("%v of %v", op, a.value), s.unary(op, a.value), func(i int) float64 { return f(a.want[i]) })
		}
		for _, b := range terms {
			for name, make := range map[string]struct {
				value func(a, b *value) (*value, error)
				want  func(a, b float64) float64
			}{
				"+":             {func(a, b *value) (*value, error) { return s.sum2(a, b, 1) }, func(a, b float64) float64 { return a + b }},
				"−":             {func(a, b *value) (*value, error) { return s.sum2(a, b, -1) }, func(a, b float64) float64 { return a - b }},
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

// element computes the i-th element of a vector, or a number.
func element(v *value, inputs map[string][]float64, i int) float64 {
	var args [2]float64
	for j, a := range v.args {
		args[j] = element(a, inputs, i)
	}
	a, b := args[0], args[1]
	switch v.op {
	case opLoad:
		return inputs[v.name][min(i, len(inputs[v.name])-1)]
	case opConst:
		return v.constant
	case opAdd:
		return a + b
	case opSub:
		return a - b
	case opMul:
		return a * b
	case opDiv:
		return a / b
	case opSquare:
		return a * a
	case opSqrt:
		return math.Sqrt(a)
	case opAbs:
		return math.Abs(a)
	case opSign:
		return is(a > 0) - is(a < 0)
	case opNotNegative:
		return is(a >= 0)
	case opRelu:
		return max(a, 0)
	case opRatio:
		return ClampedRatio(a, b)
	}
	panic(fmt.Sprintf("%v is not elementwise", v))
}

// is is 1 or 0.
func is(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
