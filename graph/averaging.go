package graph

import "fmt"

// DualAveraging is what a Correlate step of [Code] does with each element p of
// its product, the one thing that executors do with a correlation while it is
// at hand:
//
//	S += Gradient·p,  Q += Square·p²,  a = shrink(S, Q, t), perhaps max(a, 0)
type DualAveraging struct {
	Residuals, Atoms *Value // p is Residuals · Atomsᵀ
	Codes            *Value // a

	Gradient, Square float64
	Shrinkage
	Nonnegative bool
}

// DualAveraging reads the program's i-th step as dual averaging. It is an error
// if the step does anything else.
func (p *Program) DualAveraging(i int) (d DualAveraging, err error) {
	s := p.Steps[i]
	other := func(v *Value) (DualAveraging, error) {
		return d, fmt.Errorf("%v = %s is no dual averaging", v, v.Formula())
	}
	product := s.Products[0]
	left, right := product.Operands()
	if len(s.Products) > 1 || left.Transposed || !right.Transposed || left.Squared || right.Squared {
		return other(s.Products[len(s.Products)-1])
	}
	d.Residuals, d.Atoms = left.Value, right.Value
	var sumG, sumQ *Value
	for _, v := range s.Keeps {
		switch p.outputOf(v) {
		case "S":
			sumG = v
		case "Q":
			sumQ = v
		default:
			d.Codes = v
		}
	}
	if len(s.Keeps) != 3 || sumG == nil || sumQ == nil || d.Codes == nil || len(s.Totals) > 0 {
		return d, fmt.Errorf("it leaves %v, want S, Q and codes", s.Keeps)
	}
	var ok bool
	if d.Gradient, ok = added(sumG, "S", func(x *Value) bool { return x == product }); !ok {
		return other(sumG)
	}
	if d.Square, ok = added(sumQ, "Q", func(x *Value) bool { return x.Op == Square && x.Args[0] == product }); !ok {
		return other(sumQ)
	}
	a := d.Codes
	if d.Nonnegative = a.Op == Relu; d.Nonnegative {
		a = a.Args[0]
	}
	if a.Op != Shrink || a.Args[0] != sumG || a.Args[1] != sumQ || a.Args[2].Name != "t" {
		return other(d.Codes)
	}
	d.Shrinkage = a.Shrinkage
	return d, nil
}

// outputOf returns the name of the output that a value is, or "".
func (p *Program) outputOf(v *Value) string {
	for _, out := range p.Outputs {
		if out.Value == v {
			return out.Name
		}
	}
	return ""
}

// added returns c where v is the named input plus c∘x, with an x that is wanted.
func added(v *Value, input string, wanted func(x *Value) bool) (c float64, ok bool) {
	if v.Op != Add && v.Op != Sub {
		return 0, false
	}
	sum, term := v.Args[0], v.Args[1]
	if v.Op == Add && term.Op == Load {
		sum, term = term, sum
	}
	c, x := term.ConstantFactor()
	if v.Op == Sub {
		c = -c
	}
	return c, sum.Op == Load && sum.Name == input && wanted(x)
}
