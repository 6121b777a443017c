package program

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// value is a node of an elementwise expression: a vector of L elements or a number. Equal values are the same
// node.
type value struct {
	op       valueOp
	args     []*value
	number   bool
	name     string  // for listings
	constant float64 // value of an opConst
}

type valueOp byte

const (
	opVector      valueOp = iota // a matrix of the program, identified by its name
	opConst                      // a number
	opRows                       // n, the number of rows of the batch
	opAdd                        // a + b
	opSub                        // a − b
	opMul                        // a ∘ b; a constant factor comes first
	opDiv                        // a / b
	opSquare                     // a∘a
	opSqrt                       // √a
	opAbs                        // |a|
	opSign                       // −1, 0 or 1
	opNotNegative                // 1 where a ≥ 0, else 0
	opRelu                       // max(a, 0)
	opRatio                      // ClampedRatio(a, b)
	opRowSum                     // Σ a over the elements of a row
	opTotal                      // Σ a over the elements of all rows
)

// constantFactor returns c and x if v is the product c∘x with a constant c. For any other v it returns 1 and v.
func (v *value) constantFactor() (c float64, x *value) {
	if v.op == opMul && v.args[0].op == opConst {
		return v.args[0].constant, v.args[1]
	}
	return 1, v
}

// values constructs values in the simplest form that the programs need. A constructor inspects only its arguments,
// which are already simplified. Constant factors move to the front of products and sums, where they merge.
type values struct {
	shared map[string]*value
	order  map[*value]int // order of creation
}

func newValues() values {
	return values{shared: make(map[string]*value), order: make(map[*value]int)}
}

// node returns a value without simplification.
func (s values) node(op valueOp, args ...*value) *value {
	isVector := func(a *value) bool { return !a.number }
	return s.share(&value{op: op, args: args, number: op == opRowSum || op == opTotal || !slices.ContainsFunc(args, isVector)})
}

// share returns the existing value that equals v, or v if there is none.
func (s values) share(v *value) *value {
	key := fmt.Sprint(v.op, v.constant)
	if v.op == opVector {
		key += v.name
	}
	for _, a := range v.args {
		key += fmt.Sprint(" ", s.order[a])
	}
	if old, ok := s.shared[key]; ok {
		return old
	}
	s.shared[key] = v
	s.order[v] = len(s.order)
	return v
}

func (s values) vector(name string) *value { return s.share(&value{op: opVector, name: name}) }

func (s values) rows() *value { return s.share(&value{op: opRows, number: true, name: "n"}) }

func (s values) constant(c float64) *value {
	return s.share(&value{op: opConst, number: true, constant: c})
}

func (s values) scaled(c float64, v *value) *value {
	inner, x := v.constantFactor()
	c = c*inner + 0 // −0 becomes 0
	switch {
	case x.op == opConst:
		return s.constant(c*x.constant + 0)
	case c == 0:
		return s.constant(0)
	case c == 1:
		return x
	}
	return s.node(opMul, s.constant(c), x)
}

func (s values) add(a, b *value) *value { return s.sum2(a, b, 1) }
func (s values) sub(a, b *value) *value { return s.sum2(a, b, -1) }

// sum2 returns a + sign·b, where sign is 1 or −1.
func (s values) sum2(a, b *value, sign float64) *value {
	ca, x := a.constantFactor()
	cb, y := b.constantFactor()
	cb *= sign
	switch {
	case b == s.constant(0):
		return a
	case ca == cb:
		return s.scaled(ca, s.node(opAdd, x, y))
	case ca == -cb && ca > 0:
		return s.scaled(ca, s.node(opSub, x, y))
	case ca == -cb:
		return s.scaled(cb, s.node(opSub, y, x))
	case cb < 0:
		return s.node(opSub, a, s.scaled(-cb, y))
	case ca < 0:
		return s.node(opSub, s.scaled(sign, b), s.scaled(-ca, x))
	}
	return s.node(opAdd, a, s.scaled(cb, y))
}

