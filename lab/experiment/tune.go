package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"overcomplete/lab/eval"
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
func (e *Experiment) Grid(ctx context.Context, h model.Paper, tuning eval.Task) (tried []*Record, err error) {
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
		sparse := sparsity(r) >= MinSparsity
		switch {
		case best == nil, sparse && !enough,
			sparse && score(r) > score(best),
			!enough && sparsity(r) > sparsity(best):
			best, enough = r, sparse
		}
	}
	return best, enough
}

// Sparsity looks for the λ with which a share of codes between 0 and 1 is zero.
// Method, Epochs and Atoms are h's; points of the same that are there already are
// made use of. It returns these and those that it trained, by λ, and the nearest, and
// whether that is within [train.SparsityTolerance].
func (e *Experiment) Sparsity(ctx context.Context, h model.Paper, wanted float64, tasks []eval.Task) (tried []*Record, nearest *Record, reached bool, err error) {
	before, err := e.points(h)
	if err != nil {
		return nil, nil, false, err
	}
	var known []train.Tried
	trained := 0
	for _, r := range before {
		known = append(known, r.tried())
		if r.Wanted == wanted {
			trained++
		}
	}
	err = train.SearchLambda(known, train.MostTrainings-trained, wanted, func(lambda float64) (float64, error) {
		trained++
		fmt.Fprintf(e.Log, "looking for λ, with training %d of at most %d\n", trained, train.MostTrainings)
		h.Lambda = lambda
		r, err := e.point(ctx, h, tasks, wanted)
		if err != nil {
			return 0, err
		}
		return r.Metrics.Sparsity, nil
	})
	if err != nil {
		return nil, nil, false, err
	}
	if tried, err = e.points(h); err != nil {
		return nil, nil, false, err
	}
	for i, r := range tried { // what was trained before may lack scores
		if tried[i], err = e.point(ctx, r.Paper(), tasks, 0); err != nil {
			return nil, nil, false, err
		}
	}
	nearest = slices.MinFunc(tried, func(a, b *Record) int { return cmp.Compare(a.tried().Off(wanted), b.tried().Off(wanted)) })
	return tried, nearest, nearest.tried().Off(wanted) <= train.SparsityTolerance, nil
}

func (r *Record) tried() train.Tried {
	return train.Tried{Lambda: r.Paper().Lambda, Sparsity: r.Metrics.Sparsity}
}

// sparsity is the share of zeros that a point of the grid is chosen by, 0 for codes that are
// all zero, which say nothing.
func sparsity(r *Record) float64 {
	if r.Metrics.Sparsity == 1 {
		return 0
	}
	return r.Metrics.Sparsity
}
