package backend

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"overcomplete/encode"
	"overcomplete/model"
)

// PolishSteps is the number of steps without shrinkage that refine a code on its support.
const PolishSteps = 5

// FISTA yields the λ of each step ([encode.Shrinkage]) and the momentum after it: (q−1)/q', where q is 1 at
// first and q' = (1 + √(1+4q²))/2 the next. Restarted rows use momentum 0.
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

// StepSize returns the size of FISTA's steps, s = 1/(2.04·‖D‖₂²), for a valid
// dictionary. The error wraps [encode.ErrDictionary].
//
// FISTA converges with steps of up to 1/(2‖D‖₂²). Power iteration approaches the spectral norm from below;
// the factor 2.04 leaves a margin of 2 %, which is more than is missing.
func StepSize(d *model.Dictionary) (float64, error) { return new(Spectrum).StepSize(d) }

// The power iteration of a [Spectrum] ends when ‖D‖₂² grows by no more than SpectrumTolerance, relative, or
// after SpectrumSteps.
const (
	SpectrumTolerance = 1e-6
	SpectrumSteps     = 1000
)

// A Spectrum computes the step sizes of dictionaries of which each differs little from the last. The power
// iteration starts from the last result; the zero value starts from a fixed vector.
type Spectrum struct {
	// Direction approximates the right singular vector of the largest singular value: of length L and
	// norm 1, nil at first.
	Direction []float32
}

// StepSize returns what the function of this name returns.
func (s *Spectrum) StepSize(d *model.Dictionary) (float64, error) {
	v, next := make([]float64, d.Dim), make([]float64, d.Dim)
	if s.Direction == nil {
		rng := rand.New(rand.NewPCG(1, 1)) // any start that is not orthogonal to the answer
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
		multiplyGram(next, v, d)
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

// StepOf returns the step size for a given ‖D‖₂². The error wraps [encode.ErrDictionary].
func StepOf(square float64) (float64, error) {
	if square == 0 {
		return 0, fmt.Errorf("%w: the dictionary is zero", encode.ErrDictionary)
	}
	step := 1 / (2.04 * square)
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

// multiplyGram computes next = DᵀDv, four atoms at a time, whose sums do not wait for each other.
func multiplyGram(next, v []float64, d *model.Dictionary) {
	clear(next)
	k := 0
	for ; k+4 <= d.Len(); k += 4 {
		a, b, c, e := d.Atom(k)[:len(v)], d.Atom(k + 1)[:len(v)], d.Atom(k + 2)[:len(v)], d.Atom(k + 3)[:len(v)]
		var ofA, ofB, ofC, ofE float64
		for j, x := range v {
			ofA += float64(a[j]) * x
			ofB += float64(b[j]) * x
			ofC += float64(c[j]) * x
			ofE += float64(e[j]) * x
		}
		for j := range next[:len(v)] {
			next[j] += float64(a[j])*ofA + float64(b[j])*ofB + float64(c[j])*ofC + float64(e[j])*ofE
		}
	}
	for ; k < d.Len(); k++ {
		var of float64
		for j, x := range d.Atom(k) {
			of += float64(x) * v[j]
		}
		for j, x := range d.Atom(k) {
			next[j] += float64(x) * of
		}
	}
}
