package cpu

import (
	"cmp"
	"context"
	"math"
	"slices"

	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
)

// The exact lasso is solved for one row at a time, by coordinate descent on a working set of atoms: those
// of the code, and those that violate the optimality conditions. After each round, the products of the
// residual with all atoms give the duality gap and the atoms to add.
//
// A round computes in float64 and leaves codes in float32, so that the gap is that of the stored codes.
// Rounding a code changes the products by up to ‖D‖₂² times as much, and the gap depends on the largest of
// them, which are float32, too. No gap below 10⁻⁶ can be measured.
const (
	lassoSteps  = 40   // of FISTA, to start from
	lassoRounds = 50   // few rows need more than five
	lassoPasses = 1000 // over the atoms of a round
	gapPasses   = 10   // between looks at a round's own gap
	gapShare    = 20   // a round lowers the gap by this factor: more is of no use before all atoms are in

	leastViolations = 64 // atoms that may be added to a working set, at least
)

// lassoLane is a worker's working set.
type lassoLane struct {
	residual     []float64   // of a row; padded
	atoms        []int32     // increasing
	gram         simd.Matrix // of their products with each other
	code         []float64   // of them
	correlations []float64   // of the residual with them; padded
	violations   []int32
}

// makeGram computes G = DDᵀ, K×K.
func (e *encoder) makeGram() {
	e.gram = simd.NewMatrix(e.k, e.k)
	parallel.With(e.lanes, (e.k+mostAtoms-1)/mostAtoms, func(l *encodeLane, i int) {
		e.correlateAll(l, e.atoms, i*mostAtoms, min((i+1)*mostAtoms, e.k), e.gram)
	})
}

// correlateAll multiplies the rows of x from lo to hi with all atoms.
func (e *encoder) correlateAll(l *encodeLane, x simd.Matrix, lo, hi int, out simd.Matrix) {
	e.kernels.Correlate(x, lo, hi, &e.packed, nil, &l.sums, func(i, atom int, sums []float32) {
		copy(out.Row(i)[atom:], sums)
	})
}

// lasso moves the lane's codes to the minimum, and computes each row's loss and gap. It stops when ctx is
// cancelled.
func (e *encoder) lasso(ctx context.Context, l *encodeLane, losses, gaps []float64) {
	open := make([]int, len(losses)) // rows that are not at the minimum; the n-th has row n of r and of a
	for i := range open {
		open[i] = i
	}
	terms := make([]gapTerms, len(open))
	for round := 0; len(open) > 0; round++ {
		for n, i := range open {
			terms[n] = e.computeResidual(l, i, l.r.Row(n))
		}
		e.correlateAll(l, l.r, 0, len(open), l.a)
		still := open[:0]
		for n, i := range open {
			if ctx.Err() != nil {
				return
			}
			at, correlations := terms[n], l.a.Row(n)
			at.largest = largest(correlations, e.options.Nonnegative)
			losses[i], gaps[i] = at.squares, at.relative()
			if gaps[i] > e.options.Gap && round < lassoRounds {
				e.descend(l, i, at, correlations, max(e.options.Gap/2, gaps[i]/gapShare))
				still = append(still, i)
			}
		}
		open = still
	}
}

// computeResidual computes the residual of row i and the terms of its gap except the largest product.
func (e *encoder) computeResidual(l *encodeLane, i int, residual []float32) gapTerms {
	p, y := gapTerms{lambda: e.options.Lambda}, l.y.Row(i)
	r := zeroed(l.lasso.residual, l.y.Pitch)
	l.lasso.residual = r
	for j, x := range y {
		r[j] = float64(x)
	}
	for n, v := range l.codes.value[i] {
		e.kernels.Axpy(r, -float64(v), e.atoms.Padded(int(l.codes.index[i][n])))
		p.l1 += math.Abs(float64(v))
	}
	for j, x := range y {
		residual[j] = float32(r[j])
		p.squares += r[j] * r[j]
		p.product += r[j] * float64(x)
	}
	return p
}

// gapTerms are the terms of a code's duality gap.
type gapTerms struct {
	lambda  float64
	squares float64 // ‖r‖²
	product float64 // ⟨y, r⟩
	l1      float64 // ‖a‖₁
	largest float64 // the largest of rDᵀ, or of its magnitudes if codes may be negative
}

