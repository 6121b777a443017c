package graph

import "slices"

// fuse makes one step of those that move the dictionary.
func (p *placer) fuse(drafts []*draft) {
	for i := range max(0, len(drafts)-2) {
		if u := p.update(drafts[i:i+3], p.Steps[i:i+3]); u != nil {
			p.Steps = slices.Replace(p.Steps, i, i+3, Step(u))
			return
		}
	}
}

// update recognises the three steps of an [Update]. It returns nil if they do
// anything else.
func (p *placer) update(d []*draft, steps []Step) *Update {
	u := new(Update)
	var isStep [3]bool
	u.Accumulate, isStep[0] = steps[0].(*Accumulate)
	u.Search, isStep[1] = steps[1].(*Decode)
	u.Move, isStep[2] = steps[2].(*Elementwise)
	newH, newD := p.output("H"), p.output("D")
	if isStep != [3]bool{true, true, true} || len(d[0].products) != 2 || len(d[0].totals)+len(d[2].totals) > 0 ||
		len(d[0].keeps) != 2 || !slices.Contains(d[0].keeps, newH) || !slices.Equal(d[2].keeps, []*value{newD}) {
		return nil
	}
	m, n, P := d[0].products[0], d[0].products[1], d[0].keeps[0]
	if left, _ := m.factors(); left.squared {
		m, n = n, m
	}
	if P == newH {
		P = d[0].keeps[1]
	}
	if _, searched := d[1].products[0].factors(); searched.value != P || P.op != opDiv {
		return nil
	}
	one, D := p.constant(1), p.load("D")

	// H + max(c0∘N + c1∘D∘M + c2∘D², 0), the c0 to c2 perhaps with a common factor
	// before the max.
	sums := p.linear(newH, one)
	if p.take(sums, p.load("H")) != one || len(sums) != 1 {
		return nil
	}
	var squares linear
	for added, factor := range sums {
		if added.op != opRelu || factor.op != opConst || factor.constant < 0 {
			return nil
		}
		squares = p.linear(added.args[0], factor)
	}
	DM, err := p.mul(D, m)
	if err != nil {
		return nil
	}
	coefficients := []*value{p.take(squares, n), p.take(squares, DM), p.take(squares, p.unary(opSquare, D))}

	// (c3∘D + c4∘M)/√(H+ε)
	root := P.args[1]
	if root.op != opSqrt || root.args[0].op != opAdd || root.args[0].args[0] != newH || root.args[0].args[1].op != opConst {
		return nil
	}
	u.Epsilon = root.args[0].args[1].constant
	gradient := p.linear(P.args[0], one)
	coefficients = append(coefficients, p.take(gradient, D), p.take(gradient, m))

	// D + c5·α∘P
	move, ok := p.added(newD, "D", P)
	c5, alpha := move.constantFactor()
	coefficients = append(coefficients, p.constant(c5))
	if !ok || !slices.Contains(d[1].scalars, alpha) || len(squares)+len(gradient) > 0 {
		return nil
	}
	for i, c := range coefficients {
		if !c.given() {
			return nil
		}
		if u.Coefficients[i], err = p.number(c); err != nil {
			return nil
		}
	}
	u.D, u.H, u.P, u.Alpha = p.vectorOf[newD], p.vectorOf[newH], p.vectorOf[P], p.numberOf[alpha]
	return u
}

// linear is a sum of vectors, and the number that each is multiplied by.
type linear map[*value]*value

// linear reads factor∘v as a sum.
func (p *placer) linear(v, factor *value) linear {
	terms := make(linear)
	var add func(v, factor *value)
	add = func(v, factor *value) {
		if isCombination(v) {
			second := factor
			if v.op == opSub {
				second = p.scaled(-1, factor)
			}
			add(v.args[0], factor)
			add(v.args[1], second)
			return
		}
		if v.op == opMul && v.args[0].isNumber() {
			if product, err := p.mul(factor, v.args[0]); err == nil {
				add(v.args[1], product)
				return
			}
		}
		sum, err := p.sum2(p.coefficient(terms, v), factor, 1)
		if err != nil {
			v, sum = new(value), factor // a term that is none of those looked for
		}
		terms[v] = sum
	}
	add(v, factor)
	return terms
}

// added returns c where v is the named input plus c∘x.
func (p *placer) added(v *value, input string, x *value) (c *value, ok bool) {
	terms := p.linear(v, p.constant(1))
	own := p.take(terms, p.load(input))
	c = p.take(terms, x)
	return c, own == p.constant(1) && len(terms) == 0
}

// coefficient is what v is multiplied by.
func (p *placer) coefficient(terms linear, v *value) *value {
	if c, ok := terms[v]; ok {
		return c
	}
	return p.constant(0)
}

// take removes v and returns its coefficient.
func (p *placer) take(terms linear, v *value) *value {
	c := p.coefficient(terms, v)
	delete(terms, v)
	return c
}