func (s values) mul(a, b *value) *value {
	ca, x := a.constantFactor()
	cb, y := b.constantFactor()
	c := ca * cb
	switch {
	case x.op == opConst:
		return s.scaled(c*x.constant, y)
	case y.op == opConst:
		return s.scaled(c*y.constant, x)
	case x.op == opNotNegative:
		x, y = y, x
	}
	if y.op == opNotNegative {
		if y.args[0] == x {
			return s.scaled(c, s.node(opRelu, x))
		}
		if x.op == opRelu && x.args[0] == y.args[0] {
			return s.scaled(c, x)
		}
	}
	// Sort the arguments, so that x∘y and y∘x are the same node: numbers first, then the older value.
	if y.number && !x.number || x.number == y.number && s.order[y] < s.order[x] {
		x, y = y, x
	}
	return s.scaled(c, s.node(opMul, x, y))
}

func (s values) div(a, b *value) *value {
	ca, x := a.constantFactor()
	cb, y := b.constantFactor()
	return s.scaled(ca/cb, s.node(opDiv, x, y))
}

// ratio moves a positive constant factor of the denominator to the numerator.
func (s values) ratio(num, den *value) *value {
	if c, x := den.constantFactor(); c > 0 {
		num, den = s.scaled(1/c, num), x
	}
	return s.node(opRatio, num, den)
}

func (s values) square(a *value) *value { return s.unary(opSquare, a) }
func (s values) rowSum(a *value) *value { return s.unary(opRowSum, a) }

// folded maps operations to functions that apply them to a constant.
var folded = map[valueOp]func(c float64) float64{
	opSquare: func(c float64) float64 { return c * c },
	opSqrt:   math.Sqrt,
	opAbs:    math.Abs,
}

// unary moves the constant factor of the argument a to the front if the operation allows this.
func (s values) unary(op valueOp, a *value) *value {
	c, x := a.constantFactor()
	if fold, ok := folded[op]; ok && x.op == opConst {
		return s.constant(fold(x.constant))
	}
	switch {
	case op == opSquare:
		return s.scaled(c*c, s.node(op, x))
	case op == opAbs:
		return s.scaled(math.Abs(c), s.node(op, x))
	case op == opSign:
		return s.scaled(math.Copysign(1, c), s.node(op, x))
	case op == opNotNegative && c > 0:
		return s.node(op, x)
	case op == opRelu && c > 0, op == opRowSum, op == opTotal:
		return s.scaled(c, s.node(op, x))
	}
	return s.node(op, a)
}

// String returns the name of a value, or its formula.
func (v *value) String() string {
	if v.name != "" {
		return v.name
	}
	return v.formula()
}

// formula returns a value as a formula of named values.
func (v *value) formula() string {
	// wrapped returns argument i, in parentheses if the argument's operator is in the list looser.
	wrapped := func(i int, looser ...valueOp) string {
		if a := v.args[i]; a.name == "" && slices.Contains(looser, a.op) {
			return "(" + a.String() + ")"
		}
		return v.args[i].String()
	}
	arg := func(i int) string { return v.args[i].String() }
	switch v.op {
	case opConst:
		return strings.Replace(fmt.Sprintf("%.6g", v.constant), "-", "−", 1)
	case opAdd:
		return arg(0) + " + " + arg(1)
	case opSub:
		return arg(0) + " − " + wrapped(1, opAdd, opSub)
	case opMul:
		operator := map[bool]string{true: "·", false: "∘"}[v.args[0].op == opConst]
		return wrapped(0, opAdd, opSub, opDiv) + operator + wrapped(1, opAdd, opSub, opDiv)
	case opDiv:
		return wrapped(0, opAdd, opSub) + "/" + wrapped(1, opAdd, opSub, opMul, opDiv)
	case opSquare:
		return wrapped(0, opAdd, opSub, opMul, opDiv) + "²"
	case opSqrt:
		return "√(" + arg(0) + ")"
	case opAbs:
		return "|" + arg(0) + "|"
	case opSign:
		return "sign(" + arg(0) + ")"
	case opNotNegative:
		return "[" + arg(0) + " ≥ 0]"
	case opRelu:
		return "max(" + arg(0) + ", 0)"
	case opRatio:
		return "clamp(" + wrapped(0, opAdd, opSub) + " / " + wrapped(1, opAdd, opSub, opMul) + ", 0, 1)"
	case opRowSum:
		return "Σ_row " + wrapped(0, opAdd, opSub)
	case opTotal:
		return "Σ " + wrapped(0, opAdd, opSub)
	}
	return v.name
}