// relative returns the duality gap relative to the objective. The dual objective is ‖y‖² − ‖y − u‖² for a u
// with 2uDᵀ ≤ λ: here the best such multiple of r.
func (p gapTerms) relative() float64 {
	objective := p.squares + p.lambda*p.l1
	if objective == 0 {
		return 0
	}
	t := max(p.product/max(p.squares, math.SmallestNonzeroFloat64), 0)
	if p.largest > 0 {
		t = min(t, p.lambda/(2*p.largest))
	}
	return max(objective-(2*t*p.product-t*t*p.squares), 0) / objective
}

// largest returns the largest product, or magnitude of one if codes may be negative.
func largest[F float32 | float64](c []F, nonnegative bool) float64 {
	var result F
	for _, x := range c {
		if result = max(result, x); !nonnegative {
			result = max(result, -x)
		}
	}
	return float64(result)
}

// descend lowers the objective of row i on a working set until the gap is small enough. Correlations are
// the products of the residual with all atoms.
func (e *encoder) descend(l *encodeLane, i int, at gapTerms, correlations []float32, gap float64) {
	w := &l.lasso
	e.workingSet(w, l.codes.index[i], correlations)
	n := len(w.atoms)
	w.code, w.correlations = simd.Sized(w.code, n), zeroed(w.correlations, simd.Pitch(n))
	w.gram.Resize(n, n)
	next := 0
	for j, k := range w.atoms {
		w.code[j] = 0
		if next < len(l.codes.index[i]) && l.codes.index[i][next] == k {
			w.code[j] = float64(l.codes.value[i][next])
			next++
		}
		w.correlations[j] = float64(correlations[k])
		row, from := w.gram.Padded(j), e.gram.Row(int(k))
		for m := j; m < n; m++ {
			product := from[w.atoms[m]]
			row[m], w.gram.Data[m*w.gram.Pitch+j] = product, product
		}
		clear(row[n:])
	}
	half := e.options.Lambda / 2
	for pass := 1; pass <= lassoPasses; pass++ {
		for j, old := range w.code {
			gram := w.gram.Padded(j)
			square, c := float64(gram[j]), w.correlations[j]
			if square == 0 {
				continue // an atom of zeros
			}
			g, x := old*square+c, 0.0
			if g > half {
				x = (g - half) / square
			} else if g < -half && !e.options.Nonnegative {
				x = (g + half) / square
			}
			if delta := x - old; delta != 0 {
				w.code[j] = x
				e.kernels.Axpy(w.correlations, -delta, gram)
				at.squares += delta * (delta*square - 2*c)
			}
		}
		if pass%gapPasses == 0 && e.inner(w, at) <= gap {
			break
		}
	}
	index, value := l.codes.index[i][:0], l.codes.value[i][:0]
	for j, x := range w.code {
		if x := float32(x); x != 0 {
			index, value = append(index, w.atoms[j]), append(value, x)
		}
	}
	l.codes.index[i], l.codes.value[i] = index, value
}

// inner returns the gap of the lasso with the atoms of the working set.
func (e *encoder) inner(w *lassoLane, at gapTerms) float64 {
	at.product, at.l1, at.largest = at.squares, 0, largest(w.correlations, e.options.Nonnegative)
	for j, x := range w.code {
		at.product += x * w.correlations[j] // y = r + aD
		at.l1 += math.Abs(x)
	}
	return at.relative()
}

// workingSet sets w to the atoms of a code, and up to as many others whose products c with the residual are
// too large: the largest first.
func (e *encoder) workingSet(w *lassoLane, support []int32, c []float32) {
	half := float32(e.options.Lambda / 2)
	w.violations = w.violations[:0]
	next := 0
	for k, x := range c {
		switch {
		case next < len(support) && int(support[next]) == k:
			next++
		case x > half || x < -half && !e.options.Nonnegative:
			w.violations = append(w.violations, int32(k))
		}
	}
	if most := max(len(support), leastViolations); len(w.violations) > most {
		slices.SortFunc(w.violations, func(i, j int32) int {
			return cmp.Or(cmp.Compare(max(c[j], -c[j]), max(c[i], -c[i])), cmp.Compare(i, j))
		})
		w.violations = w.violations[:most]
	}
	w.atoms = append(append(w.atoms[:0], support...), w.violations...)
	slices.Sort(w.atoms)
}
