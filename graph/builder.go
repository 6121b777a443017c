package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// builder builds an expression. It stores the first error, which the method done returns. The code of a step
// therefore reads like the step's formula.
type builder struct {
	graph *gorgonia.ExprGraph
	spec  Spec
	rows  int
	expr  *Expression
	err   error
}

func newBuilder(name string, s Spec, rows int) *builder {
	if s.Loss == nil {
		s.Loss = Squared
	}
	g := gorgonia.NewGraph(gorgonia.WithGraphName(name))
	b := &builder{graph: g, spec: s, rows: rows, expr: &Expression{Name: name, Graph: g}, err: s.check()}
	if b.err == nil && rows <= 0 {
		b.err = fmt.Errorf("batch of %d words", rows)
	}
	return b
}

// input adds an input to the expression. The doc comment of [Expression] lists the shapes of inputs.
func (b *builder) input(name string) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	n, k, l := b.rows, b.spec.Atoms, b.spec.Dim
	shape, isMatrix := map[string]tensor.Shape{
		"X": {n, l}, "R": {n, l},
		"A": {n, k}, "S": {n, k}, "Q": {n, k}, "Z": {n, k},
		"D": {k, l}, "H": {k, l}, "B": {k, l}, "W": {k, l},
		"G": {k, k},
	}[name]
	var node *gorgonia.Node
	if isMatrix {
		node = gorgonia.NewMatrix(b.graph, tensor.Float64, gorgonia.WithName(name), gorgonia.WithShape(shape...))
	} else {
		node = gorgonia.NewScalar(b.graph, tensor.Float64, gorgonia.WithName(name))
	}
	b.expr.Inputs = append(b.expr.Inputs, Variable{name, node})
	return node
}

func (b *builder) output(name string, n *gorgonia.Node) {
	b.expr.Outputs = append(b.expr.Outputs, Variable{name, n})
}

func (b *builder) done() (*Expression, error) {
	if b.err != nil {
		return nil, fmt.Errorf("graph: building the %s step: %w", b.expr.Name, b.err)
	}
	return b.expr, nil
}

// Terms of the model.

// loss returns the total loss of the batch, a scalar.
func (b *builder) loss(residual *gorgonia.Node) *gorgonia.Node { return b.sum(b.losses(residual)) }

// losses returns the loss element by element, n×L.
func (b *builder) losses(residual *gorgonia.Node) *gorgonia.Node {
	return b.unary(b.spec.Loss, residual)
}

func (b *builder) measure(residual *gorgonia.Node) {
	b.output("loss", b.loss(residual))
	b.output("error", b.sum(b.square(residual)))
}

// grads returns the partial derivatives of cost by the inputs. Gorgonia differentiates a node only once, and only
// then sums the parts of its derivative. A cost must therefore be differentiated by all inputs together. An input
// that two costs share must occur only once in the second cost.
func (b *builder) grads(cost *gorgonia.Node, inputs ...*gorgonia.Node) gorgonia.Nodes {
	if b.err == nil {
		grads, err := gorgonia.Grad(cost, inputs...)
		if err == nil {
			return grads
		}
		b.err = err
	}
	return make(gorgonia.Nodes, len(inputs))
}

// penaltyGradient returns ∂τ‖D‖²/∂D.
func (b *builder) penaltyGradient(D *gorgonia.Node) *gorgonia.Node {
	return b.grads(b.mul(b.constant(b.spec.Tau), b.sum(b.square(D))), D)[0]
}

// adagrad returns ηG/√(H+ε).
func (b *builder) adagrad(G, H *gorgonia.Node) *gorgonia.Node {
	return b.div(b.mul(b.positive("rate", b.spec.Rate), G), b.sqrt(b.add(H, b.constant(Epsilon))))
}

