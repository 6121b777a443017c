package backend

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"overcomplete/encode"
	"overcomplete/internal/parallel"
	"overcomplete/model"
)

// PolishSteps is the number of FISTA steps without shrinkage that refine a code on its support.
const PolishSteps = 5

// FISTA yields for each step its λ ([encode.Shrinkage]) and the momentum (q−1)/q′ to apply after the step. In the first
// step q is 1, and q′ = (1 + √(1+4q²))/2 is the q of the next step. Rows that restart use momentum 0 instead.
func FISTA(lambda float64, steps int) iter.Seq2[float64, float64] {
	return func(yield func(lambda, momentum float64) bool) {
		q := 1.0
		for n := range steps {
			next := (1 + math.Sqrt(1+4*q*q)) / 2
			if !yield(encode.Shrinkage(lambda, n, steps), (q-1)/next) {
				return
			}
			q = next
		}
	}
}

// Enters reports whether atoms enter codes in step t of the search of package encode. They enter in every third step,
// the first included, but not in the search's last step.
func Enters(t, steps int) bool { return t == 0 || t%3 == 0 && t+1 < steps }

// Capacity returns a limit: atoms enter only codes with fewer nonzeros. A [Learner] has no such limit.
func Capacity(o encode.Options, atoms int) int {
	if o.Gap > 0 {
		return atoms + 1
	}
	return 5 * min(o.Nonzeros, atoms) / 2
}

// StepSize returns FISTA's step size for a valid dictionary, s = 1/(2.04·‖D‖₂²). The error wraps
// [encode.ErrDictionary].
//
// FISTA converges with steps of up to 1/(2‖D‖₂²). Power iteration underestimates the spectral norm ‖D‖₂. The factor
// [StepMargin] leaves a margin of 2 %, more than this error.
func StepSize(d *model.Dictionary) (float64, error) { return new(Spectrum).StepSize(d) }

// StepMargin is the inverse of the step size for a dictionary whose spectral norm is 1.
const StepMargin = 2.04

// The power iteration of a [Spectrum] ends when the relative change of ‖D‖₂² is at most SpectrumTolerance, or
// after SpectrumSteps iterations.
const (
	SpectrumTolerance = 1e-6
	SpectrumSteps     = 1000
)

// A Spectrum computes the step sizes of a dictionary that changes little between calls. The power iteration
// starts from the previous result; the zero value starts from a fixed vector.
type Spectrum struct {
	// Direction approximates the right singular vector of the largest singular value. It has length L and
	// norm 1, and is nil before the first call.
	Direction []float32
}

// StepSize returns the step size for d; see the function [StepSize].
func (s *Spectrum) StepSize(d *model.Dictionary) (float64, error) {
	v, next := make([]float64, d.Dim), make([]float64, d.Dim)
	sums := make([]float64, (d.Len()+gramAtoms-1)/gramAtoms*d.Dim)
	if s.Direction == nil {
		rng := rand.New(rand.NewPCG(1, 1)) // a start that isn't orthogonal to the singular vector
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		s.Direction = make([]float32, d.Dim)
	} else {
		for i, x := range s.Direction {
			v[i] = float64(x)
		}
	}
	var square float64 // ‖D‖₂², the largest eigenvalue of DᵀD
	for range SpectrumSteps {
		normalise(v)
		multiplyGram(next, sums, v, d)
		before := square
		square = 0
		for j := range v {
			square += v[j] * next[j]
		}
		if square == 0 {
			break
		}
		v, next = next, v
		if square-before <= SpectrumTolerance*square {
			break
		}
	}
	step, err := StepOf(square)
	if err != nil {
		return 0, err
	}
	normalise(v)
	for i, x := range v {
		s.Direction[i] = float32(x)
	}
	return step, nil
}

// StepOf returns the step size for a given ‖D‖₂². The error wraps [encode.ErrDictionary] and reports a zero
// dictionary, or a step size outside the normal range of float32.
func StepOf(square float64) (float64, error) {
	if square == 0 {
		return 0, fmt.Errorf("%w: the dictionary is zero", encode.ErrDictionary)
	}
	step := 1 / (StepMargin * square)
	const leastNormal = 0x1p-126
	if !(2*step >= leastNormal && 2*step <= math.MaxFloat32) {
		return 0, fmt.Errorf("%w: the inverse of the squared norm of the dictionary is out of the range of float32 (norm %.1e)",
			encode.ErrDictionary, math.Sqrt(square))
	}
	return step, nil
}

func normalise(v []float64) {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	for i := range v {
		v[i] /= math.Sqrt(sum)
	}
}

// gramAtoms is the number of atoms whose sums multiplyGram computes together. It doesn't depend on the number of
// processors, so that the sums don't depend on it.
const gramAtoms = 256

// multiplyGram computes next = DᵀDv. The argument sums has L elements per block of gramAtoms atoms. The sums of four
// atoms are independent, which hides the latency of additions.
func multiplyGram(next, sums, v []float64, d *model.Dictionary) {
	parallel.Ranges(len(sums)/d.Dim, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sum := sums[i*d.Dim:][:len(v)]
			clear(sum)
			k, end := i*gramAtoms, min((i+1)*gramAtoms, d.Len())
			for ; k+4 <= end; k += 4 {
				a, b, c, e := d.Atom(k)[:len(v)], d.Atom(k + 1)[:len(v)], d.Atom(k + 2)[:len(v)], d.Atom(k + 3)[:len(v)]
				var ofA, ofB, ofC, ofE float64
				for j, x := range v {
					ofA += float64(a[j]) * x
					ofB += float64(b[j]) * x
					ofC += float64(c[j]) * x
					ofE += float64(e[j]) * x
				}
				for j := range sum {
					sum[j] += float64(a[j])*ofA + float64(b[j])*ofB + float64(c[j])*ofC + float64(e[j])*ofE
				}
			}
			for ; k < end; k++ {
				var of float64
				for j, x := range d.Atom(k) {
					of += float64(x) * v[j]
				}
				for j, x := range d.Atom(k) {
					sum[j] += float64(x) * of
				}
			}
		}
	})
	clear(next)
	for sum := range slices.Chunk(sums, d.Dim) {
		for j, x := range sum {
			next[j] += x
		}
	}
}
