package program

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gorgonia.org/gorgonia"

	"overcomplete/graph"
	"overcomplete/testonly"
)

// Lowered losses and gradients have the values of their definitions. A failure without a change of the losses
// means that Gorgonia's names of operations differ from loss.go.
func TestLoss(t *testing.T) {
	for _, test := range []struct {
		name string
		loss graph.Loss
		each func(r float64) float64 // an independent definition
	}{
		{"squared", graph.Squared, func(r float64) float64 { return r * r }},
		{"huber", graph.Huber(0.7), func(r float64) float64 {
			if math.Abs(r) <= 0.7 {
				return r * r
			}
			return 2*0.7*math.Abs(r) - 0.7*0.7
		}},
	} {
		b := newBuilder("test", graph.Spec{Atoms: 5, Dim: 3, Loss: test.loss})
		loss, gradient := b.loss(b.x())
		if b.err != nil {
			t.Fatal(b.err)
		}
		for _, r := range []float64{-3.1, -0.8, -0.2, 0.3, 0.69, 0.71, 5} {
			want, slope := test.each(r), fd.Derivative(test.each, r, &fd.Settings{Formula: fd.Central})
			if got, gotSlope := evaluate(loss, r), evaluate(gradient, r); math.Abs(got-want) > 1e-12*math.Abs(want) || math.Abs(gotSlope-slope) > 1e-6 {
				t.Errorf("%s of %v: %v and slope %v, want %v and %v", test.name, r, got, gotSlope, want, slope)
			}
		}
	}
	_, err := Code(graph.Spec{Atoms: 4, Dim: 2, Rate: 1, Loss: gorgonia.Softplus})
	testonly.ErrorSays(t, "another loss", err, `operation "softplus" has no lowering`)
}

// The value of every constructor equals its operation up to rounding, for all pairs from a set of vectors, numbers
// and their multiples.
func TestValues(t *testing.T) {
	s := newValues()
	x := s.vector("X")
	var terms []*value
	for _, base := range []*value{x, s.node(opAbs, x), s.node(opRelu, x), s.node(opNotNegative, x), s.rows(), s.constant(2.5)} {
		for _, c := range []float64{-2, -1, 0, 1, 3} {
			terms = append(terms, s.scaled(c, base))
		}
	}
	unary := map[valueOp]func(float64) float64{
		opSquare: func(v float64) float64 { return v * v }, opAbs: math.Abs, opSqrt: math.Sqrt,
		opSign: sign, opNotNegative: func(v float64) float64 { return is(v >= 0) }, opRelu: func(v float64) float64 { return max(v, 0) },
	}
	for _, r := range []float64{-0.7, 0.4, 2} {
		check := func(what string, v *value, want float64) {
			if got := evaluate(v, r); !math.IsNaN(want) && !math.IsInf(want, 0) && math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
				t.Errorf("%s = %s: %v, want %v", what, v.formula(), got, want)
			}
		}
		for _, a := range terms {
			u := evaluate(a, r)
			for op, f := range unary {
				check(fmt.Sprint("operation ", op, " of ", a), s.unary(op, a), f(u))
			}
			for _, b := range terms {
				v, what := evaluate(b, r), fmt.Sprint("(", a, ") and (", b, ")")
				check("sum of "+what, s.add(a, b), u+v)
				check("difference of "+what, s.sub(a, b), u-v)
				check("product of "+what, s.mul(a, b), u*v)
				check("quotient of "+what, s.div(a, b), u/v)
				check("clamped ratio of "+what, s.ratio(a, b), graph.ClampedRatio(u, v))
			}
		}
	}
}

func is(b bool) float64 { return map[bool]float64{true: 1}[b] }

func sign(x float64) float64 { return is(x > 0) - is(x < 0) }

// evaluate computes a value if the vector X has the element x and the batch has 1.7 rows.
func evaluate(v *value, x float64) float64 {
	var args [2]float64
	for i, a := range v.args {
		args[i] = evaluate(a, x)
	}
	a, b := args[0], args[1]
	switch v.op {
	case opVector:
		return x
	case opConst:
		return v.constant
	case opRows:
		return 1.7
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
		return sign(a)
	case opNotNegative:
		return is(a >= 0)
	case opRelu:
		return max(a, 0)
	case opRatio:
		return graph.ClampedRatio(a, b)
	}
	panic(fmt.Sprintf("%v is not elementwise", v))
}

// Temporaries with disjoint lifetimes share memory.
func TestTemporariesShareMemory(t *testing.T) {
	for name, build := range map[string]func(graph.Spec) (*Program, error){"dictionary": Dictionary, "code": Code, "authors": Authors, "evaluate": Evaluate} {
		p, err := build(graph.Spec{Atoms: 4, Dim: 2, Tau: 1e-5, Rate: 0.05, Loss: graph.Huber(0.3)})
		testonly.Must(t, err)
		rows := 0
		for _, v := range p.Vectors {
			if v.Rows == One {
				rows++
			}
		}
		if rows > 4 {
			t.Errorf("%s: %d temporary rows", name, rows)
		}
	}
}
