package graph

import (
	"fmt"
	"math"
)

// simplifier makes values, each already in simplest form: every constructor
// looks at its simplified arguments only. Constant factors move outwards, to
// the front of products and sums, where they meet and merge; what is left
// below them is shared between equal expressions.
type simplifier struct {
	values map[string]*value
	order  map[*value]int // of creation
}

func newSimplifier() *simplifier {
	return &simplifier{values: make(map[string]*value), order: make(map[*value]int)}
}

// share returns the value that equals v, v itself if there is none yet.
func (s *simplifier) share(v *value) *value {
	key := fmt.Sprint(v.op, v.constant, v.shrinkage)
	if v.op == opLoad {
		key = "load " + v.name
	}
	for _, a := range v.args {
		key += fmt.Sprint(" ", s.order[a])
	}
	if old, ok := s.values[key]; ok {
		return old
	}
	s.values[key] = v
	s.order[v] = len(s.order)
	return v
}

func (s *simplifier) load(name string) *value {
	return s.share(&value{op: opLoad, name: name, shape: inputShapes[name]})
}

func (s *simplifier) constant(c float64) *value { return s.share(&value{op: opConst, constant: c}) }

// node makes an operation without looking for anything simpler.
func (s *simplifier) node(op valueOp, shape Shape, args ...*value) *value {
	return s.share(&value{op: op, shape: shape, args: args})
}

// scaled is c∘v.
func (s *simplifier) scaled(c float64, v *value) *value {
	inner, x := v.constantFactor()
	c = c*inner + 0 // no −0: there is one zero
	switch {
	case x.op == opConst:
		return s.constant(c * x.constant)
	case c == 0:
		return s.constant(0)
	case c == 1:
		return x
	}
	return s.node(opMul, x.shape, s.constant(c), x)
}

// broadcast is the shape of an elementwise operation's result.
func broadcast(a, b *value) (shape Shape, err error) {
	for i := range shape {
		switch {
		case a.shape[i] == b.shape[i] || b.shape[i] == One:
			shape[i] = a.shape[i]
		case a.shape[i] == One:
			shape[i] = b.shape[i]
		default:
			return shape, fmt.Errorf("shapes %v and %v do not match", a.shape, b.shape)
		}
	}
	return shape, nil
}

// sum2 is a + sign·b, sign being 1 or −1.
func (s *simplifier) sum2(a, b *value, sign float64) (*value, error) {
	shape, err := broadcast(a, b)
	if err != nil {
		return nil, err
	}
	zero := s.constant(0)
	ca, x := a.constantFactor()
	cb, y := b.constantFactor()
	cb *= sign
	switch {
	case a.op == opConst && b.op == opConst:
		return s.constant(a.constant + sign*b.constant), nil
	case a == zero:
		return s.scaled(sign, b), nil
	case b == zero:
		return a, nil
	case x == y:
		return s.scaled(ca+cb, x), nil
	case a.op == opAdd && b == a.args[1]: // as in derivatives of squares
		return s.sum2(a.args[0], s.scaled(1+sign, b), 1)
	case ca == cb:
		return s.scaled(ca, s.node(opAdd, shape, x, y)), nil
	case ca == -cb && ca > 0:
		return s.scaled(ca, s.node(opSub, shape, x, y)), nil
	case ca == -cb:
		return s.scaled(cb, s.node(opSub, shape, y, x)), nil
	case cb < 0:
		return s.node(opSub, shape, a, s.scaled(-cb, y)), nil
	case ca < 0:
		return s.node(opSub, shape, s.scaled(sign, b), s.scaled(-ca, x)), nil
	}
	return s.node(opAdd, shape, a, s.scaled(cb, y)), nil
}

