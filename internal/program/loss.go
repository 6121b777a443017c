package program

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"
)

// lowering translates the nodes of Gorgonia's graph of a loss to values. It identifies an operation by its String,
// because Gorgonia doesn't export the types of most operations. The strings belong to the version of Gorgonia in
// go.mod; a test fails if another version changes them.
type lowering struct {
	values
	graph *gorgonia.ExprGraph
	done  map[*gorgonia.Node]*value
}

// loss returns ℓ(r) and its derivative, element by element, for a residual r.
func (b *builder) loss(r *value) (loss, gradient *value) {
	if b.err != nil {
		return b.constant(0), b.constant(0)
	}
	l := &lowering{values: b.values, graph: b.lossGraph.Graph, done: map[*gorgonia.Node]*value{b.lossGraph.Inputs[0].Node: r}}
	loss = b.lowered(l, 0)
	return loss, b.lowered(l, 1)
}

// lowered lowers an output of the loss graph. The builder keeps the first error.
func (b *builder) lowered(l *lowering, output int) *value {
	v, err := l.lower(b.lossGraph.Outputs[output].Node)
	if err != nil {
		if b.err == nil {
			b.err = fmt.Errorf("program: %s of the loss: %w", b.lossGraph.Outputs[output].Name, err)
		}
		return b.constant(0)
	}
	return v
}

func (l *lowering) lower(n *gorgonia.Node) (v *value, err error) {
	if v, ok := l.done[n]; ok {
		return v, nil
	}
	if n.Op() == nil {
		return nil, fmt.Errorf("%s is neither the residual nor a constant", n.Name())
	}
	op := n.Op().String()
	if strings.HasPrefix(op, "const ") {
		c, ok := n.Value().Data().(float64)
		if !ok {
			return nil, fmt.Errorf("constant %s is not a float64", n.Name())
		}
		return l.constant(c), nil
	}
	var args []*value
	for children := l.graph.From(n.ID()); children.Next(); {
		child := children.Node().(*gorgonia.Node)
		if child.Op() != nil && strings.HasPrefix(child.Op().String(), "SizeOf") {
			continue // skip the number of repetitions of a Repeat
		}
		a, err := l.lower(child)
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	if v = l.operation(op, args); v == nil {
		return nil, fmt.Errorf("operation %q has no lowering", op)
	}
	l.done[n] = v
	return v, nil
}

var unaries = map[string]valueOp{"square": opSquare, "abs": opAbs, "sign": opSign}

// operation returns the value of an elementwise operation, or nil for any other.
func (l *lowering) operation(op string, a []*value) *value {
	name, _, _ := strings.Cut(op, " ") // elementwise operations end in " false" or " true"
	if unary, ok := unaries[name]; ok {
		return l.unary(unary, a[0])
	}
	switch {
	case (strings.HasPrefix(op, "Repeat") || strings.HasPrefix(op, "Reshape")) && a[0].number:
		return a[0] // a number needs no Repeat, because all operations broadcast numbers
	case name == "+":
		return l.add(a[0], a[1])
	case name == "-":
		return l.sub(a[0], a[1])
	case name == "⊙":
		return l.mul(a[0], a[1])
	case name == "neg":
		return l.scaled(-1, a[0])
	case op == ">= true" && a[1] == l.constant(0):
		return l.unary(opNotNegative, a[0])
	}
	return nil
}
