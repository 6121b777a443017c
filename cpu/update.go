package cpu

import (
	"slices"

	"overcomplete/cpu/simd"
	"overcomplete/graph"
)

// update is how graph.Dictionary moves D, three of its four steps in one. D takes
// its step in full as soon as that is known, while it is at hand; what the line
// search then cuts off, which is rare, is taken back. M and N are products.
//
//	H += max(c0·N + D∘(c1·M + c2·D), 0),  P = (c3·D + c4·M)/√(H+ε),  D += f(1)·P
//	W = A·P, and α from it
//	D += (f(α) − f(1))·P
type update struct {
	accumulate, decode *step

	d, h, p      int // places
	coefficients [5]number
	epsilon      float32

	alpha int    // place
	move  number // f(α)
}

// compileUpdate compiles the last of the three steps, and those before it with it,
// if they are of this form.
func (c *compiler) compileUpdate() bool {
	i, last := slices.Index(c.program.Steps, c.source), c.source
	if i != 3 || c.step.kind != graph.Elementwise || len(last.Keeps) != 1 || len(last.Totals)+len(last.Scalars) > 0 {
		return false
	}
	first, second := c.program.Steps[i-2], c.program.Steps[i-1]
	u := &update{accumulate: c.steps[len(c.steps)-2], decode: c.steps[len(c.steps)-1]}
	p := c.compileAdaGrad(u, first)
	if p == nil || second.Kind() != graph.Decode || len(second.Products) != 1 ||
		u.decode.product[0] != (product{u.accumulate.product[0].left, u.p}) {
		return false
	}
	if residuals := c.steps[0]; residuals.kind != graph.Decode || len(residuals.product) != 1 ||
		residuals.product[0] != (product{u.decode.product[0].left, u.d}) {
		return false
	}
	// Nothing may read D after the first step but the last.
	loadsD := func(v *graph.Value) bool { return slices.ContainsFunc(v.Reads(), isLoadOf("D")) }
	if slices.ContainsFunc(slices.Concat(second.Body, second.Totals, second.Scalars), loadsD) {
		return false
	}
	moved := last.Keeps[0]
	if moved != c.outputs["D"] || !isCombination(moved) || !isLoadOf("D")(moved.Args[0]) {
		return false
	}
	terms, ok := c.linear(moved, 1)
	terms.take(isLoadOf("D"))
	u.move = terms.take(func(v *graph.Value) bool { return v == p })
	alphas := slices.DeleteFunc(slices.Clone(second.Scalars), func(v *graph.Value) bool { return v.Op != graph.Ratio })
	if !ok || len(terms) > 0 || len(alphas) != 1 {
		return false
	}
	u.alpha = c.numberAt(alphas[0])
	u.accumulate.moves, c.step.update = u, u
	c.steps = c.steps[:len(c.steps)-2]
	return true
}

func isLoadOf(input string) func(v *graph.Value) bool {
	return func(v *graph.Value) bool { return v.Op == graph.Load && v.Name == input }
}

// compileAdaGrad reads s as the first of the steps and returns P, nil if it is
// another.
func (c *compiler) compileAdaGrad(u *update, s *graph.Step) (p *graph.Value) {
	if s.Kind() != graph.Accumulate || len(s.Products) != 2 || len(s.Keeps) != 2 || len(s.Totals)+len(s.Scalars) > 0 {
		return nil
	}
	h, p := c.outputs["H"], s.Keeps[0]
	if p == h {
		p = s.Keeps[1]
	}
	if !slices.Contains(s.Keeps, h) || c.overwrites(p) != "" || p.Op != graph.Div {
		return nil
	}
	added, okAdded := addedTo(h, "H")
	if !okAdded {
		return nil
	}
	scale, added := added.ConstantFactor() // c·max(x, 0) = max(c·x, 0) if c ≥ 0
	root := p.Args[1]
	if scale < 0 || added.Op != graph.Relu || root.Op != graph.Sqrt || root.Args[0].Op != graph.Add {
		return nil
	}
	sum, epsilon := root.Args[0].Args[0], root.Args[0].Args[1]
	if sum != h || epsilon.Op != graph.Const {
		return nil
	}
	squares, okSquares := c.linear(added.Args[0], scale)
	gradient, okGradient := c.linear(p.Args[0], 1)
	if !okSquares || !okGradient {
		return nil
	}
	m, n, isD := s.Products[0], s.Products[1], isLoadOf("D")
	u.coefficients = [5]number{
		squares.take(func(v *graph.Value) bool { return v == n }),
		squares.take(func(v *graph.Value) bool {
			return v.Op == graph.Mul && slices.ContainsFunc(v.Args, isD) && slices.Contains(v.Args, m)
		}),
		squares.take(func(v *graph.Value) bool { return v.Op == graph.Square && isD(v.Args[0]) }),
		gradient.take(isD),
		gradient.take(func(v *graph.Value) bool { return v == m }),
	}
	if len(squares)+len(gradient) > 0 {
		return nil
	}
	u.epsilon = float32(epsilon.Const)
	u.d, u.h, u.p = c.matrixAt(c.outputs["D"]), c.matrixAt(h), c.matrixAt(p)
	return p
}

