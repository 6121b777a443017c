package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Tape runs an expression graph on Gorgonia's TapeMachine: every node, densely,
// as it stands. It is the slow, independent truth that the fast executors are
// tested against.
type Tape struct {
	expr    *Expression
	machine gorgonia.VM
	results []gorgonia.Value // one for each output
}

// NewTape prepares e for running. Close the tape after use.
func NewTape(e *Expression) *Tape {
	t := &Tape{expr: e, results: make([]gorgonia.Value, len(e.Outputs))}
	for i, out := range e.Outputs {
		gorgonia.Read(out.Node, &t.results[i])
	}
	t.machine = gorgonia.NewTapeMachine(e.Graph)
	return t
}

// Run computes the outputs from the inputs. Matrices are row-major; a scalar
// has one element. Every input of the expression must be there.
func (t *Tape) Run(inputs map[string][]float64) (outputs map[string][]float64, err error) {
	dtype := t.expr.Inputs[0].Node.Dtype()
	for _, in := range t.expr.Inputs {
		// The machine may overwrite what it is given: it gets a copy.
		data := append([]float64(nil), inputs[in.Name]...)
		shape := in.Node.Shape()
		if in.Shape == (Shape{}) {
			shape = tensor.ScalarShape()
		}
		v, err := valueOf(data, dtype, shape)
		if err != nil {
			return nil, fmt.Errorf("graph: input %s: %w", in.Name, err)
		}
		if err := gorgonia.Let(in.Node, v); err != nil {
			return nil, fmt.Errorf("graph: input %s: %w", in.Name, err)
		}
	}
	defer t.machine.Reset()
	if err := t.machine.RunAll(); err != nil {
		return nil, fmt.Errorf("graph: running the %s step on the tape: %w", t.expr.Name, err)
	}
	outputs = make(map[string][]float64, len(t.results))
	for i, out := range t.expr.Outputs {
		outputs[out.Name] = append([]float64(nil), floats(t.results[i])...)
	}
	return outputs, nil
}

// Close releases the machine.
func (t *Tape) Close() error { return t.machine.Close() }