// dualAveraging adds the gradient g to S and g∘g to Q. It returns the new sums and the codes a of epoch t.
func (b *builder) dualAveraging(g, S, Q, t *gorgonia.Node) (newS, newQ, a *gorgonia.Node) {
	b.positive("rate", b.spec.Rate)
	newS, newQ = b.add(S, g), b.add(Q, b.square(g))
	a = b.apply(shrinkOp(Shrinkage{Lambda: b.spec.Lambda, Rate: b.spec.Rate}), newS, newQ, t)
	if b.spec.Nonnegative {
		a = b.relu(a)
	}
	return newS, newQ, a
}

func (b *builder) ratio(num, den *gorgonia.Node) *gorgonia.Node {
	return b.apply(ratioOp, num, den)
}

func (b *builder) scaleRows(m, factors *gorgonia.Node) *gorgonia.Node {
	return b.apply(scaleRowsOp, m, factors)
}

// positive returns x as a constant, and records an error unless x is positive.
func (b *builder) positive(name string, x float64) *gorgonia.Node {
	if b.err == nil && !(x > 0) {
		b.err = fmt.Errorf("%s is %v", name, x)
	}
	return b.constant(x)
}

// The methods below wrap Gorgonia's operations. The method keep stores the first error.

func (b *builder) keep(n *gorgonia.Node, err error) *gorgonia.Node {
	if b.err == nil {
		b.err = err
	}
	return n
}

func (b *builder) unary(f func(*gorgonia.Node) (*gorgonia.Node, error), x *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	return b.keep(f(x))
}

func (b *builder) binary(f func(x, y *gorgonia.Node) (*gorgonia.Node, error), x, y *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	return b.keep(f(x, y))
}

func (b *builder) apply(op gorgonia.Op, args ...*gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	return b.keep(gorgonia.ApplyOp(op, args...))
}

func (b *builder) constant(x float64) *gorgonia.Node { return gorgonia.NewConstant(x) }

func (b *builder) abs(x *gorgonia.Node) *gorgonia.Node    { return b.unary(gorgonia.Abs, x) }
func (b *builder) neg(x *gorgonia.Node) *gorgonia.Node    { return b.unary(gorgonia.Neg, x) }
func (b *builder) relu(x *gorgonia.Node) *gorgonia.Node   { return b.unary(gorgonia.Rectify, x) }
func (b *builder) sqrt(x *gorgonia.Node) *gorgonia.Node   { return b.unary(gorgonia.Sqrt, x) }
func (b *builder) square(x *gorgonia.Node) *gorgonia.Node { return b.unary(gorgonia.Square, x) }

// notNegative returns 1 where x ≥ 0 and 0 elsewhere.
func (b *builder) notNegative(x *gorgonia.Node) *gorgonia.Node {
	return b.binary(func(x, y *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Gte(x, y, true) }, x, b.constant(0))
}

func (b *builder) add(x, y *gorgonia.Node) *gorgonia.Node { return b.binary(gorgonia.Add, x, y) }
func (b *builder) sub(x, y *gorgonia.Node) *gorgonia.Node { return b.binary(gorgonia.Sub, x, y) }
func (b *builder) mul(x, y *gorgonia.Node) *gorgonia.Node {
	return b.binary(gorgonia.HadamardProd, x, y)
}
func (b *builder) div(x, y *gorgonia.Node) *gorgonia.Node {
	return b.binary(gorgonia.HadamardDiv, x, y)
}
func (b *builder) product(x, y *gorgonia.Node) *gorgonia.Node { return b.binary(gorgonia.Mul, x, y) }

func (b *builder) transpose(x *gorgonia.Node) *gorgonia.Node {
	return b.unary(func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Transpose(n, 1, 0) }, x)
}

func (b *builder) sum(x *gorgonia.Node) *gorgonia.Node {
	return b.unary(func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Sum(n) }, x)
}

func (b *builder) rowSum(x *gorgonia.Node) *gorgonia.Node {
	return b.unary(func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Sum(n, 1) }, x)
}
