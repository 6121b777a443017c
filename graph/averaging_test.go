package graph

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestDualAveraging(t *testing.T) {
	for _, nonnegative := range []bool{false, true} {
		p, err := Compile(Code, Spec{Atoms: 2, Dim: 2, Lambda: 0.5, Rate: 0.05, Nonnegative: nonnegative})
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.DualAveraging(1)
		if err != nil {
			t.Fatal(err)
		}
		// g = −2RDᵀ, so that S −= 2p and Q += 4p².
		if d.Gradient != -2 || d.Square != 4 || d.Shrinkage != (Shrinkage{Lambda: 0.5, Rate: 0.05}) || d.Nonnegative != nonnegative {
			t.Errorf("%+v", d)
		}
		if d.Residuals.Name != "R" || d.Atoms.Name != "D" || d.Codes.Name != "a" {
			t.Errorf("a = %v from %v · %vᵀ", d.Codes, d.Residuals, d.Atoms)
		}
	}
}

// Whatever else a step does to its sums or codes is not passed over.
func TestNoDualAveraging(t *testing.T) {
	for name, change := range map[string]func(*gorgonia.Node) *gorgonia.Node{
		"S": func(s *gorgonia.Node) *gorgonia.Node {
			return gorgonia.Must(gorgonia.Add(s, gorgonia.Must(gorgonia.Square(s))))
		},
		"Q": func(q *gorgonia.Node) *gorgonia.Node { return gorgonia.Must(gorgonia.Sqrt(q)) },
	} {
		changed := func(s Spec, words int, dtype tensor.Dtype) (*Expression, error) {
			e, err := Code(s, words, dtype)
			for i, out := range e.Outputs {
				if out.Name == name {
					e.Outputs[i].Node = change(out.Node)
				}
			}
			return e, err
		}
		p, err := Compile(changed, Spec{Atoms: 2, Dim: 2, Lambda: 0.5, Rate: 0.05})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.DualAveraging(1); err == nil || !strings.Contains(err.Error(), "dual averaging") && !strings.Contains(err.Error(), "leaves") {
			t.Errorf("%s changed: error %v", name, err)
		}
	}
}
