package graph

import (
	"fmt"
	"strings"
)

// Axis is a symbolic size. A program knows no others, and so fits any batch.
type Axis byte

const (
	One   Axis = iota
	Words      // n, the words of the batch
	Atoms      // K
	Dims       // L
)

func (a Axis) String() string { return [...]string{"1", "n", "K", "L"}[a] }

// Shape is the shape of a value: {One, One} is a scalar, {Words, One} a number
// for each word.
type Shape [2]Axis

func (s Shape) String() string {
	if s == (Shape{}) {
		return "scalar"
	}
	return s[0].String() + "×" + s[1].String()
}

// Op says how a value is made. Elementwise operations broadcast axes of size One.
type Op byte

const (
	Load        Op = iota // an input
	Const                 // a number
	Add                   // a + b
	Sub                   // a − b
	Mul                   // a ∘ b; a constant factor comes first
	Div                   // a / b
	Square                // a∘a
	Sqrt                  // √a
	Abs                   // |a|
	Sign                  // −1, 0 or 1
	NotNegative           // 1 where a ≥ 0, else 0
	Relu                  // max(a, 0)
	Shrink                // Shrinkage.Apply of S, Q and t
	Ratio                 // ClampedRatio
	ScaleRows             // row i of a times b_i
	Sum                   // over all elements
	RowSum                // over each word's elements
	Transpose             // only as an argument of MatMul
	MatMul                // a·b
	numOps
)

var opNames = [numOps]string{
	"load", "const", "add", "sub", "mul", "div", "square", "sqrt", "abs", "sign", "not negative",
	"relu", "shrink", "clamped ratio", "scale rows", "sum", "row sum", "transpose", "matmul",
}

func (o Op) String() string { return opNames[o] }

// Value is a node of a lowered program. Values are shared: two that would
// compute the same are one.
type Value struct {
	Op        Op
	Args      []*Value
	Shape     Shape
	Name      string    // an input's name, or one for listings
	Const     float64   // of a Const
	Shrinkage Shrinkage // of a Shrink
}

// ConstantFactor splits c∘x into c and x; of any other value c is 1.
func (v *Value) ConstantFactor() (c float64, x *Value) {
	if v.Op == Mul && v.Args[0].Op == Const {
		return v.Args[0].Const, v.Args[1]
	}
	return 1, v
}

// Formula writes the value as a formula of named values.
func (v *Value) Formula() string { return v.formula(true) }

// String is the value's name if it has one, else its formula.
func (v *Value) String() string { return v.formula(false) }

func (v *Value) formula(expand bool) string {
	if v.Name != "" && (!expand || v.Op == Load) {
		return v.Name
	}
	arg := func(i int) string { return v.Args[i].formula(false) }
	// wrapped puts parentheses around what binds looser than the operator.
	wrapped := func(i int, looser ...Op) string {
		a := v.Args[i]
		if a.Name == "" {
			for _, op := range looser {
				if a.Op == op {
					return "(" + arg(i) + ")"
				}
			}
		}
		return arg(i)
	}
	switch v.Op {
	case Const:
		return strings.Replace(fmt.Sprintf("%.6g", v.Const), "-", "−", 1)
	case Add:
		return arg(0) + " + " + arg(1)
	case Sub:
		return arg(0) + " − " + wrapped(1, Add, Sub)
	case Mul:
		if v.Args[0].Op == Const {
			return wrapped(0) + "·" + wrapped(1, Add, Sub, Div)
		}
		return wrapped(0, Add, Sub, Div) + "∘" + wrapped(1, Add, Sub, Div)
	case Div:
		return wrapped(0, Add, Sub) + "/" + wrapped(1, Add, Sub, Mul, Div)
	case Square:
		return wrapped(0, Add, Sub, Mul, Div) + "²"
	case Sqrt:
		return "√(" + arg(0) + ")"
	case Abs:
		return "|" + arg(0) + "|"
	case NotNegative:
		return "[" + arg(0) + " ≥ 0]"
	case Relu:
		return "max(" + arg(0) + ", 0)"
	case Shrink:
		return fmt.Sprintf("shrink(%s, %s, %s; λ=%g, η=%g)", arg(0), arg(1), arg(2), v.Shrinkage.Lambda, v.Shrinkage.Rate)
	case Ratio:
		return "clamp(" + wrapped(0, Add, Sub) + " / " + wrapped(1, Add, Sub, Mul) + ", 0, 1)"
	case ScaleRows:
		return "diag(" + arg(1) + ")·" + wrapped(0, Add, Sub, Mul, Div)
	case Sum:
		return "Σ " + wrapped(0, Add, Sub)
	case RowSum:
		return "Σ_row " + wrapped(0, Add, Sub)
	case Transpose:
		return wrapped(0, Add, Sub, Mul, Div, Square) + "ᵀ"
	case MatMul:
		return wrapped(0, Add, Sub, Mul, Div, Square) + " · " + wrapped(1, Add, Sub, Mul, Div, Square)
	default:
		args := make([]string, len(v.Args))
		for i := range v.Args {
			args[i] = arg(i)
		}
		return v.Op.String() + "(" + strings.Join(args, ", ") + ")"
	}
}