func (s *simplifier) mul(a, b *value) (*value, error) {
	shape, err := broadcast(a, b)
	if err != nil {
		return nil, err
	}
	ca, x := a.constantFactor()
	cb, y := b.constantFactor()
	c := ca * cb
	switch {
	case x.op == opConst:
		return s.scaled(c*x.constant, y), nil
	case y.op == opConst:
		return s.scaled(c*y.constant, x), nil
	case x == y:
		return s.scaled(c, s.node(opSquare, shape, x)), nil
	case x.op == opNotNegative:
		x, y = y, x
	}
	if y.op == opNotNegative {
		if y.args[0] == x {
			return s.scaled(c, s.node(opRelu, shape, x)), nil
		}
		if x.op == opRelu && x.args[0] == y.args[0] {
			return s.scaled(c, x), nil
		}
	}
	// One order, so that x∘y and y∘x are shared: scalars first, then the older.
	if y.shape == (Shape{}) || (x.shape != Shape{} && s.order[y] < s.order[x]) {
		x, y = y, x
	}
	return s.scaled(c, s.node(opMul, shape, x, y)), nil
}

func (s *simplifier) div(a, b *value) (*value, error) {
	shape, err := broadcast(a, b)
	if err != nil {
		return nil, err
	}
	ca, x := a.constantFactor()
	cb, y := b.constantFactor()
	if y.op == opConst {
		return s.scaled(ca/(cb*y.constant), x), nil
	}
	return s.scaled(ca/cb, s.node(opDiv, shape, x, y)), nil
}

// unary is op of a single argument; where the operation allows it, the
// argument's constant factor moves in front.
func (s *simplifier) unary(op valueOp, a *value) *value {
	c, x := a.constantFactor()
	if x.op == opConst {
		if folded, ok := foldUnary(op, x.constant); ok {
			return s.constant(folded)
		}
	}
	switch op {
	case opSquare:
		return s.scaled(c*c, s.node(op, a.shape, x))
	case opAbs:
		return s.scaled(math.Abs(c), s.node(op, a.shape, x))
	case opSign:
		return s.scaled(math.Copysign(1, c), s.node(op, a.shape, x))
	case opNotNegative:
		if c > 0 {
			return s.node(op, a.shape, x)
		}
	case opRelu:
		if c > 0 {
			return s.scaled(c, s.node(op, a.shape, x))
		}
	case opTranspose:
		switch {
		case x.op == opTranspose:
			return s.scaled(c, x.args[0])
		case x.isLoad("G"): // which is symmetric
			return a
		}
		return s.scaled(c, s.node(op, Shape{a.shape[1], a.shape[0]}, x))
	case opSum:
		return s.scaled(c, s.node(op, Shape{}, x))
	case opRowSum:
		return s.scaled(c, s.node(op, Shape{a.shape[0], One}, x))
	}
	return s.node(op, a.shape, a)
}

func foldUnary(op valueOp, c float64) (float64, bool) {
	switch op {
	case opSquare:
		return c * c, true
	case opSqrt:
		return math.Sqrt(c), true
	case opAbs:
		return math.Abs(c), true
	case opRelu:
		return max(c, 0), true
	}
	return 0, false
}

func (s *simplifier) matMul(a, b *value) (*value, error) {
	if a.shape[1] != b.shape[0] || a.shape[1] == One {
		return nil, fmt.Errorf("product of %v and %v", a.shape, b.shape)
	}
	ca, x := a.constantFactor()
	cb, y := b.constantFactor()
	return s.scaled(ca*cb, s.node(opMatMul, Shape{a.shape[0], b.shape[1]}, x, y)), nil
}

func (s *simplifier) shrink(k Shrinkage, S, Q, t *value) *value {
	return s.share(&value{op: opShrink, shape: S.shape, args: []*value{S, Q, t}, shrinkage: k})
}

// ratio keeps only the quotient of the constant factors, on the numerator.
func (s *simplifier) ratio(num, den *value) (*value, error) {
	shape, err := broadcast(num, den)
	if err != nil {
		return nil, err
	}
	if c, x := den.constantFactor(); c > 0 {
		num, den = s.scaled(1/c, num), x
	}
	return s.node(opRatio, shape, num, den), nil
}

func (s *simplifier) scaleRows(a, factors *value) *value {
	c, x := a.constantFactor()
	return s.scaled(c, s.node(opScaleRows, a.shape, x, factors))
}

func (s *simplifier) overDiagonal(floor float64, a, square, more *value) *value {
	c, x := a.constantFactor()
	return s.scaled(c, s.share(&value{op: opOverDiagonal, shape: a.shape, args: []*value{x, square, more}, constant: floor}))
}
