package cpu

import (
	"overcomplete/graph"
	"overcomplete/internal/parallel"
	"overcomplete/internal/program"
	"overcomplete/internal/simd"
)

// update runs a dictionary update. D takes its full step, as if α were 1, while it is in cache. If the line
// search then shortens the step, which is rare, the last line below undoes the difference:
//
//	H += max(c0·N + D∘(c1·M + c2·D), 0),  P = (c3·D + c4·M)/√(H+ε),  D += c5·P
//	W = A·P, which determines α
//	D += (c5·α − c5)·P
type update struct {
	*executable
	step         *program.Update
	coefficients [6]float32
}

func (x *executable) update(s *program.Update, f *frame, lanes []*lane) {
	u := &update{executable: x, step: s}
	for i, at := range s.Coefficients {
		u.coefficients[i] = float32(f.numbers[at])
	}
	u.moveAtoms(f, lanes)
	x.step(s.Search, f, lanes)
	if back := float32(f.numbers[s.Coefficients[5]]*f.numbers[s.Alpha]) - u.coefficients[5]; back != 0 {
		if f.next != nil {
			f.next.parts = nil // the parts are products of the full step
		}
		d, p := f.vectors[s.D], f.vectors[s.P]
		parallel.With(lanes, (f.atoms+maxAtoms-1)/maxAtoms, func(_ *lane, i int) {
			for k := i * maxAtoms; k < min((i+1)*maxAtoms, f.atoms); k++ {
				x.kernels.Combine(d.Row(k), 1, d.Row(k), back, p.Row(k))
			}
		})
	}
}

// moveAtoms updates H, P and D. For a small batch, memory traffic takes longer than the arithmetic. Each part
// of D and P is therefore multiplied while it is in cache: A·P for the line search, and A·D for the next batch.
func (u *update) moveAtoms(f *frame, lanes []*lane) {
	d, p := f.vectors[u.step.D], f.vectors[u.step.P]
	size, multiplies := max(maxAtoms, f.atoms/(4*len(lanes))), 4*f.rows*d.Pitch <= batchBytes
	if multiplies {
		parts := min(max(minParts, 4*f.atoms*d.Pitch/partBytes), maxParts)
		size = (f.atoms + parts - 1) / parts
	}
	parts := (f.atoms + size - 1) / size
	for _, frame := range []*frame{f, f.next} {
		if multiplies && frame != nil {
			frame.makeParts(parts)
		}
	}
	parallel.With(lanes, parts, func(l *lane, i int) {
		lo, hi := i*size, min((i+1)*size, f.atoms)
		u.atoms(l, f, lo, hi)
		if multiplies {
			u.decodePart(l, f, p, i, lo, hi)
			if f.next != nil {
				u.decodePart(l, f.next, d, i, lo, hi)
			}
		}
	})
}

func (f *frame) makeParts(n int) {
	for len(f.partsBuffer) < n {
		f.partsBuffer = append(f.partsBuffer, simd.Matrix{})
	}
	f.parts = f.partsBuffer[:n]
}

// decodePart sets f.parts[part] to the product of A and m over the atoms from lo to hi.
func (u *update) decodePart(l *lane, f *frame, m simd.Matrix, part, lo, hi int) {
	out := &f.parts[part]
	out.Zero(f.rows, f.dim)
	f.codes.decode(u.kernels, *out, m, 0, f.rows, lo, hi, &l.next)
}

// atoms updates the atoms from lo to hi. For sparse codes, one loop computes the products and updates the atoms. It
// processes a range of columns at a time, so that these columns of the residuals stay in the level-2 cache.
func (u *update) atoms(l *lane, f *frame, lo, hi int) {
	r := f.vectors[u.step.Accumulate.Residuals]
	if f.codes.dense != nil {
		u.accumulateProducts(l, f, u.step.Accumulate, lo, hi)
		m, n := l.vectors[program.AccumulateProduct], l.vectors[program.SquaresProduct]
		for k := lo; k < hi; k++ {
			clear(m.Padded(k - lo)[f.dim:])
			clear(n.Padded(k - lo)[f.dim:])
			u.atom(f, k, 0, r.Pitch, m.Padded(k-lo), n.Padded(k-lo), nil, nil, nil)
		}
		return
	}
	l.column.transpose(&f.codes, f.rows, lo, hi)
	if len(l.zeros) < r.Pitch {
		l.zeros = make([]float32, r.Pitch)
	}
	width := min(r.Pitch, max(simd.Width, residualBytes/(4*f.rows)&^(simd.Width-1)))
	for left := 0; left < r.Pitch; left += width {
		right := min(left+width, r.Pitch)
		for k := lo; k < hi; k++ {
			rows, values := l.column.atom(k - lo)
			u.atom(f, k, left, right, l.zeros, l.zeros, rows, values, r.Data[left:])
		}
	}
}

// atom updates the elements j of atom k for left ≤ j < right. It uses the products in m and n, plus the products of
// values with the given rows of r.
func (u *update) atom(f *frame, k, left, right int, m, n []float32, rows []int32, values, r []float32) {
	c, d := &u.coefficients, f.vectors[u.step.D]
	u.kernels.MoveAtom(f.vectors[u.step.H].Padded(k)[left:right], f.vectors[u.step.P].Padded(k)[left:right], d.Padded(k)[left:right], m, n,
		rows, values, r, d.Pitch, c[0], c[1], c[2], c[3], c[4], graph.Epsilon, c[5])
}
