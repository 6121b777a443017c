package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"overcomplete/eval"
	"overcomplete/model"
	"overcomplete/train"
)

// The paper's grid (§3, "Hyperparameter Tuning").
var (
	Lambdas = []float64{0.1, 0.5, 1}
	Factors = []int{10, 20} // K/L
)

// MinSparsity is the share of zeros that the paper's choice has at least.
const MinSparsity = 0.9

// Grid measures the points of the paper's grid. Method and Epochs are h's.
func (e *Experiment) Grid(ctx context.Context, h model.Hyperparameters, tuning eval.Task) (tried []*Record, err error) {
	for _, factor := range Factors {
		for _, lambda := range Lambdas {
			h.Atoms, h.Lambda = factor*e.Setting.Input.Dim, lambda
			r, err := e.Point(ctx, h, []eval.Task{tuning})
			if err != nil {
				return nil, err
			}
			tried = append(tried, r)
		}
	}
	return tried, nil
}

// Best returns the point that the paper chooses: of those with [MinSparsity] the
// one with the highest score in a task, the first of equals. If there is none, it
// is the sparsest one, and enough is false.
func Best(tried []*Record, task string) (best *Record, enough bool) {
	score := func(r *Record) float64 {
		if s := r.Result(task).Score; !math.IsNaN(s) {
			return s
		}
		return math.Inf(-1)
	}
	for _, r := range tried {
		sparse := r.Metrics.Sparsity >= MinSparsity
		switch {
		case best == nil, sparse && !enough,
			sparse && score(r) > score(best),
			!enough && r.Metrics.Sparsity > best.Metrics.Sparsity:
			best, enough = r, sparse
		}
	}
	return best, enough
}

const (
	// Tolerance is how near [Experiment.Sparsity] comes to the share of zeros that
	// is wanted.
	Tolerance = 0.005
	// MostTrainings is how many trainings it takes at most.
	MostTrainings = 6
)

// Sparsity looks for the λ with which a share of codes between 0 and 1 is zero.
// Method, Epochs and Atoms are h's; points of the same that are there already are
// made use of. It returns these and those that it trained, by λ, and the nearest, and
// whether that is within Tolerance.
//
// The share of zeros grows with λ, nearly as a logistic function of log λ, so that
// the secant through the logits of the nearest two points leads to the next one.
// Once there are points on both sides, the next is between them: where the secant
// leads elsewhere, halfway on log λ.
func (e *Experiment) Sparsity(ctx context.Context, h model.Hyperparameters, wanted float64, tasks []eval.Task) (tried []*Record, nearest *Record, reached bool, err error) {
	for {
		if tried, err = e.points(h); err != nil {
			return nil, nil, false, err
		}
		trained := 0
		nearest = nil
		for _, r := range tried {
			if r.Wanted == wanted {
				trained++
			}
			if nearest == nil || off(r, wanted) < off(nearest, wanted) {
				nearest = r
			}
		}
		if nearest != nil && off(nearest, wanted) <= Tolerance {
			break
		}
		h.Lambda = next(tried, wanted)
		again := false
		for _, r := range tried {
			again = again || r.Training.Lambda == h.Lambda
		}
		if again || trained == MostTrainings {
			break
		}
		fmt.Fprintf(e.Log, "looking for λ, with training %d of at most %d\n", trained+1, MostTrainings)
		if _, err := e.point(ctx, h, tasks, wanted); err != nil {
			return nil, nil, false, err
		}
	}
	// What was trained before may lack scores.
	for i, r := range tried {
		if tried[i], err = e.point(ctx, r.Training, tasks, 0); err != nil {
			return nil, nil, false, err
		}
		if r == nearest {
			nearest = tried[i]
		}
	}
	return tried, nearest, off(nearest, wanted) <= Tolerance, nil
}

func off(r *Record, wanted float64) float64 { return math.Abs(r.Metrics.Sparsity - wanted) }

// next returns the λ to try after the points tried, which are ordered by λ. It has
// three significant digits: more would only make long names.
func next(tried []*Record, wanted float64) float64 {
	// What is known of a curve through a single point: on word vectors the logit of
	// the share of zeros grows by 0.8 to 1.5 while λ grows by the factor e.
	const usual, flattest, furthest = 1, 0.3, 3
	if len(tried) == 0 {
		return train.Defaults().Lambda
	}
	x := func(r *Record) float64 { return math.Log(r.Training.Lambda) }
	y := func(r *Record) float64 { return logit(r.Metrics.Sparsity) - logit(wanted) }
	near := slices.Clone(tried)
	slices.SortStableFunc(near, func(a, b *Record) int { return cmp.Compare(math.Abs(y(a)), math.Abs(y(b))) })
	slope := float64(usual)
	if len(near) > 1 {
		slope = max((y(near[1])-y(near[0]))/(x(near[1])-x(near[0])), flattest)
	}
	at := x(near[0]) + min(max(-y(near[0])/slope, -furthest), furthest)
	for i, r := range tried {
		if i > 0 && y(tried[i-1]) < 0 && y(r) >= 0 {
			low, high := x(tried[i-1]), x(r)
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

func round(lambda float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(lambda, 'g', 3, 64), 64)
	return r
}
