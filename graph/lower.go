package graph

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Compile lowers a step to a program. The program does not depend on the sizes
// in s, nor on the number of words.
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
	l := lowering{expr: e, simplifier: newSimplifier(), done: make(map[*gorgonia.Node]*Value)}
	for _, in := range e.Inputs {
		l.done[in.Node] = l.load(in.Name, in.Shape)
	}
	outputs := make([]Result, len(e.Outputs))
	for i, out := range e.Outputs {
		v, err := l.lower(out.Node)
		if err != nil {
			return nil, fmt.Errorf("graph: lowering %s of the %s step: %w", out.Name, e.Name, err)
		}
		outputs[i] = Result{Name: out.Name, Value: v}
	}
	p, err := schedule(e.Name, outputs)
	if err != nil {
		return nil, fmt.Errorf("graph: scheduling the %s step: %w", e.Name, err)
	}
	return p, nil
}

// lowering translates Gorgonia's nodes to values. It knows an operation by its
// String, which is all that Gorgonia shows of most of them.
type lowering struct {
	*simplifier
	expr *Expression
	done map[*gorgonia.Node]*Value
}

func (l *lowering) lower(n *gorgonia.Node) (*Value, error) {
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
	if name, ok := l.expr.named[n]; ok && v.Name == "" && v.Op != Const {
		if c, _ := v.ConstantFactor(); c == 1 {
			v.Name = name
		}
	}
	l.done[n] = v
	return v, nil
}

func (l *lowering) translate(n *gorgonia.Node) (*Value, error) {
	op := n.Op().String()
	if strings.HasPrefix(op, "const ") {
		c := floats(n.Value())
		if len(c) != 1 {
			return nil, fmt.Errorf("constant %s is not a number", n.Name())
		}
		return l.constant(c[0]), nil
	}
	var args []*Value
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

func (l *lowering) operation(n *gorgonia.Node, op string, a []*Value) (*Value, error) {
	if custom, ok := n.Op().(customOp); ok {
		switch custom.op {
		case Shrink:
			return l.shrink(custom.shrinkage, a[0], a[1], a[2]), nil
		case Ratio:
			return l.ratio(a[0], a[1])
		case ScaleRows:
			return l.scaleRows(a[0], a[1]), nil
		}
	}
	name, _, _ := strings.Cut(op, " ") // elementwise operations end in " false" or " true"
	switch {
	case strings.HasPrefix(op, "Repeat"), strings.HasPrefix(op, "Reshape"):
		// Every operation here broadcasts scalars, so that spreading one out is
		// nothing to do.
		if a[0].Shape != (Shape{}) {
			return nil, fmt.Errorf("%s of a value of shape %v", op, a[0].Shape)
		}
		return a[0], nil
	case strings.HasPrefix(op, "Aᵀ{1, 0}"):
		return l.unary(Transpose, a[0]), nil
	case strings.Contains(op, " × "):
		for i, side := range strings.Split(op, " × ") {
			if strings.HasSuffix(side, "ᵀ") {
				a[i] = l.unary(Transpose, a[i])
			}
		}
		return l.matMul(a[0], a[1])
	case strings.HasPrefix(op, "Σ"):
		if a[0].Shape[0] == One || a[0].Shape[1] == One {
			return nil, fmt.Errorf("%s of a value of shape %v", op, a[0].Shape)
		}
		switch op {
		case "Σ[0 1]":
			return l.unary(Sum, a[0]), nil
		case "Σ[1]":
			return l.unary(RowSum, a[0]), nil
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
			return l.unary(NotNegative, a[0]), nil
		}
	case name == "neg":
		return l.scaled(-1, a[0]), nil
	case name == "square":
		return l.unary(Square, a[0]), nil
	case name == "sqrt":
		return l.unary(Sqrt, a[0]), nil
	case name == "abs":
		return l.unary(Abs, a[0]), nil
	case name == "sign":
		return l.unary(Sign, a[0]), nil
	}
	return nil, fmt.Errorf("operation %q has no lowering", op)
}
