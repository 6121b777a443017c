package cpu

import (
	"cmp"
	"context"
	"math"
	"slices"

	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
)

// The exact lasso is solved row by row, by coordinate descent on a working set. The set contains the
// atoms of the code and some atoms that violate the optimality conditions. After each round, the products
// of the residual with all atoms give the duality gap and the atoms to add.
//
// A round computes in float64 and rounds codes to float32; the gap is measured on the rounded codes. Rounding
// a code changes the products by up to ‖D‖₂² times the rounding error. The gap depends on the largest
// product, and products are also rounded to float32. A gap below 10⁻⁶ can't be measured.
const (
	lassoSteps   = 40   // steps of the search that finds the initial codes
	lassoRounds  = 50   // limit of rounds; few rows need more than five
	lassoPasses  = 1000 // limit of passes over the working set in a round
	gapPasses    = 10   // passes between measurements of the working set's gap
	gapReduction = 20   // a round stops after lowering the gap by this factor, because the next round has better atoms

	minViolations = 64 // a round adds at most this number of atoms, or the size of the code if that is larger
)

// lassoLane is a worker's working set.
type lassoLane struct {
	residual     []float64   // residual of one row; padded
	atoms        []int32     // the working set, increasing
	gram         simd.Matrix // products of the atoms with each other
	code         []float64   // coefficients of the atoms
	correlations []float64   // products of the residual with the atoms; padded
	violations   []int32
}

func (e *encoder) makeGram() {
	e.gram = simd.NewMatrix(e.k, e.k)
	parallel.With(e.lanes, (e.k+maxAtoms-1)/maxAtoms, func(l *encodeLane, i int) {
		e.correlateAll(l, e.atoms, i*maxAtoms, min((i+1)*maxAtoms, e.k), e.gram)
	})
}

// correlateAll multiplies the rows of x from lo to hi with all atoms.
func (e *encoder) correlateAll(l *encodeLane, x simd.Matrix, lo, hi int, out simd.Matrix) {
	e.kernels.Correlate(x, lo, hi, &e.packed, nil, &l.sums, func(i, atom int, sums []float32) {
		copy(out.Row(i)[atom:], sums)
	})
}

// lasso sets the lane's codes to the minimum of the objective, and computes each row's loss and relative gap. It stops
// when ctx is cancelled.
func (e *encoder) lasso(ctx context.Context, l *encodeLane, losses, gaps []float64) {
	open := make([]int, len(losses)) // rows whose gap is too large; the n-th of them uses row n of l.r and l.a
	for i := range open {
		open[i] = i
	}
	terms := make([]gapTerms, len(open))
	l.r.Resize(len(open), e.dim)
	l.a.Resize(len(open), e.k)
	for round := 0; len(open) > 0; round++ {
		for n, i := range open {
			terms[n] = e.computeResidual(l, i, l.r.Row(n))
		}
		e.correlateAll(l, l.r, 0, len(open), l.a)
		remaining := open[:0]
		for n, i := range open {
			if ctx.Err() != nil {
				return
			}
			at, correlations := terms[n], l.a.Row(n)
			at.largest = largest(correlations, e.options.Nonnegative)
			losses[i], gaps[i] = at.squares, at.relativeGap()
			if gaps[i] > e.options.Gap && round < lassoRounds {
				e.descend(l, i, at, correlations, max(e.options.Gap/2, gaps[i]/gapReduction))
				remaining = append(remaining, i)
			}
		}
		open = remaining
	}
}

// computeResidual stores the residual of row i in residual. It returns the terms of the gap, except largest.
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
	largest float64 // max rDᵀ, or max |rDᵀ| if codes may be negative
}

// relativeGap returns the duality gap divided by the objective. The dual objective is ‖y‖² − ‖y − u‖² for any u
// with 2uDᵀ ≤ λ. The dual point u is r, scaled to be feasible.
func (p gapTerms) relativeGap() float64 {
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

// largest returns the largest product, or the largest magnitude if codes may be negative.
func largest[F float32 | float64](c []F, nonnegative bool) float64 {
	var result F
	for _, x := range c {
		if result = max(result, x); !nonnegative {
			result = max(result, -x)
		}
	}
	return float64(result)
}

// descend minimises the objective of row i on a working set, until the relative gap is at most gap. The
// argument correlations contains the products of the residual with all atoms.
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
				continue // a zero atom
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
		if pass%gapPasses == 0 && e.workingSetGap(w, at) <= gap {
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

// workingSetGap returns the relative gap of the lasso problem whose only atoms are the working set.
func (e *encoder) workingSetGap(w *lassoLane, at gapTerms) float64 {
	at.product, at.l1, at.largest = at.squares, 0, largest(w.correlations, e.options.Nonnegative)
	for j, x := range w.code {
		at.product += x * w.correlations[j] // y = r + aD
		at.l1 += math.Abs(x)
	}
	return at.relativeGap()
}

// workingSet sets w.atoms to the support of a code, plus the atoms that violate the optimality conditions most. It
// adds at most max(len(support), minViolations) atoms. c contains the products of the residual with all atoms.
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
	if most := max(len(support), minViolations); len(w.violations) > most {
		slices.SortFunc(w.violations, func(i, j int32) int {
			return cmp.Or(cmp.Compare(max(c[j], -c[j]), max(c[i], -c[i])), cmp.Compare(i, j))
		})
		w.violations = w.violations[:most]
	}
	w.atoms = append(append(w.atoms[:0], support...), w.violations...)
	slices.Sort(w.atoms)
}
