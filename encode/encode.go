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
// # In a program
//
// [Model] encodes vectors in memory; a [Device] does the work, such as that of package
// cpu:
//
//	m, err := model.OpenDictionary("godoc.model")
//	encoded, err := encode.Model(ctx, m, x, cpu.Device{}, encode.Defaults(m.Info))
//	err = encoded.Save("new.model", false)
//
// A [Stream] encodes more than there is memory for, and [Merge] puts what many
// processes did of it together.
package encode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"overcomplete/model"
	"overcomplete/vectors"
)

// Options say which codes are wanted: see [Defaults].
type Options struct {
	Lambda      float64 // λ, weight of ‖a‖₁
	Nonnegative bool    // a ≥ 0, for dictionaries of method B
	Steps       int     // n, of FISTA
	Most        int     // k, the most nonzeros that a code keeps

	// Gap, if positive, asks for the exact lasso, whatever Steps and Most are:
	// each row's duality gap is at most this share of its objective.
	Gap float64
}

// Defaults returns how a model's dictionary is best used: with its λ and sign, 20
// steps, and as many nonzeros as its own codes have. To have the exact lasso, set
// Gap, to 1e-4 say.
func Defaults(i model.Info) Options {
	density := 1.0
	switch e := i.Encoding; {
	case e != nil && e.Most > 0:
		density = float64(e.Most) / float64(i.Training.Atoms)
	case e != nil:
		density = 1 - e.Sparsity
	case len(i.Epochs) > 0:
		density = 1 - i.Epochs[len(i.Epochs)-1].Sparsity
	}
	return Options{Lambda: i.Training.Lambda, Nonnegative: i.Training.Method == "B", Steps: 20, Most: Most(density, i.Training.Atoms)}
}

// Validate returns an error unless codes can be made with these options.
func (o Options) Validate() error {
	switch lambda := float64(float32(o.Lambda)); {
	case !(lambda >= 0) || math.IsInf(lambda, 0):
		return fmt.Errorf("encode: λ is %v, want 0 or more, in the range of single precision", o.Lambda)
	case !(o.Gap >= 0 && o.Gap < 1):
		return fmt.Errorf("encode: the gap is %v, want a share of the objective, below 1, or 0", o.Gap)
	case o.Gap > 0 && lambda == 0:
		return fmt.Errorf("encode: λ is %v, and the exact lasso needs more than 0", o.Lambda)
	case o.Gap == 0 && (o.Steps < 1 || o.Most < 1):
		return fmt.Errorf("encode: %d steps and %d nonzeros, want at least 1 of each", o.Steps, o.Most)
	}
	return nil
}

// Most returns the nonzeros of a code of so many atoms if that share of it, or a
// little more, is not zero: at least one.
func Most(density float64, atoms int) int {
	return max(1, int(math.Round(density*float64(atoms))))
}

// PolishSteps is how many steps without shrinkage follow the choice of a support.
const PolishSteps = 5

// A Device is where encodings run: [overcomplete/cpu.Device] or
// [overcomplete/kernels.Device].
type Device interface {
	// Encoder prepares encoding with a dictionary. It is an error if the dictionary or
	// the options are not valid, if nothing can be encoded with the dictionary
	// (ErrDictionary), if the device does not know the options, or has too little
	// memory.
	Encoder(d *model.Dictionary, o Options) (Encoder, error)
}

// An Encoder encodes with one dictionary. It may be used by one goroutine at a time.
type Encoder interface {
	// Device says what encodes, for [model.Encoding].
	Device() string

	// Options returns those that it was made with.
	Options() Options

	// Close gives up what the encoder has on its device.
	Close() error

	// Encode returns the codes of X, n×L row-major, from which it subtracts the
	// dictionary's mean.
	// X is not changed. A row's code is the same bits whatever rows it comes with. If
	// ctx is cancelled, the error is ctx's. A row that single precision has no code for
	// has a loss that is not a finite number.
	Encode(ctx context.Context, x []float32) (*Codes, error)
}

// Codes are the codes of some rows.
type Codes struct {
	vectors.CSR           // n×K, A
	Loss        []float64 // ‖y − aD‖² of each row
	Gap         []float64 // with Options.Gap, each row's duality gap as a share of its objective
}

// ErrDictionary is returned, wrapped, for a dictionary of zeros, or one so large or
// small that single precision has no step for it.
var ErrDictionary = errors.New("nothing can be encoded")

// ErrOverflow is returned, wrapped, for a row that single precision has no code
// for.
var ErrOverflow = errors.New("its vector is too large to be encoded, or not of finite numbers")

// StepSize returns FISTA's s = 1/(2.04·‖D‖₂²) for a valid dictionary, or ErrDictionary,
// wrapped, if single precision has no such step. The norm is found by power iteration, which ends below it: by less than the
// 2 % that s leaves before steps may overshoot.
func StepSize(d *model.Dictionary) (float64, error) {
	const tolerance, most = 1e-6, 1000
	rng := rand.New(rand.NewPCG(1, 1)) // any start that is not orthogonal to the answer
	v, next := make([]float64, d.Dim), make([]float64, d.Dim)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	var square float64 // ‖D‖₂², the largest eigenvalue of DᵀD
	for range most {
		normalise(v)
		clear(next)
		for k := range d.Len() {
			var dot float64
			for j, x := range d.Atom(k) {
				dot += float64(x) * v[j]
			}
			for j, x := range d.Atom(k) {
				next[j] += float64(x) * dot
			}
		}
		before := square
		square = 0
		for j := range v {
			square += v[j] * next[j]
		}
		if square == 0 {
			return 0, fmt.Errorf("%w: the dictionary is zero", ErrDictionary)
		}
		if square-before <= tolerance*square {
			break
		}
		v, next = next, v
	}
	step := 1 / (2.04 * square)
	const leastNormal = 0x1p-126
	if !(2*step >= leastNormal && 2*step <= math.MaxFloat32) {
		return 0, fmt.Errorf("%w: the dictionary has norm %.1e, of whose square single precision has no inverse", ErrDictionary, math.Sqrt(square))
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

// Momentum returns FISTA's (q−1)/q' and q' after q.
func Momentum(q float64) (momentum, next float64) {
	next = (1 + math.Sqrt(1+4*q*q)) / 2
	return (q - 1) / next, next
}
