// Package encode gives sparse codes to any vectors, in training or not, with a
// dictionary that was trained before. It keeps no state: the code of a row y
// depends on y and the dictionary alone, not on the rows that come with it.
//
// With D fixed, K×L, the code of y, of which the mean has been subtracted, is
// about
//
//	argmin_a ‖y − aD‖² + λ‖a‖₁        (the paper's Eq. 2 for one word; a ≥ 0 for method B)
//
// There are two ways to it.
//
// # Stopped early
//
// FISTA with restart takes a few steps of size s = 1/(2.04·‖D‖₂²):
//
//	a = z = 0, q = 1;  n times:
//	    b = soft(z + 2s(y − zD)Dᵀ, λs)        (a ≥ 0: max(· − λs, 0))
//	    q' = (1 + √(1+4q²))/2
//	    z = b + [⟨z−b, b−a⟩ ≤ 0]·(q−1)/q'·(b−a);  a = b;  q = q'
//	keep the k largest |a|;  5 such steps without shrinkage on their support (not for a ≥ 0)
//
// The bracket is the restart: a row whose step goes against its momentum loses
// it. After some 20 steps, words that are alike still have codes that are alike.
// Later steps lower the objective by making them differ, so that more steps are
// not better: measure before taking them.
//
// # Exact
//
// The lasso's minimum, by coordinate descent, to a duality gap that is a given
// share of the objective. See [Options.Gap].
//
// This package knows no device: an [Encoder] does the work.
package encode

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"overcomplete/vectors"
)

// Options say which codes are wanted.
type Options struct {
	Lambda      float64 // λ, weight of ‖a‖₁
	Nonnegative bool    // a ≥ 0, for dictionaries of method B
	Steps       int     // n, of FISTA
	Most        int     // k, the most nonzeros that a code keeps

	// Gap, if positive, asks for the exact lasso, whatever Steps and Most are:
	// each row's duality gap is at most this share of its objective.
	Gap float64
}

// PolishSteps is how many steps without shrinkage follow the choice of a support.
const PolishSteps = 5

// An Encoder encodes with one dictionary.
type Encoder interface {
	// Encode returns the codes of X, n×L row-major, before its mean is subtracted.
	// X is not changed. A row's code is the same bits whatever rows it comes with.
	Encode(ctx context.Context, x []float32) (*Codes, error)
}

// Codes are the codes of some rows.
type Codes struct {
	vectors.Sparse           // n×K
	Loss           []float64 // ‖y − aD‖² of each row
	Gap            []float64 // with Options.Gap, each row's duality gap as a share of its objective
}

// ErrDictionary is returned for a dictionary of zeros, with which nothing can be
// encoded.
var ErrDictionary = errors.New("the dictionary is zero")

// ErrOverflow is returned, wrapped, for a row that single precision has no code
// for.
var ErrOverflow = errors.New("its vector is too large to be encoded")

// StepSize returns FISTA's s = 1/(2.04·‖D‖₂²) for a dictionary of atoms of length
// dim. The norm is found by power iteration, which ends below it: by less than the
// 2 % that s leaves before steps may overshoot.
func StepSize(d []float32, dim int) (float64, error) {
	const tolerance, most = 1e-6, 1000
	rng := rand.New(rand.NewPCG(1, 1)) // any start that is not orthogonal to the answer
	v, next := make([]float64, dim), make([]float64, dim)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	var square float64 // ‖D‖₂², the largest eigenvalue of DᵀD
	for range most {
		normalise(v)
		clear(next)
		for atom := d; len(atom) > 0; atom = atom[dim:] {
			var dot float64
			for j, x := range atom[:dim] {
				dot += float64(x) * v[j]
			}
			for j, x := range atom[:dim] {
				next[j] += float64(x) * dot
			}
		}
		before := square
		square = 0
		for j := range v {
			square += v[j] * next[j]
		}
		if square == 0 {
			return 0, ErrDictionary
		}
		if square-before <= tolerance*square {
			break
		}
		v, next = next, v
	}
	return 1 / (2.04 * square), nil
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

// Momentum returns FISTA's (q−1)/q' and q' after q.
func Momentum(q float64) (momentum, next float64) {
	next = (1 + math.Sqrt(1+4*q*q)) / 2
	return (q - 1) / next, next
}
