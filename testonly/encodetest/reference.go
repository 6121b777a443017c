// Package encodetest tests encoders. It implements the definition of package encode in plain Go, one row at a time, and
// compares any [encode.Encoder] with it:
//
//	func TestEncoder(t *testing.T) { encodetest.Run(t, 1e-5, newEncoder) }
package encodetest

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
)

// Code returns the early-stopped code of y, of length K. y has length L, and the dictionary d is K×L; both contain
// float32 numbers. Code panics if d can't encode. [Search] has the bits of package encode; [Polish] is in float64.
func Code(y, d []float64, o encode.Options) []float64 {
	return CodeOf(y, d, stepSize(d, len(y)), o, backend.Capacity(o, len(d)/len(y)))
}

// CodeOf is Code for a given step size and capacity.
func CodeOf(y, d []float64, s float64, o encode.Options, capacity int) []float64 {
	a := Widen(Search(narrow(y), &model.Dictionary{Dim: len(y), Atoms: narrow(d)}, s, o, capacity))
	Polish(a, y, d, s, o)
	return a
}

// Polish keeps the largest values of the code a and refines them, in float64. The step size is s.
func Polish(a, y, d []float64, s float64, o encode.Options) {
	kept := keepLargest(a, o.Nonzeros)
	z := slices.Clone(a)
	for _, momentum := range backend.FISTA(0, backend.PolishSteps) {
		for k, c := range Correlations(y, d, z) {
			if kept[k] {
				b := Shrink(z[k]+2*s*c, 0, o.Nonnegative)
				z[k], a[k] = b+momentum*(b-a[k]), b
			}
		}
	}
}

// FloatCode is like [Code], but searches in float64 as [overcomplete/graph.Encode] does: atoms enter in every
// iteration, and rows restart.
func FloatCode(y, d []float64, o encode.Options) []float64 {
	s := stepSize(d, len(y))
	a := make([]float64, len(d)/len(y))
	fista(a, y, d, s, o.Lambda, o.Steps, func(_ int, g, threshold float64) float64 {
		return Shrink(g, threshold, o.Nonnegative)
	})
	kept := keepLargest(a, o.Nonzeros)
	fista(a, y, d, s, 0, backend.PolishSteps, func(k int, g, threshold float64) float64 {
		if !kept[k] {
			return 0
		}
		return Shrink(g, threshold, o.Nonnegative)
	})
	return a
}

// keepLargest keeps the k largest elements of a, sets the others to zero, and reports which elements it kept.
func keepLargest(a []float64, k int) []bool {
	kept := Largest(a, k)
	for i := range a {
		if !kept[i] {
			a[i] = 0
		}
	}
	return kept
}

func stepSize(d []float64, dim int) float64 {
	s, err := backend.StepSize(&model.Dictionary{Dim: dim, Atoms: narrow(d)})
	if err != nil {
		panic(err)
	}
	return s
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

func fista(a, y, d []float64, s, lambda float64, steps int, shrink func(k int, g, threshold float64) float64) {
	z, b := slices.Clone(a), make([]float64, len(a))
	for lambda, momentum := range backend.FISTA(lambda, steps) {
		c := Correlations(y, d, z)
		var against float64
		for k := range b {
			b[k] = shrink(k, z[k]+2*s*c[k], lambda*s)
			against += (z[k] - b[k]) * (b[k] - a[k])
		}
		if against > 0 {
			momentum = 0
		}
		for k := range b {
			z[k] = b[k] + momentum*(b[k]-a[k])
		}
		copy(a, b)
	}
}

// Shrink returns the soft-thresholded g, sgn(g)·max(|g| − threshold, 0), or max(g − threshold, 0) for nonnegative
// codes.
func Shrink(g, threshold float64, nonnegative bool) float64 {
	switch {
	case g > threshold:
		return g - threshold
	case g < -threshold && !nonnegative:
		return g + threshold
	}
	return 0
}

// Residual returns y − aD, of length L.
func Residual(y, d, a []float64) []float64 {
	r := slices.Clone(y)
	for k, x := range a {
		floats.AddScaled(r, -x, d[k*len(y):][:len(y)])
	}
	return r
}

// Correlations returns (y − aD)Dᵀ, of length K.
func Correlations(y, d, a []float64) []float64 {
	c := make([]float64, len(a))
	r := Residual(y, d, a)
	for k := range c {
		c[k] = floats.Dot(r, d[k*len(y):][:len(y)])
	}
	return c
}

// Objective returns ‖y − aD‖² + λ‖a‖₁ and the duality gap of a, which bounds the distance to the minimum.
func Objective(y, d, a []float64, lambda float64, nonnegative bool) (objective, gap float64) {
	r := Residual(y, d, a)
	squares, product := floats.Dot(r, r), floats.Dot(r, y)
	objective = squares + lambda*floats.Norm(a, 1)
	// u = t·residual is a feasible point of the dual, 2uDᵀ ≤ λ. Its value is ‖y‖² − ‖y − u‖².
	var most float64
	for _, x := range Correlations(y, d, a) {
		if !nonnegative {
			x = math.Abs(x)
		}
		most = max(most, 2*x)
	}
	t := 0.0
	if squares > 0 {
		t = product / squares
	}
	if most > 0 {
		t = max(min(t, lambda/most), -lambda/most)
	}
	if nonnegative {
		t = max(t, 0) // a negative t would need the other bound
	}
	return objective, objective - (2*t*product - t*t*squares)
}

// Largest reports which elements of a have the k largest magnitudes, and prefers the first of equal ones. It never
// reports zeros.
func Largest(a []float64, k int) []bool {
	order := make([]int, len(a))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(math.Abs(a[j]), math.Abs(a[i])) })
	kept := make([]bool, len(a))
	for _, i := range order[:min(k, len(a))] {
		kept[i] = a[i] != 0
	}
	return kept
}