// run executes the three steps on the frame's batch.
func (u *update) run(f *frame, lanes []*lane) {
	f.numbers[u.alpha] = 1
	lanes[0].frame = f
	full := float32(u.move(lanes[0]))
	for i, coefficient := range u.coefficients {
		f.factors[i] = float32(coefficient(lanes[0]))
	}
	f.factors[5] = full
	u.moveAtoms(f, lanes)
	u.decode.run(f, lanes)
	if back := float32(u.move(lanes[0])) - full; back != 0 {
		if f.next != nil {
			f.next.parts = nil // of a D that is taken back
		}
		d, p := f.matrices[u.d], f.matrices[u.p]
		parallel(lanes, (f.atoms+mostAtoms-1)/mostAtoms, func(_ *lane, i int) {
			for k := i * mostAtoms; k < min((i+1)*mostAtoms, f.atoms); k++ {
				u.accumulate.kernels.Combine(d.Row(k), 1, d.Row(k), back, p.Row(k))
			}
		})
	}
}

// moveAtoms is the first step, and D's in full. For a small batch, reading and
// writing D, H and P takes longer than computing with them. Each part of D is
// therefore multiplied as well while it is at hand: P for the second step, and D
// itself for the first step of the next batch.
func (u *update) moveAtoms(f *frame, lanes []*lane) {
	d, p := f.matrices[u.d], f.matrices[u.p]
	if 4*f.words*d.Pitch > batchBytes {
		u.accumulate.run(f, lanes)
		return
	}
	parts := min(max(leastParts, 4*f.atoms*d.Pitch/partBytes), mostParts)
	size := (f.atoms + parts - 1) / parts
	parts = (f.atoms + size - 1) / size
	f.makeParts(parts)
	if f.next != nil {
		f.next.makeParts(parts)
	}
	parallel(lanes, parts, func(l *lane, i int) {
		lo, hi := i*size, min((i+1)*size, f.atoms)
		u.accumulate.accumulate(l, f, lo, hi)
		u.decodePart(l, f, p, i, lo, hi)
		if f.next != nil {
			u.decodePart(l, f.next, d, i, lo, hi)
		}
	})
}

// makeParts readies the frame for n parts of its next product.
func (f *frame) makeParts(n int) {
	for len(f.partsRoom) < n {
		f.partsRoom = append(f.partsRoom, simd.Matrix{})
	}
	f.parts = f.partsRoom[:n]
}

// decodePart makes the part of A·m that comes from the atoms from lo to hi.
func (u *update) decodePart(l *lane, f *frame, m simd.Matrix, part, lo, hi int) {
	out := &f.parts[part]
	out.Zero(f.words, f.dim)
	f.codes[u.decode.product[0].left].decode(u.decode.kernels, *out, m, 0, f.words, lo, hi, &l.next)
}

// sparse moves the atoms from lo to hi with sparse codes. It takes as many columns
// at a time as residuals fit in level 2.
func (u *update) sparse(l *lane, f *frame, lo, hi int) {
	r := f.matrices[u.accumulate.product[0].right]
	if len(l.zeros) < r.Pitch {
		l.zeros = make([]float32, r.Pitch)
	}
	width := min(r.Pitch, max(simd.Width, residualBytes/(4*f.words)&^(simd.Width-1)))
	for left := 0; left < r.Pitch; left += width {
		right := min(left+width, r.Pitch)
		for k := lo; k < hi; k++ {
			words, values := l.column.of(k - lo)
			u.atom(f, k, left, right, l.zeros, l.zeros, words, values, r.Data[left:])
		}
	}
}

// atom moves columns of an atom, of which m and n are a part of the products and
// the words that use it are the rest.
func (u *update) atom(f *frame, k, left, right int, m, n []float32, words []int32, values, r []float32) {
	c := &f.factors
	h, p, d := f.matrices[u.h].Padded(k)[left:right], f.matrices[u.p].Padded(k)[left:right], f.matrices[u.d].Padded(k)[left:right]
	u.accumulate.kernels.MoveAtom(h, p, d, m, n, words, values, r, f.matrices[u.d].Pitch, c[0], c[1], c[2], c[3], c[4], u.epsilon, c[5])
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
