package graph

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
)

// Run computes the outputs from the inputs on Gorgonia's tape machine. Both maps have names as keys. Matrices are
// row-major; a scalar has one element. Run returns an error if an input is missing or has the wrong number of elements.
func (e *Expression) Run(inputs map[string][]float64) (outputs map[string][]float64, err error) {
	results := make([]gorgonia.Value, len(e.Outputs))
	for i, out := range e.Outputs {
		gorgonia.Read(out.Node, &results[i])
	}
	machine := gorgonia.NewTapeMachine(e.Graph)
	defer machine.Close()
	for _, in := range e.Inputs {
		data, shape := slices.Clone(inputs[in.Name]), in.Node.Shape() // the machine may overwrite its inputs
		if len(data) != shape.TotalSize() {
			return nil, fmt.Errorf("graph: input %s has %d elements, want %d", in.Name, len(data), shape.TotalSize())
		}
		if err := gorgonia.Let(in.Node, newValue(data, shape)); err != nil {
			return nil, fmt.Errorf("graph: input %s: %w", in.Name, err)
		}
	}
	if err := machine.RunAll(); err != nil {
		return nil, fmt.Errorf("graph: running the %s step: %w", e.Name, err)
	}
	outputs = make(map[string][]float64, len(results))
	for i, out := range e.Outputs {
		outputs[out.Name] = slices.Clone(elements(results[i]))
	}
	return outputs, nil
}
