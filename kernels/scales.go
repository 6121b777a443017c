//go:build gpu

package kernels

import (
	"math"
	"slices"

	"overcomplete/internal/backend"
	"overcomplete/internal/float32s"
)

// scales are the factors by which float16 matrices are scaled: powers of two that keep elements within ±65504.
// Elements of at least 2⁻²⁴ times their bound keep all 11 bits. The scale of float32 matrices is 1.
type scales struct{ codes, residuals, dictionary, steps float64 }

// newScales returns the scales of a training. They follow from bounds on the elements of each matrix. After t
// epochs with the learning rate η, for V rows and dictionary steps of n rows:
//
//	codes:            |a| ≤ η√t, as |S| ≤ Σ|g| ≤ √(t·Σg²) = √(t·Q) for the gradients g of a code;
//	                  |a| < 1 before the first epoch
//	residuals:        |r| ≤ 2‖x‖ for damped codes of a vector x, as ‖aD‖ ≤ ‖x‖
//	dictionary steps: |P| ≤ √n before the factor η, as |Σg| ≤ √(n·Σg²) ≤ √(n·H) for the gradients g of the n words
//	dictionary:       |D| ≤ |D₀| + η√(V·t·(1 + ln H/H₁)), from the initial D₀ and the first sum of squares H₁
//
// Two kinds of residuals have no such bound, but stay far below the limit: residuals after a dictionary update,
// and residuals of the random initial codes if ‖x‖ is above 0.001. The scales suffice for a million epochs.
// Larger elements are clamped.
func newScales(p backend.Problem, precision Precision) scales {
	if precision != fp16 {
		return scales{codes: 1}
	}
	h, atom := p.Hyperparameters, 0.0
	for _, v := range p.InitialDictionary() {
		atom = math.Max(atom, math.Abs(float64(v)))
	}
	return scales{
		codes:      scale(1<<15, math.Max(1, 1024*h.Rate)),
		residuals:  scale(1<<10, 2*largestNorm(p.X, p.Dim)),
		dictionary: scale(1<<10, atom+16*h.Rate*math.Sqrt(float64(p.Len()))),
		steps:      scale(1<<12, math.Sqrt(float64(p.Batch()))),
	}
}

func largestNorm(x []float32, dim int) float64 {
	var largest float64
	for row := range slices.Chunk(x, dim) {
		largest = math.Max(largest, float32s.Squares(row))
	}
	return math.Sqrt(largest)
}

// scale returns the largest power of two that scales x to at most limit. It returns 1 if this power is outside
// 2⁻¹²⁰ to 2¹²⁰, and 0.5 if x is 0.
func scale(limit, x float64) float64 {
	_, exponent := math.Frexp(limit / x)
	if s := math.Ldexp(1, exponent-1); s > 0x1p-120 && s < 0x1p120 {
		return s
	}
	return 1
}
