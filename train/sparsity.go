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

// NextLambda returns the λ to try for a share of zeros after others, in any order.
// Without any it returns first.
//
// The share of zeros grows with λ, nearly as a logistic function of log λ, so that
// the secant through the logits of the nearest two points leads to the next one.
// Once there are points on both sides, the next is between them: where the secant
// leads elsewhere, halfway on log λ.
func NextLambda(tried []Tried, wanted, first float64) float64 {
	// What is known of a curve through a single point: on word vectors the logit of
	// the share of zeros grows by 0.8 to 1.5 while λ grows by the factor e.
	const usual, flattest, furthest = 1, 0.3, 3
	if len(tried) == 0 {
		return first
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

// fitSparsity trains with one λ after another until the share of zeros is the one that is
// wanted, and returns the nearest model.
func fitSparsity(ctx context.Context, x *vectors.Dense, h model.Paper, device Device, o Options) (*model.Model, error) {
	if o.Checkpoint != nil && (o.Checkpoint.Every > 0 || o.Checkpoint.Resume) {
		return nil, fmt.Errorf("train: a search for the λ of %.4g %% zeros makes several trainings, and has no checkpoints", 100*h.Sparsity)
	}
	quiet := o
	quiet.Note = nil // what is said of a training concerns the one that is chosen
	checkScale(x, o)
	var tried []Tried
	var nearest *model.Model
	off := math.Inf(1)
	for range MostTrainings {
		once := h
		once.Sparsity = 0
		once.Lambda = NextLambda(tried, h.Sparsity, Paper().Lambda)
		if slices.ContainsFunc(tried, func(t Tried) bool { return t.Lambda == once.Lambda }) {
			break
		}
		m, err := fitOnce(ctx, x, once, device, quiet)
		if err != nil {
			return nil, err
		}
		got := m.Info.Encoding.Sparsity
		tried = append(tried, Tried{once.Lambda, got})
		o.note("λ = %v gives %.2f %% zeros", once.Lambda, 100*got)
		if d := math.Abs(got - h.Sparsity); d < off {
			nearest, off = m, d
		}
		if off <= SparsityTolerance {
			break
		}
	}
	if off > SparsityTolerance {
		o.note("warning: no λ of %d that were tried gives %.4g %% zeros to %.2g points: this is the nearest", len(tried), 100*h.Sparsity, 100*SparsityTolerance)
	}
	checkResult(nearest.Info, o)
	return nearest, nil
}
