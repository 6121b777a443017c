package graph

import (
	"fmt"
	"slices"
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

// valueOp says how a value is made. Elementwise operations broadcast axes of size One.
type valueOp byte

const (
	opLoad         valueOp = iota // an input
	opConst                       // a number
	opAdd                         // a + b
	opSub                         // a − b
	opMul                         // a ∘ b; a constant factor comes first
	opDiv                         // a / b
	opSquare                      // a∘a
	opSqrt                        // √a
	opAbs                         // |a|
	opSign                        // −1, 0 or 1
	opNotNegative                 // 1 where a ≥ 0, else 0
	opRelu                        // max(a, 0)
	opShrink                      // Shrinkage.Apply of S, Q and t
	opRatio                       // ClampedRatio
	opScaleRows                   // row i of a times b_i
	opSoft                        // sgn(a)·max(|a| − b, 0)
	opOverDiagonal                // row i of a divided by b_ii + c where b_ii is above constant, else 0
	opUnit                        // rows of a at length 1, those of b where they are 0
	opSum                         // over all elements
	opRowSum                      // over each word's elements
	opTranspose                   // only as an argument of opMatMul
	opMatMul                      // a·b
)

// value is a node of a lowered expression. Values are shared: two that would
// compute the same are one.
type value struct {
	op        valueOp
	args      []*value
	shape     Shape
	name      string    // an input's name, or one for listings
	constant  float64   // of an opConst or opOverDiagonal
	shrinkage Shrinkage // of an opShrink
}

// constantFactor splits c∘x into c and x; of any other value c is 1.
func (v *value) constantFactor() (c float64, x *value) {
	if v.op == opMul && v.args[0].op == opConst {
		return v.args[0].constant, v.args[1]
	}
	return 1, v
}

// isNumber reports whether v is a scalar or a number for each row.
func (v *value) isNumber() bool { return v.shape[1] == One }

// isLoad reports whether v is the input of that name.
func (v *value) isLoad(name string) bool { return v.op == opLoad && v.name == name }

// given reports whether v is cheap to compute wherever it is used: an input, a
// constant, or elementwise work on these alone.
func (v *value) given() bool {
	switch v.op {
	case opLoad, opConst:
		return true
	case opMatMul, opSum, opRowSum:
		return false
	}
	return !slices.ContainsFunc(v.args, func(a *value) bool { return !a.given() })
}

// factor is a factor of a product: a value, perhaps squared, perhaps transposed.
type factor struct {
	value               *value
	squared, transposed bool
}

// factors returns the two factors of an opMatMul.
func (v *value) factors() (left, right factor) { return newFactor(v.args[0]), newFactor(v.args[1]) }

func newFactor(v *value) (f factor) {
	if v.op == opTranspose {
		f.transposed, v = true, v.args[0]
	}
	if v.op == opSquare {
		f.squared, v = true, v.args[0]
	}
	f.value = v
	return f
}

// reads lists the values that v is computed from. A product squares and
// transposes its factors itself.
func (v *value) reads() []*value {
	if v.op != opMatMul {
		return v.args
	}
	left, right := v.factors()
	return []*value{left.value, right.value}
}

// String is the value's name if it has one, else its formula.
func (v *value) String() string { return v.formula(false) }

// formula writes the value as a formula of named values; if it is to be expanded,
// not as its own name.
func (v *value) formula(expand bool) string {
	if v.name != "" && (!expand || v.op == opLoad) {
		return v.name
	}
	arg := func(i int) string { return v.args[i].formula(false) }
	// wrapped puts parentheses around what binds looser than the operator.
	wrapped := func(i int, looser ...valueOp) string {
		a := v.args[i]
		if a.name == "" {
			for _, op := range looser {
				if a.op == op {
					return "(" + arg(i) + ")"
				}
			}
		}
		return arg(i)
	}
	switch v.op {
	case opConst:
		return strings.Replace(fmt.Sprintf("%.6g", v.constant), "-", "−", 1)
	case opAdd:
		return arg(0) + " + " + arg(1)
	case opSub:
		return arg(0) + " − " + wrapped(1, opAdd, opSub)
	case opMul:
		if v.args[0].op == opConst {
			return wrapped(0) + "·" + wrapped(1, opAdd, opSub, opDiv)
		}
		return wrapped(0, opAdd, opSub, opDiv) + "∘" + wrapped(1, opAdd, opSub, opDiv)
	case opDiv:
		return wrapped(0, opAdd, opSub) + "/" + wrapped(1, opAdd, opSub, opMul, opDiv)
	case opSquare:
		return wrapped(0, opAdd, opSub, opMul, opDiv) + "²"
	case opSqrt:
		return "√(" + arg(0) + ")"
	case opAbs:
		return "|" + arg(0) + "|"
	case opNotNegative:
		return "[" + arg(0) + " ≥ 0]"
	case opRelu:
		return "max(" + arg(0) + ", 0)"
	case opShrink:
		return fmt.Sprintf("shrink(%s, %s, %s; λ=%g, η=%g)", arg(0), arg(1), arg(2), v.shrinkage.Lambda, v.shrinkage.Rate)
	case opRatio:
		return "clamp(" + wrapped(0, opAdd, opSub) + " / " + wrapped(1, opAdd, opSub, opMul) + ", 0, 1)"
	case opScaleRows:
		return "diag(" + arg(1) + ")·" + wrapped(0, opAdd, opSub, opMul, opDiv)
	case opSoft:
		return "soft(" + arg(0) + ", " + arg(1) + ")"
	case opOverDiagonal:
		return "(diag(" + arg(1) + ") + " + arg(2) + ")⁻¹·" + wrapped(0, opAdd, opSub, opMul, opDiv)
	case opUnit:
		return "unit(" + arg(0) + ")"
	case opSum:
		return "Σ " + wrapped(0, opAdd, opSub)
	case opRowSum:
		return "Σ_row " + wrapped(0, opAdd, opSub)
	case opTranspose:
		return wrapped(0, opAdd, opSub, opMul, opDiv, opSquare) + "ᵀ"
	case opMatMul:
		return wrapped(0, opAdd, opSub, opMul, opDiv, opSquare) + " · " + wrapped(1, opAdd, opSub, opMul, opDiv, opSquare)
	case opSign:
		return "sign(" + arg(0) + ")"
	}
	return v.name
}
