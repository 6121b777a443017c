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
	values map[string]*Value
	number map[*Value]int // order of creation
}

func newSimplifier() *simplifier {
	return &simplifier{values: make(map[string]*Value), number: make(map[*Value]int)}
}

// share returns the value that equals v, v itself if there is none yet.
func (s *simplifier) share(v *Value) *Value {
	key := fmt.Sprint(v.Op, v.Const, v.Shrinkage)
	if v.Op == Load {
		key = "load " + v.Name
	}
	for _, a := range v.Args {
		key += fmt.Sprint(" ", s.number[a])
	}
	if old, ok := s.values[key]; ok {
		return old
	}
	s.values[key] = v
	s.number[v] = len(s.number)
	return v
}

func (s *simplifier) load(name string, shape Shape) *Value {
	return s.share(&Value{Op: Load, Name: name, Shape: shape})
}

func (s *simplifier) constant(c float64) *Value { return s.share(&Value{Op: Const, Const: c}) }

// node makes an operation without looking for anything simpler.
func (s *simplifier) node(op Op, shape Shape, args ...*Value) *Value {
	return s.share(&Value{Op: op, Shape: shape, Args: args})
}

// scaled is c∘v.
func (s *simplifier) scaled(c float64, v *Value) *Value {
	inner, x := v.ConstantFactor()
	c = c*inner + 0 // no −0: there is one zero
	switch {
	case x.Op == Const:
		return s.constant(c * x.Const)
	case c == 0:
		return s.constant(0)
	case c == 1:
		return x
	}
	return s.node(Mul, x.Shape, s.constant(c), x)
}

// broadcast is the shape of an elementwise operation's result.
func broadcast(a, b *Value) (shape Shape, err error) {
	for i := range shape {
		switch {
		case a.Shape[i] == b.Shape[i] || b.Shape[i] == One:
			shape[i] = a.Shape[i]
		case a.Shape[i] == One:
			shape[i] = b.Shape[i]
		default:
			return shape, fmt.Errorf("shapes %v and %v do not match", a.Shape, b.Shape)
		}
	}
	return shape, nil
}

// sum2 is a + sign·b, sign being 1 or −1.
func (s *simplifier) sum2(a, b *Value, sign float64) (*Value, error) {
	shape, err := broadcast(a, b)
	if err != nil {
		return nil, err
	}
	zero := s.constant(0)
	ca, x := a.ConstantFactor()
	cb, y := b.ConstantFactor()
	cb *= sign
	switch {
	case a.Op == Const && b.Op == Const:
		return s.constant(a.Const + sign*b.Const), nil
	case a == zero:
		return s.scaled(sign, b), nil
	case b == zero:
		return a, nil
	case x == y:
		return s.scaled(ca+cb, x), nil
	case ca == cb:
		return s.scaled(ca, s.node(Add, shape, x, y)), nil
	case ca == -cb && ca > 0:
		return s.scaled(ca, s.node(Sub, shape, x, y)), nil
	case ca == -cb:
		return s.scaled(cb, s.node(Sub, shape, y, x)), nil
	case cb < 0:
		return s.node(Sub, shape, a, s.scaled(-cb, y)), nil
	case ca < 0:
		return s.node(Sub, shape, s.scaled(sign, b), s.scaled(-ca, x)), nil
	}
	return s.node(Add, shape, a, s.scaled(cb, y)), nil
}

