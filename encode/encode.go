// Package encode gives sparse codes to dense vectors with a dictionary that was
// trained before. The vectors need not be those of the training. The code of a row
// depends on that row and the dictionary alone, not on the rows encoded with it.
//
// Let D be the dictionary, K×L, and y a vector of length L from which the model's
// mean has been subtracted. The code of y, of length K, is close to
//
//	argmin_a ‖y − aD‖² + λ‖a‖₁        (the paper's Eq. 2 for one word; a ≥ 0 for method B)
//
// There are two ways to compute it.
//
// # Stopped early
//
// A few steps of FISTA (Beck and Teboulle 2009) with restart (O'Donoghue and Candès
// 2015), of size s = 1/(2.04·‖D‖₂²):
//
//	a = z = 0, q = 1;  n times:
//	    b = soft(z + 2s(y − zD)Dᵀ, λ's)       (a ≥ 0: max(· − λ's, 0))
//	    q' = (1 + √(1+4q²))/2
//	    z = b + [⟨z−b, b−a⟩ ≤ 0]·(q−1)/q'·(b−a);  a = b;  q = q'
//	keep the k largest |a|;  5 such steps with λ = 0 on their support
//
// Here λ' is 10λ at first and falls to λ: see [Shrinkage]. The bracket is 1 where its
// condition holds and 0 where not. It is 0 where the step goes against the row's momentum,
// which begins again from nothing: that is the restart. After some 16 steps, similar words
// still have similar codes. Further steps lower the objective by making them differ, so more
// steps are not better.
// [overcomplete/graph.Encode] states such a step as an expression graph, which devices run.
//
// # Exact
//
// The minimum itself, by coordinate descent, to a duality gap that is a given share
// of the objective. See [Options.Gap].
//
// # In a program
//
// [Model] encodes vectors that are in memory. A [Device] computes the codes, such as
// that of package cpu:
//
//	m, err := model.OpenDictionary("godoc.model")
//	encoded, err := encode.Model(ctx, m, x, cpu.Device{}, encode.Defaults(m.Info))
//	err = encoded.Save("new.model", false)
//
// A [Stream] encodes more vectors than fit in memory. [Merge] puts together what
// several processes have encoded of one input.
package encode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"overcomplete/model"
	"overcomplete/vectors"
)

// Options are the options of an encoding. Start from [Defaults].
type Options struct {
	Lambda      float64 // λ, weight of ‖a‖₁
	Nonnegative bool    // a ≥ 0, for dictionaries of method B
	Steps       int     // n, of FISTA
	Nonzeros    int     // k, the most nonzeros per row

	// Gap, if positive, asks for exact codes: the duality gap of each row shall be at
	// most this share of its objective. Steps and Nonzeros are not used then.
	Gap float64
}

// Defaults returns the options for the dictionary of a model: the sign and the λ that
// its codes were made with, [DefaultSteps], and as many nonzeros as these codes have on average,
// or as were asked for where there are none yet. For exact codes set Gap, for instance to 1e-4.
func Defaults(i model.Info) Options {
	t, e := &i.Training, i.Encoding
	if t.Recipe == nil { // of no model: [Options.Validate] says what is missing
		return Options{Steps: DefaultSteps}
	}
	recipe := t.Recipe.Base()
	atoms := recipe.Atoms
	o := Options{Lambda: t.Lambda, Nonnegative: recipe.Method == model.Nonnegative, Steps: DefaultSteps}
	switch {
	case e != nil && e.Nonzeros > 0:
		o.Lambda, o.Nonzeros = e.Lambda, e.Nonzeros
	case e != nil:
		o.Lambda, o.Nonzeros = e.Lambda, model.Nonzeros(e.Sparsity, atoms)
	default:
		best, _ := t.Recipe.(model.Best)
		o.Nonzeros = cmp.Or(best.Nonzeros, atoms)
	}
	return o
}

