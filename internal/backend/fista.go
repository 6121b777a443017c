package backend

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/model"
)

// Spec states steps towards codes as o says, and of learning a dictionary like d with them, as
// graphs: [graph.Encode], and with a norm [graph.Learn].
func Spec(d *model.Dictionary, o encode.Options) graph.Spec {
	return graph.Spec{Atoms: d.Len(), Dim: d.Dim, Lambda: o.Lambda, Nonnegative: o.Nonnegative}
}

// PolishSteps is how many steps without shrinkage refine a code that was stopped early
// and has been cut to its largest values.
const PolishSteps = 5

// FISTA returns, for each of so many steps, the λ that it has ([encode.Shrinkage]) and the
// factor of the momentum after it: (q−1)/q', where q is 1 at first, and q' = (1 + √(1+4q²))/2 the
// next. Rows that begin again have none.
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
// FISTA converges with steps of up to 1/(2‖D‖₂²). The spectral norm is computed by
// power iteration, which approaches it from below; the factor 2.04 leaves 2 % for what
// is missing, which is less.
func StepSize(d *model.Dictionary) (float64, error) { return new(Spectrum).StepSize(d) }

// The power iteration of a [Spectrum] ends when ‖D‖₂² grows by no more than this share of it, or
// after so many steps.
const (
	SpectrumTolerance = 1e-6
	SpectrumSteps     = 1000
)

// A Spectrum computes the step sizes of dictionaries of which each differs little from
// the last: it begins where it ended. Its zero value begins anew.
type Spectrum struct {
	// Direction is near the right singular vector of the largest singular value, of length L
	// and norm 1; nil at first.
	Direction []float32
}

// StepSize is the function of this name.
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
			break // what is left of v is no start
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

// StepOf returns the size of FISTA's steps for a dictionary of which ‖D‖₂² is known. The
// error wraps [encode.ErrDictionary].
func StepOf(square float64) (float64, error) {
	if square == 0 {
		return 0, fmt.Errorf("%w: the dictionary is zero", encode.ErrDictionary)
	}
	step := 1 / (2.04 * square)
	const leastNormal = 0x1p-126
	if !(2*step >= leastNormal && 2*step <= math.MaxFloat32) {
		return 0, fmt.Errorf("%w: the dictionary has norm %.1e, of whose square single precision has no inverse", encode.ErrDictionary, math.Sqrt(square))
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

// multiplyGram makes next DᵀDv, with four atoms at a time, whose sums do not wait for
// each other.
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
