package graph

import "fmt"

// whole recognises a program that is a single step: one that reads a point beyond the
// codes, or sums of their products. It refuses those that are no such step, and returns
// nil for all others.
func (p *placer) whole(drafts []*draft) (Step, error) {
	parts := make([][]string, len(drafts))
	for i, d := range drafts {
		parts[i] = d.listing(p.outputs)
	}
	switch {
	case p.reads("Z"):
		s, err := p.proximal()
		if err != nil {
			return nil, fmt.Errorf("step 1 (proximal) of the %s program: %w", p.Name, err)
		}
		s.listing = together("proximal n×K, two steps as one", parts...)
		return s, nil
	case p.reads("G"), p.reads("B"):
		s, err := p.atomUpdate()
		if err != nil {
			return nil, fmt.Errorf("step 1 (atom update) of the %s program: %w", p.Name, err)
		}
		s.listing = together("atom update K×L, each atom in turn", parts...)
		return s, nil
	}
	return nil, nil
}

// reads reports whether the expression has an input of that name.
func (p *placer) reads(name string) bool {
	_, ok := p.values["load "+name]
	return ok
}

// names lists the results.
func (p *placer) names() (names []string) {
	for _, out := range p.outputs {
		names = append(names, out.name)
	}
	return names
}

func (p *placer) proximal() (*Proximal, error) {
	X, A, Z, D, size, m := p.load("X"), p.load("A"), p.load("Z"), p.load("D"), p.load("s"), p.load("m")
	newA, newZ := p.output("A"), p.output("Z")
	if newA == nil || newZ == nil || len(p.outputs) != 2 {
		return nil, fmt.Errorf("it computes %v, want A and Z", p.names())
	}
	s, b := new(Proximal), newA
	if s.Nonnegative = b.op == opRelu; s.Nonnegative {
		b = b.args[0]
	}
	noSoft := fmt.Errorf("%v = %s is no soft-thresholding of Z after a step along (X − Z · D) · Dᵀ", newA, newA.formula(true))
	if b.op != opSoft {
		return nil, noSoft
	}
	// Z − s·Gradient·(X − ZD)·Dᵀ, s·Lambda
	residual := must(p.sum2(X, must(p.matMul(Z, D)), -1))
	point := p.linear(b.args[0], p.constant(1))
	from, along := p.take(point, Z), p.take(point, must(p.matMul(residual, p.unary(opTranspose, D))))
	var ok [2]bool
	s.Gradient, ok[0] = p.multiple(p.scaled(-1, along), size)
	s.Lambda, ok[1] = p.multiple(b.args[1], size)
	if from != p.constant(1) || len(point) > 0 || ok != [2]bool{true, true} {
		return nil, noSoft
	}
	products := must(p.mul(must(p.sum2(Z, newA, -1)), must(p.sum2(A, newA, -1))))
	onward := must(p.mul(m, p.unary(opNotNegative, p.unary(opRowSum, products))))
	if newZ != must(p.sum2(newA, p.scaleRows(must(p.sum2(newA, A, -1)), onward), 1)) {
		return nil, fmt.Errorf("%v = %s is no momentum with restart", newZ, newZ.formula(true))
	}
	return s, nil
}

func (p *placer) atomUpdate() (*AtomUpdate, error) {
	D, G, B, W, c, one := p.load("D"), p.load("G"), p.load("B"), p.load("W"), p.load("c"), p.constant(1)
	newD := p.output("D")
	if newD == nil || len(p.outputs) != 1 {
		return nil, fmt.Errorf("it computes %v, want D", p.names())
	}
	s := new(AtomUpdate)
	var unit *value
	if s.Norm, unit = newD.constantFactor(); unit.op == opUnit && unit.args[1] == D {
		// D + (B − GD − c(D − W))/(diag(G) + c)
		u := p.linear(unit.args[0], one)
		from := p.take(u, D)
		for step, factor := range u {
			if step.op != opOverDiagonal || step.args[1] != G || step.args[2] != c {
				break
			}
			s.LeastUse = step.constant
			residual := p.linear(step.args[0], factor)
			product := p.take(residual, must(p.matMul(G, D)))
			away, back := p.take(residual, D), p.take(residual, W)
			if from == one && len(u) == 1 && product == p.constant(-1) && p.take(residual, B) == one &&
				back == c && away == p.scaled(-1, c) && len(residual) == 0 {
				return s, nil
			}
		}
	}
	return nil, fmt.Errorf("%v = %s does not move atoms to D + (diag(G) + c)⁻¹·(B − G · D − c∘(D − W)), at a norm", newD, newD.formula(true))
}

// multiple returns c where v is c∘x.
func (p *placer) multiple(v, x *value) (c float64, ok bool) {
	if v == p.constant(0) {
		return 0, true
	}
	c, rest := v.constantFactor()
	return c, rest == x
}

// must returns a value of inputs, or what has their shapes, which match.
func must(v *value, err error) *value {
	if err != nil {
		panic(err)
	}
	return v
}