// Validate returns nil if codes can be made with these options, or else an error that
// says which of them cannot be and what is wanted.
func (o Options) Validate() error {
	switch lambda := float64(float32(o.Lambda)); {
	case !(lambda >= 0) || math.IsInf(lambda, 0):
		return fmt.Errorf("encode: λ is %v, want 0 or more, in the range of single precision", o.Lambda)
	case !(o.Gap >= 0 && o.Gap < 1):
		return fmt.Errorf("encode: the gap is %v, want a share of the objective, below 1, or 0", o.Gap)
	case o.Gap > 0 && lambda == 0:
		return fmt.Errorf("encode: λ is %v, and the exact lasso needs more than 0", o.Lambda)
	case o.Gap == 0 && (o.Steps < 1 || o.Nonzeros < 1):
		return fmt.Errorf("encode: %d steps and %d nonzeros, want at least 1 of each", o.Steps, o.Nonzeros)
	}
	return nil
}

// DefaultSteps is the default number of steps of FISTA.
const DefaultSteps = 16

// A Device is where encodings run: [overcomplete/cpu.Device] or
// [overcomplete/kernels.Device].
type Device interface {
	// Encoder prepares encoding with the dictionary d. It is an error if d or o are not
	// valid, if nothing can be encoded with d (ErrDictionary), or if the device cannot
	// do what o asks for or has too little memory.
	Encoder(d *model.Dictionary, o Options) (Encoder, error)
}

// An Encoder makes codes with one dictionary and one set of [Options]. It may be used
// by one goroutine at a time.
type Encoder interface {
	// Device returns the name of the device, for [model.Encoding].
	Device() string

	// Options returns the options that the encoder was made with.
	Options() Options

	// Close releases what the encoder holds on its device.
	Close() error

	// Encode returns the codes of x, n×L row-major, from which it subtracts the
	// dictionary's mean. It does not change x. The code of a row has the same bits
	// whatever rows are encoded with it. If ctx is cancelled, Encode returns its error.
	// A row whose code overflows single precision is no error: its Loss is not finite.
	// A device that computes with less may refuse rows whose codes leave the range of
	// its precision alone, by a
	// [*vectors.InputError] with the Row.
	Encode(ctx context.Context, x []float32) (*Codes, error)

	// Start is Encode in two halves: it may return before there are codes, and what it returns
	// waits for them. So a device computes while the codes before are looked at. Until then x
	// must stay as it is. What was started first is waited for first, or never.
	Start(ctx context.Context, x []float32) (wait func() (*Codes, error))
}

// Several returns an encoder that deals blocks out to encoders of one kind in turn, such as one
// for each GPU of a machine, so that they encode at the same time.
func Several(encoders []Encoder) Encoder { return &several{encoders: encoders} }

type several struct {
	encoders []Encoder
	next     int // of Start
}

func (s *several) Device() string   { return s.encoders[0].Device() }
func (s *several) Options() Options { return s.encoders[0].Options() }

func (s *several) Encode(ctx context.Context, x []float32) (*Codes, error) { return s.Start(ctx, x)() }

func (s *several) Start(ctx context.Context, x []float32) (wait func() (*Codes, error)) {
	e := s.encoders[s.next]
	s.next = (s.next + 1) % len(s.encoders)
	return e.Start(ctx, x)
}

func (s *several) Close() (err error) {
	for _, e := range s.encoders {
		err = cmp.Or(err, e.Close())
	}
	return err
}

// Codes are the codes of n rows, with their metrics.
type Codes struct {
	vectors.CSR           // n×K, A
	Loss        []float64 // ‖y − aD‖² of each row
	Gap         []float64 // with Options.Gap, each row's duality gap as a share of its objective
}

// ErrDictionary is the error, wrapped, for a dictionary that nothing can be encoded
// with: it is all zeros, or so large or small that the size of FISTA's steps is not a
// normal number of single precision.
var ErrDictionary = errors.New("nothing can be encoded")

// ErrOverflow is the error, wrapped, for a row whose values are not finite or so large
// that its code overflows single precision.
var ErrOverflow = errors.New("its vector is too large to be encoded, or not of finite numbers")

// Shrinkage returns the λ of step n, from 0: ten times λ at first, less by the same factor in each
// step, and λ itself in the last fifth of the steps (continuation: Hale, Yin and Zhang, Fixed-Point
// Continuation for ℓ1-Minimization, 2008). So a code begins with its few strongest atoms, and others
// describe only the rest. Otherwise hundreds of atoms share each direction, and the largest of them
// describe little when the others are dropped.
func Shrinkage(lambda float64, n, steps int) float64 {
	const first, falls = 10, 0.8
	if n == steps-1 {
		return lambda
	}
	return lambda * max(1, math.Pow(first, 1-float64(n)/(falls*float64(steps))))
}
