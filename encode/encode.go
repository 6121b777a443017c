// Package encode computes the sparse codes of dense vectors with a trained dictionary.
// The vectors may differ from the training rows. The code of a row depends only on
// that row and the dictionary, not on the other rows of the call.
//
// Let D be the dictionary, K×L, and y a vector of length L from which the model's
// mean has been subtracted. The code of y, of length K, is close to
//
//	argmin_a ‖y − aD‖² + λ‖a‖₁        (Faruqui et al. 2015, Eq. 2, for one row; a ≥ 0 for method B)
//
// Two methods compute it.
//
// # Early stopping
//
// The default method runs a few iterations of FISTA (Beck and Teboulle 2009) with step size s = 1/(2.04·‖D‖₂²), keeps
// the largest values and refines them:
//
//	a = z = 0, q = 1;  n times:
//	    b = soft(z + 2s(y − zD)Dᵀ, sλ')       (a ≥ 0: max(· − sλ', 0))
//	    q' = (1 + √(1+4q²))/2
//	    z = b + (q−1)/q'·(b−a);  a = b;  q = q'
//	keep the k largest |a|;  5 such iterations with λ = 0 on their support
//
// λ' falls from 10λ to λ; see [Shrinkage]. After about 16 iterations, similar rows still have similar codes.
// More iterations lower the objective, but make these codes differ.
//
// The first iterations are a search: they only determine the support and the starting point of the last five
// iterations. They therefore run on 8-bit integers, as the next section defines. With five or more nonzeros, the
// objective is within half a percent of the objective after an exact search, and on most data it is lower. With fewer
// nonzeros it is up to 2 % higher. The last five iterations run in float32.
// [overcomplete/graph.Encode] states an iteration as an expression graph, in floats and with restarts (O'Donoghue and
// Candès 2015).
//
// # The search
//
// The search multiplies integers, whose sums are exact in 32 bits, and rounds each operation on floats to float32.
// Every processor therefore computes the same bits. In this section, round(x) is the nearest integer, and of two
// equally near ones the even one; ⌊x⌋₂ is the largest power of two that is at most x; unit(x) is ⌊max(x, 2⁻¹⁰⁰)⌋₂/32,
// so that x/unit(x) is at least 32 and below 64. Products and quotients with powers of two are exact. No operations are
// fused.
//
// Each atom has a scale, which the dictionary and s determine:
//
//	t_k = max_j |D_kj|,  t = max_k t_k,  w = t/63                     (w in float64)
//	D8_kj = round(D_kj·(63/t_k)),  v_k = t_k/t                        (both are 0 if t_k < 2⁻¹²⁰)
//	c_k = 2·s·w²·v_k                                                  (in float64, then rounded)
//
// An atom is about w·v_k·D8_k. A row has the scale e = ⌊max_j |y_j|⌋₂. Its codes are in units of e/w:
//
//	ŷ = y/e,  r = ŷ,  z = b = 0;  for t = 0, 1, …, n−1:
//	    σ = unit(max_j |r_j|),  R8 = round(r/σ)
//	    S_k = Σ_j R8_j·D8_kj
//	    u_k = z_k + σ·(S_k·c_k)                                       (S_k rounded to float32)
//	    x_k = soft(u_k, s·λ'·w/e), or 0 if b_k = 0 and atoms don't enter in iteration t
//	    z_k = x_k + m·(x_k − b_k),  b = x                             (m = (q−1)/q')
//	    τ = unit(h),  Z8_k = round(min(max(z_k·v_k/τ, −127), 127))
//	    r_j = ŷ_j − τ·Σ_k Z8_k·D8_kj                                  (the sum rounded to float32)
//	    h = max_k |z_k·v_k| if that is at least 2⁻¹⁰⁰
//	a = b·e/w
//
// The threshold and a are computed in float64 and then rounded. Atoms enter in the iterations 0, 3, 6, …, but only if b
// has fewer than ⌊5k/2⌋ nonzeros. No atoms enter in the last iteration, unless n = 1. While a dictionary is learned,
// and for exact codes, the nonzeros of b have no such limit. In the first iteration, h estimates half of the largest
// possible value:
//
//	h = max_k(c_k·v_k·‖D8_k‖)/2·σ·√(Σ_j R8_j²)                        (norms and root rounded to float32)
//
// The code of a row of zeros is zero. |S_k| ≤ 4032·L and |Σ Z8·D8| ≤ 8001·K are below 2³¹ for L ≤ 500,000 and
// K ≤ 260,000. [SearchVersion] counts changes of this definition.
//
// # Exact codes
//
// With [Options.Gap], coordinate descent converges to the minimum, up to the given
// duality gap relative to the objective.
//
// # Example
//
// [Model] encodes vectors in memory on a [Device], here [overcomplete/cpu.Device]:
//
//	m, err := model.OpenDictionary("godoc.model")
//	encoded, err := encode.Model(ctx, m, x, cpu.Device{}, encode.Defaults(m.Info))
//	err = encoded.Save("new.model", false)
//
// A [Stream] encodes more vectors than fit in memory. [Merge] joins the shards of an
// input that several processes encoded.
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
	Steps       int     // n, iterations of FISTA
	Nonzeros    int     // k, maximum nonzeros per row

	// Gap, if positive, selects exact codes, and bounds the duality gap of each row
	// relative to its objective. It must be below 1. Exact codes ignore Steps and Nonzeros.
	Gap float64
}

