package cpu

import (
	"slices"

	"overcomplete/graph"
)

// adagrad is what an Accumulate step of graph.Dictionary does with its products
// M and N, as one kernel: a loop for each operation takes twice as long.
//
//	H += max(c0·N + D∘(c1·M + c2·D), 0),  P = (c3·D + c4·M)/√(H+ε)
type adagrad struct {
	d, h, p      vector
	coefficients [5]number
	epsilon      float32
}

// compileAdaGrad compiles the step's body if it is of this form.
func (c *compiler) compileAdaGrad() bool {
	s := c.source
	if c.step.kind != graph.Accumulate || !c.step.squares || len(s.Keeps) != 2 || len(s.Totals) > 0 || len(s.Scalars) > 0 {
		return false
	}
	h, p := c.outputs["H"], s.Keeps[0]
	if p == h {
		p = s.Keeps[1]
	}
	if !slices.Contains(s.Keeps, h) || c.overwrites(p) != "" || p.Op != graph.Div {
		return false
	}
	added, okAdded := addedTo(h, "H")
	if !okAdded {
		return false
	}
	scale, added := added.ConstantFactor() // c·max(x, 0) = max(c·x, 0) if c ≥ 0
	root := p.Args[1]
	if scale < 0 || added.Op != graph.Relu || root.Op != graph.Sqrt || root.Args[0].Op != graph.Add {
		return false
	}
	sum, epsilon := root.Args[0].Args[0], root.Args[0].Args[1]
	if sum != h || epsilon.Op != graph.Const {
		return false
	}
	squares, okSquares := c.linear(added.Args[0], scale)
	gradient, okGradient := c.linear(p.Args[0], 1)
	if !okSquares || !okGradient {
		return false
	}
	m, n := s.Products[0], s.Products[1]
	isD := func(v *graph.Value) bool { return v.Op == graph.Load && v.Name == "D" }
	a := &adagrad{epsilon: float32(epsilon.Const), coefficients: [5]number{
		squares.take(func(v *graph.Value) bool { return v == n }),
		squares.take(func(v *graph.Value) bool {
			return v.Op == graph.Mul && slices.ContainsFunc(v.Args, isD) && slices.Contains(v.Args, m)
		}),
		squares.take(func(v *graph.Value) bool { return v.Op == graph.Square && isD(v.Args[0]) }),
		gradient.take(isD),
		gradient.take(func(v *graph.Value) bool { return v == m }),
	}}
	if len(squares)+len(gradient) > 0 {
		return false
	}
	a.d, a.h, a.p = c.matrixRow(c.outputs["D"]), c.matrixRow(h), c.matrixRow(p)
	c.step.adagrad = a
	return true
}

// run updates the rows from lo to hi, for which the lane has the products.
func (a *adagrad) run(k *kernels, l *lane, lo, hi int) {
	var c [5]float32
	for i, coefficient := range a.coefficients {
		c[i] = float32(coefficient(l))
	}
	for l.row = lo; l.row < hi; l.row++ {
		k.adagrad(a.h(l), a.p(l), a.d(l), l.productRow(0), l.productRow(1), c[0], c[1], c[2], c[3], c[4], a.epsilon)
	}
}

// addedTo returns x where v is the named input plus x.
func addedTo(v *graph.Value, input string) (x *graph.Value, ok bool) {
	if v.Op != graph.Add {
		return nil, false
	}
	for i, a := range v.Args {
		if a.Op == graph.Load && a.Name == input {
			return v.Args[1-i], true
		}
	}
	return nil, false
}

// linear is a sum of vectors, each times a number.
type linear map[*graph.Value]number

// linear reads scale·v as a sum. It is not ok if a factor is no number at hand.
func (c *compiler) linear(v *graph.Value, scale float64) (terms linear, ok bool) {
	terms = make(linear)
	var add func(v *graph.Value, factor number) bool
	add = func(v *graph.Value, factor number) bool {
		switch {
		case isCombination(v):
			second := factor
			if v.Op == graph.Sub {
				second = func(l *lane) float64 { return -factor(l) }
			}
			return add(v.Args[0], factor) && add(v.Args[1], second)
		case v.Op == graph.Mul && isNumber(v.Args[0]):
			n, err := c.number(v.Args[0])
			return err == nil && add(v.Args[1], func(l *lane) float64 { return factor(l) * n(l) })
		}
		if _, twice := terms[v]; twice {
			return false
		}
		terms[v] = factor
		return true
	}
	return terms, add(v, func(*lane) float64 { return scale })
}

// take removes the term that is wanted and returns its factor, 0 if there is none.
func (t linear) take(wanted func(*graph.Value) bool) number {
	for v, factor := range t {
		if wanted(v) {
			delete(t, v)
			return factor
		}
	}
	return func(*lane) float64 { return 0 }
}