func (s *simplifier) mul(a, b *Value) (*Value, error) {
	shape, err := broadcast(a, b)
	if err != nil {
		return nil, err
	}
	ca, x := a.ConstantFactor()
	cb, y := b.ConstantFactor()
	c := ca * cb
	switch {
	case x.Op == Const:
		return s.scaled(c*x.Const, y), nil
	case y.Op == Const:
		return s.scaled(c*y.Const, x), nil
	case x == y:
		return s.scaled(c, s.node(Square, shape, x)), nil
	case x.Op == NotNegative:
		x, y = y, x
	}
	if y.Op == NotNegative {
		if y.Args[0] == x {
			return s.scaled(c, s.node(Relu, shape, x)), nil
		}
		if x.Op == Relu && x.Args[0] == y.Args[0] {
			return s.scaled(c, x), nil
		}
	}
	// One order, so that x∘y and y∘x are shared: scalars first, then the older.
	if y.Shape == (Shape{}) || (x.Shape != Shape{} && s.number[y] < s.number[x]) {
		x, y = y, x
	}
	return s.scaled(c, s.node(Mul, shape, x, y)), nil
}

func (s *simplifier) div(a, b *Value) (*Value, error) {
	shape, err := broadcast(a, b)
	if err != nil {
		return nil, err
	}
	ca, x := a.ConstantFactor()
	cb, y := b.ConstantFactor()
	if y.Op == Const {
		return s.scaled(ca/(cb*y.Const), x), nil
	}
	return s.scaled(ca/cb, s.node(Div, shape, x, y)), nil
}

// unary is op of a single argument; where the operation allows it, the
// argument's constant factor moves in front.
func (s *simplifier) unary(op Op, a *Value) *Value {
	c, x := a.ConstantFactor()
	if x.Op == Const {
		if folded, ok := foldUnary(op, x.Const); ok {
			return s.constant(folded)
		}
	}
	switch op {
	case Square:
		return s.scaled(c*c, s.node(op, a.Shape, x))
	case Abs:
		return s.scaled(math.Abs(c), s.node(op, a.Shape, x))
	case Sign:
		return s.scaled(math.Copysign(1, c), s.node(op, a.Shape, x))
	case NotNegative:
		if c > 0 {
			return s.node(op, a.Shape, x)
		}
	case Relu:
		if c > 0 {
			return s.scaled(c, s.node(op, a.Shape, x))
		}
	case Transpose:
		if x.Op == Transpose {
			return s.scaled(c, x.Args[0])
		}
		return s.scaled(c, s.node(op, Shape{a.Shape[1], a.Shape[0]}, x))
	case Sum:
		return s.scaled(c, s.node(op, Shape{}, x))
	case RowSum:
		return s.scaled(c, s.node(op, Shape{a.Shape[0], One}, x))
	}
	return s.node(op, a.Shape, a)
}

func foldUnary(op Op, c float64) (float64, bool) {
	switch op {
	case Square:
		return c * c, true
	case Sqrt:
		return math.Sqrt(c), true
	case Abs:
		return math.Abs(c), true
	case Relu:
		return max(c, 0), true
	}
	return 0, false
}

func (s *simplifier) matMul(a, b *Value) (*Value, error) {
	if a.Shape[1] != b.Shape[0] || a.Shape[1] == One {
		return nil, fmt.Errorf("product of %v and %v", a.Shape, b.Shape)
	}
	ca, x := a.ConstantFactor()
	cb, y := b.ConstantFactor()
	return s.scaled(ca*cb, s.node(MatMul, Shape{a.Shape[0], b.Shape[1]}, x, y)), nil
}

func (s *simplifier) shrink(k Shrinkage, S, Q, t *Value) *Value {
	return s.share(&Value{Op: Shrink, Shape: S.Shape, Args: []*Value{S, Q, t}, Shrinkage: k})
}

// ratio keeps only the quotient of the constant factors, on the numerator.
func (s *simplifier) ratio(num, den *Value) (*Value, error) {
	shape, err := broadcast(num, den)
	if err != nil {
		return nil, err
	}
	if c, x := den.ConstantFactor(); c > 0 {
		num, den = s.scaled(1/c, num), x
	}
	return s.node(Ratio, shape, num, den), nil
}

func (s *simplifier) scaleRows(a, factors *Value) *Value {
	c, x := a.ConstantFactor()
	return s.scaled(c, s.node(ScaleRows, a.Shape, x, factors))
}
