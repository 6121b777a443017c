package encodetest

import (
	"fmt"
	"slices"
	"testing"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/testonly"
)

// FloatCode returns the codes that the graph of an iteration computes on the tape machine.
func TestFloatCode(t *testing.T) {
	const rows, dim, atoms = 30, 8, 40
	for _, o := range []encode.Options{{Lambda: 0.5, Steps: 20, Nonzeros: 8}, {Lambda: 0.5, Steps: 20, Nonzeros: 8, Nonnegative: true}} {
		x, d := Problem(rows, dim, atoms)
		d.Mean = x[:dim]
		y := make([]float32, len(x))
		for i := range rows {
			d.Center(y[i*dim:][:dim], x[i*dim:][:dim])
		}
		wide := Widen(d.Atoms)
		s, err := backend.StepSize(d)
		testonly.Must(t, err)
		all := onTape(t, func(lambda float64) graph.Spec {
			return graph.Spec{Atoms: atoms, Dim: dim, Lambda: lambda, Nonnegative: o.Nonnegative}
		}, Widen(y), wide, make([]float64, rows*atoms), s, o.Lambda, o.Steps)
		for i := range rows {
			y, want := Widen(y[i*dim:][:dim]), all[i*atoms:][:atoms]
			var support []int
			for k, kept := range Largest(want, o.Nonzeros) {
				if kept {
					support = append(support, k)
				} else {
					want[k] = 0
				}
			}
			if len(support) > 0 {
				polish(t, o, y, wide, want, support, s)
			}
			testonly.Near(t, fmt.Sprintf("%+v: code of row %d", o, i), FloatCode(y, wide, o), want, 1e-12)
		}
	}
}

// polish refines a code on the tape machine. Steps without shrinkage use a dictionary of only the support's atoms.
func polish(t *testing.T, o encode.Options, y, d, code []float64, support []int, s float64) {
	dim := len(y)
	var atoms, values []float64
	for _, k := range support {
		atoms, values = append(atoms, d[k*dim:][:dim]...), append(values, code[k])
	}
	spec := graph.Spec{Atoms: len(support), Dim: dim, Nonnegative: o.Nonnegative}
	values = onTape(t, func(float64) graph.Spec { return spec }, y, atoms, values, s, 0, backend.PolishSteps)
	for i, k := range support {
		code[k] = values[i]
	}
}

// onTape runs steps of size s on the tape machine, from the codes a, and returns the final codes.
func onTape(t *testing.T, spec func(lambda float64) graph.Spec, y, d, a []float64, s, lambda float64, steps int) []float64 {
	t.Helper()
	in := map[string][]float64{"X": y, "D": d, "A": a, "Z": slices.Clone(a), "s": {s}}
	for lambda, momentum := range backend.FISTA(lambda, steps) {
		in["m"] = []float64{momentum}
		spec := spec(lambda)
		expression, err := graph.Encode(spec, len(y)/spec.Dim)
		testonly.Must(t, err)
		out, err := expression.Run(in)
		testonly.Must(t, err)
		in["A"], in["Z"] = out["A"], out["Z"]
	}
	return in["A"]
}
