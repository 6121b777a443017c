package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"overcomplete/model"
	"overcomplete/vectors"
)

const (
	// SparsityTolerance is how far from the share of zeros that was wanted a search may
	// end.
	SparsityTolerance = 0.005

	// MostTrainings is how many trainings a search makes, at most.
	MostTrainings = 6
)

// Tried is a training that a search for λ has made: its λ, which is positive, and the
// share of its codes that were zero.
type Tried struct{ Lambda, Sparsity float64 }

// Off returns how far a training is from a share of zeros. Codes that are all zero say
// nothing: they are as far from any share as codes without a zero.
func (t Tried) Off(wanted float64) float64 {
	if t.Sparsity == 1 {
		return wanted
	}
	return math.Abs(t.Sparsity - wanted)
}

// SearchLambda looks for the λ that gives a share of zeros, to [SparsityTolerance]. It goes
// on from what was tried before, calls try with one λ after another, so many at most, and
// ends where there is none to try that was not.
func SearchLambda(tried []Tried, most int, wanted float64, try func(lambda float64) (sparsity float64, err error)) error {
	tried = slices.Clone(tried)
	for ; most > 0; most-- {
		lambda := nextLambda(tried, wanted)
		if slices.ContainsFunc(tried, func(t Tried) bool { return t.Off(wanted) <= SparsityTolerance || t.Lambda == lambda }) {
			return nil
		}
		sparsity, err := try(lambda)
		if err != nil {
			return err
		}
		tried = append(tried, Tried{lambda, sparsity})
	}
	return nil
}

// nextLambda returns the λ to try for a share of zeros after others, in any order.
// Without any it is the default.
//
// The share of zeros grows with λ, nearly as a logistic function of log λ, so that
// the secant through the logits of the nearest two points leads to the next one.
// Once there are points on both sides, the next is between them: where the secant
// leads elsewhere, halfway on log λ.
func nextLambda(tried []Tried, wanted float64) float64 {
	// What is known of a curve through a single point: on word vectors the logit of
	// the share of zeros grows by 0.8 to 1.5 while λ grows by the factor e.
	const usual, flattest, furthest = 1, 0.3, 3
	if len(tried) == 0 {
		return Paper().Lambda
	}
	x := func(t Tried) float64 { return math.Log(t.Lambda) }
	y := func(t Tried) float64 { return logit(t.Sparsity) - logit(wanted) }
	near := slices.Clone(tried)
	slices.SortFunc(near, func(a, b Tried) int { return cmp.Compare(a.Lambda, b.Lambda) })
	tried = slices.Clone(near)
	slices.SortStableFunc(near, func(a, b Tried) int { return cmp.Compare(math.Abs(y(a)), math.Abs(y(b))) })
	slope := float64(usual)
	if len(near) > 1 {
		slope = max((y(near[1])-y(near[0]))/(x(near[1])-x(near[0])), flattest)
	}
	at := x(near[0]) + min(max(-y(near[0])/slope, -furthest), furthest)
	for i, t := range tried {
		if i > 0 && y(tried[i-1]) < 0 && y(t) >= 0 {
			low, high := x(tried[i-1]), x(t)
			if margin := (high - low) / 20; at < low+margin || at > high-margin {
				at = (low + high) / 2
			}
		}
	}
	return round(math.Exp(at))
}

// logit is finite for shares of 0 and 1, too.
func logit(share float64) float64 {
	share = min(max(share, 1e-3), 1-1e-3)
	return math.Log(share / (1 - share))
}

// round keeps three significant digits: more would only make long names.
func round(lambda float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(lambda, 'g', 3, 64), 64)
	return r
}

// sparsity returns the share of zeros of the nonzeros that a recipe with its atoms has.
func sparsity(c model.Common) float64 { return 1 - float64(c.Nonzeros)/float64(c.Atoms) }

// fitSparsity trains with one λ after another until the share of zeros is the one that is
// wanted, and returns the nearest model.
func fitSparsity(ctx context.Context, x *vectors.Dense, h model.Paper, device Device, o Options) (*model.Model, error) {
	wanted := sparsity(Settled(h, x).Base())
	if o.Checkpoint != nil && (o.Checkpoint.Every > 0 || o.Checkpoint.Resume) {
		return nil, fmt.Errorf("train: a search for the λ of %.4g %% zeros makes several trainings, and has no checkpoints", 100*wanted)
	}
	quiet := o
	quiet.Note = nil // what is said of a training concerns the one that is chosen
	checkScale(x, o)
	var nearest *model.Model
	tried, off := 0, math.Inf(1)
	err := SearchLambda(nil, MostTrainings, wanted, func(lambda float64) (float64, error) {
		once := h
		once.Nonzeros, once.Lambda = 0, lambda
		m, err := fitOnce(ctx, x, once, device, quiet)
		if err != nil {
			return 0, err
		}
		got := m.Info.Encoding.Sparsity
		o.note("λ = %v gives %.2f %% zeros", lambda, 100*got)
		if d := (Tried{lambda, got}).Off(wanted); d < off {
			nearest, off = m, d
		}
		tried++
		return got, nil
	})
	if err != nil {
		return nil, err
	}
	if off > SparsityTolerance {
		o.note("warning: no λ of %d that were tried gives %.4g %% zeros to %.2g points: this is the nearest", tried, 100*wanted, 100*SparsityTolerance)
	}
	checkResult(nearest.Info, o)
	return nearest, nil
}