// Defaults returns the options for the dictionary of a model. The sign and λ are taken from the model's codes. Steps is
// their number of steps, or [DefaultSteps] for codes without steps. Nonzeros is the maximum with which the codes were
// encoded or, without a maximum, their mean number of nonzeros per row. For a model without codes it is the recipe's
// Nonzeros. For exact codes set Gap, for instance to 1e-4.
func Defaults(i model.Info) Options {
	t, e := &i.Training, i.Encoding
	if t.Recipe == nil { // not a model: [Options.Validate] returns the error
		return Options{Steps: DefaultSteps}
	}
	recipe := t.Recipe.Base()
	atoms := recipe.Atoms
	o := Options{Lambda: t.Lambda, Nonnegative: recipe.Method == model.Nonnegative, Steps: DefaultSteps}
	switch {
	case e != nil && e.Nonzeros > 0:
		o.Lambda, o.Nonzeros, o.Steps = e.Lambda, e.Nonzeros, cmp.Or(e.Steps, DefaultSteps)
	case e != nil:
		o.Lambda, o.Nonzeros = e.Lambda, model.Nonzeros(e.Sparsity, atoms)
	default:
		best, _ := t.Recipe.(model.Best)
		o.Nonzeros = cmp.Or(best.Nonzeros, atoms)
	}
	return o
}

// Validate returns an error that names the first invalid option and its valid range, or nil.
func (o Options) Validate() error {
	switch lambda := float64(float32(o.Lambda)); {
	case !(lambda >= 0) || math.IsInf(lambda, 0):
		return fmt.Errorf("encode: λ is out of range (got %v, want 0 or more, in the range of float32)", o.Lambda)
	case !(o.Gap >= 0 && o.Gap < 1):
		return fmt.Errorf("encode: the duality gap is out of range (got %v, want 0 or more, below 1)", o.Gap)
	case o.Gap > 0 && lambda == 0:
		return fmt.Errorf("encode: exact codes need a positive λ (got %v)", o.Lambda)
	case o.Gap == 0 && (o.Steps < 1 || o.Nonzeros < 1):
		return fmt.Errorf("encode: iterations and nonzeros must be positive (got %d and %d)", o.Steps, o.Nonzeros)
	}
	return nil
}

// SearchVersion is the version of the search, which [model.Encoding] records.
const SearchVersion = 3

// DefaultSteps is the default number of FISTA iterations.
const DefaultSteps = 16

// A Device runs encoders: [overcomplete/cpu.Device] or [overcomplete/kernels.Device].
type Device interface {
	// Encoder prepares encoding with the dictionary d. It returns an error if d or o is
	// invalid, if d can't encode (ErrDictionary), or if the device doesn't support o or
	// lacks memory.
	Encoder(d *model.Dictionary, o Options) (Encoder, error)
}

// An Encoder computes codes with one dictionary and one set of [Options]. Only one
// goroutine at a time may use it.
type Encoder interface {
	// Device returns the name of the device, for [model.Encoding].
	Device() string

	// Options returns the options of the encoder.
	Options() Options

	// Close waits for the rows of Start and releases the encoder's memory on its device.
	Close() error

	// Start starts to encode the rows of x, n×L row-major, from which it subtracts the dictionary's mean without
	// changing x. It returns a function that waits for the codes, so that the caller can process codes while the device
	// computes the next ones. The argument codes receives the codes, and its memory is reused. Until wait or Close
	// returns, the caller must neither change x nor use codes. The caller must wait for calls in the order of their
	// starts. Only the last calls need no wait, because Close waits for them.
	//
	// The bits of a row's code don't depend on the other rows. If ctx is cancelled, wait
	// returns ctx.Err(). If a row's code overflows float32, wait returns nil and the row's
	// Loss is not finite.
	Start(ctx context.Context, x []float32, codes *Codes) (wait func() error)
}

// Rows encodes the rows of x with e, and waits for the codes; see [Encoder].
func Rows(ctx context.Context, e Encoder, x []float32) (*Codes, error) {
	codes := new(Codes)
	if err := e.Start(ctx, x, codes)(); err != nil {
		return nil, err
	}
	return codes, nil
}

// Codes are the codes of n rows, with their metrics.
type Codes struct {
	vectors.CSR           // A, the codes, n×K
	Loss        []float64 // ‖y − aD‖² of each row
	Squares     []float64 // ‖y‖² of each row
	Gap         []float64 // duality gap of each row relative to its objective, for exact codes; or nil
}

// ErrDictionary is wrapped by errors about a dictionary that can't encode: all its values
// are zero, or so large or small that FISTA's step size is not a normal float32.
var ErrDictionary = errors.New("nothing can be encoded")

// ErrOverflow is wrapped by errors about a row that has values that are not finite, or
// whose code overflows float32.
var ErrOverflow = errors.New("the vector is too large to encode, or has values that are not finite")

// Shrinkage returns λ' of iteration t, counted from 0. It starts at 10λ, falls by a constant factor per iteration, and
// is λ in the last fifth of the iterations (continuation: Hale, Yin and Zhang, Fixed-Point Continuation for
// ℓ1-Minimization, 2008). A code thus starts with its few strongest atoms, and other atoms describe only the residual.
// With a constant λ, an early-stopped code spreads over hundreds of similar atoms, and its k largest values alone
// reconstruct the row poorly.
func Shrinkage(lambda float64, t, steps int) float64 {
	const first, falls = 10, 0.8
	if t == steps-1 {
		return lambda
	}
	return lambda * max(1, math.Pow(first, 1-float64(t)/(falls*float64(steps))))
}
