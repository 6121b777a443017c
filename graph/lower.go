package graph

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Compile lowers a step to a program, for any number of words and any sizes, those
// in s too. It is an error if the step has an operation that lowering does not
// know, or work that is not in the list of [Step]: the error names the program, the
// step and the value. What Compile accepts, every executor runs.
func Compile(build Build, s Spec) (*Program, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	// Sizes differ from each other and from 1, so that no axis can be mistaken
	// for another; float64 keeps the constants as they were given.
	s.Atoms, s.Dim = 5, 3
	e, err := build(s, 4, tensor.Float64)
	if err != nil {
		return nil, err
	}
	l := newLowering(e)
	outputs := make([]output, len(e.Outputs))
	for i, out := range e.Outputs {
		v, err := l.lower(out.Node)
		if err != nil {
			return nil, fmt.Errorf("graph: lowering %s of the %s step: %w", out.Name, e.Name, err)
		}
		outputs[i] = output{out.Name, v}
	}
	drafts, err := schedule(outputs)
	if err != nil {
		return nil, fmt.Errorf("graph: scheduling the %s step: %w", e.Name, err)
	}
	p, err := place(e.Name, l.simplifier, drafts, outputs)
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return p, nil
}

// lowering translates Gorgonia's nodes to values. It knows an operation by its
// String, which is all that Gorgonia shows of most of them. Such strings are no
// interface: they hold for the version of Gorgonia that go.mod pins, and a test says
// which are no longer what they were.
type lowering struct {
	*simplifier
	expr *Expression
	done map[*gorgonia.Node]*value
}

func newLowering(e *Expression) *lowering {
	l := &lowering{expr: e, simplifier: newSimplifier(), done: make(map[*gorgonia.Node]*value)}
	for _, in := range e.Inputs {
		l.done[in.Node] = l.load(in.Name)
	}
	return l
}

func (l *lowering) lower(n *gorgonia.Node) (*value, error) {
	if v, ok := l.done[n]; ok {
		return v, nil
	}
	if n.Op() == nil {
		return nil, fmt.Errorf("%s is not an input of the step", n.Name())
	}
	v, err := l.translate(n)
	if err != nil {
		return nil, err
	}
	if name, ok := l.expr.named[n]; ok && v.name == "" && v.op != opConst {
		if c, _ := v.constantFactor(); c == 1 {
			v.name = name
		}
	}
	l.done[n] = v
	return v, nil
}

func (l *lowering) translate(n *gorgonia.Node) (*value, error) {
	op := n.Op().String()
	if strings.HasPrefix(op, "const ") {
		c := floats(n.Value())
		if len(c) != 1 {
			return nil, fmt.Errorf("constant %s is not a number", n.Name())
		}
		return l.constant(c[0]), nil
	}
	var args []*value
	for children := l.expr.Graph.From(n.ID()); children.Next(); {
		child := children.Node().(*gorgonia.Node)
		if child.Op() != nil && strings.HasPrefix(child.Op().String(), "SizeOf") {
			continue // how often to repeat: see Repeat below
		}
		a, err := l.lower(child)
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	return l.operation(n, op, args)
}

// unaries are the operations of one argument that are named alike.
var unaries = map[string]valueOp{"square": opSquare, "sqrt": opSqrt, "abs": opAbs, "sign": opSign}

func (l *lowering) operation(n *gorgonia.Node, op string, a []*value) (*value, error) {
	if custom, ok := n.Op().(customOp); ok {
		switch custom.op {
		case opShrink:
			return l.shrink(custom.shrinkage, a[0], a[1], a[2]), nil
		case opRatio:
			return l.ratio(a[0], a[1])
		case opScaleRows:
			return l.scaleRows(a[0], a[1]), nil
		case opOverDiagonal:
			return l.overDiagonal(custom.floor, a[0], a[1], a[2]), nil
		case opSoft, opUnit:
			return l.node(custom.op, a[0].shape, a...), nil
		}
	}
	name, _, _ := strings.Cut(op, " ") // elementwise operations end in " false" or " true"
	if unary, ok := unaries[name]; ok {
		return l.unary(unary, a[0]), nil
	}
	switch {
	case strings.HasPrefix(op, "Repeat"), strings.HasPrefix(op, "Reshape"):
		// Every operation here broadcasts scalars, so that spreading one out is
		// nothing to do.
		if a[0].shape != (Shape{}) {
			return nil, fmt.Errorf("%s of a value of shape %v", op, a[0].shape)
		}
		return a[0], nil
	case strings.HasPrefix(op, "Aᵀ{1, 0}"):
		return l.unary(opTranspose, a[0]), nil
	case strings.Contains(op, " × "):
		for i, side := range strings.Split(op, " × ") {
			if strings.HasSuffix(side, "ᵀ") {
				a[i] = l.unary(opTranspose, a[i])
			}
		}
		return l.matMul(a[0], a[1])
	case strings.HasPrefix(op, "Σ"):
		if a[0].shape[0] == One || a[0].shape[1] == One {
			return nil, fmt.Errorf("%s of a value of shape %v", op, a[0].shape)
		}
		switch op {
		case "Σ[0 1]":
			return l.unary(opSum, a[0]), nil
		case "Σ[1]":
			return l.unary(opRowSum, a[0]), nil
		}
	case name == "+":
		return l.sum2(a[0], a[1], 1)
	case name == "-":
		return l.sum2(a[0], a[1], -1)
	case name == "⊙":
		return l.mul(a[0], a[1])
	case name == "÷":
		return l.div(a[0], a[1])
	case op == ">= true":
		if a[1] == l.constant(0) {
			return l.unary(opNotNegative, a[0]), nil
		}
	case name == "neg":
		return l.scaled(-1, a[0]), nil
	}
	return nil, fmt.Errorf("operation %q has no lowering", op)
}
