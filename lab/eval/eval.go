// Package eval scores word vectors by the benchmark tasks of the paper (§3 and Appendix B).
//
// Two tasks correlate cosines of word vectors with human judgments of similarity. The others
// classify texts with a logistic regression. The features of a text are the mean of its word
// vectors or, for noun phrases, their concatenation, scaled to unit length. A token is looked up
// as it stands, then in lower case. Tokens without a vector are left out; in noun phrases, where
// positions matter, they are zero. Vectors are not tuned for a task.
//
// A malformed file is reported as a [*vectors.InputError].
//
//	task, err := eval.ReadTask("WS-353", "data")
//	results, err := eval.Run(ctx, eval.NewSparse("A", codes), []eval.Task{task}, 1, nil)
//	fmt.Println(results[0]) // 58.7 ±4.5, Spearman's ρ × 100
package eval

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/parallel"
	"overcomplete/internal/printing"
)

// Protocol states the choices that the paper leaves open. Only scores of the same protocol are
// comparable.
const Protocol = "words without a vector are left out (pairs dropped, zero in noun phrases); " +
	"tokens are looked up as they stand, else in lower case; features are scaled to unit length; " +
	"logistic regression ½‖w‖² + C·Σ loss, C of 1e-3, 1e-2, … 1e6 chosen on held-out data, the smaller of equals"

// A Task is a benchmark with its data. The Read functions return tasks.
type Task interface {
	Name() string
	check(seed uint64) error
	evaluate(e *evaluation) (Result, error)
}

// minItems is the smallest number of items with vectors for a score. Items are pairs of words or test texts.
const minItems = 10

// Result is the score of one representation in one task.
type Result struct {
	Score   printing.Number `json:"score"`          // accuracy or Spearman's ρ, × 100; NaN if missing, see Note
	Stderr  printing.Number `json:"stderr"`         // standard error of Score, by a bootstrap over the test items
	Covered int             `json:"covered"`        // number of pairs or tokens with vectors
	Total   int             `json:"total"`          // number of pairs or tokens of the task, training texts included
	Unit    string          `json:"unit"`           // "pairs" or "tokens"
	C       float64         `json:"c,omitempty"`    // the chosen C of the logistic regression; 0 in other tasks
	Note    string          `json:"note,omitempty"` // the reason for a missing score, or ""
}

// withoutScore returns r with a NaN score and the reason for it.
func (r Result) withoutScore(note string) Result {
	nan := printing.Number(math.NaN())
	r.Score, r.Stderr, r.Note = nan, nan, note
	return r
}

// String returns the score with its standard error.
func (r Result) String() string {
	if math.IsNaN(float64(r.Score)) {
		return "–"
	}
	return fmt.Sprintf("%.1f ±%.1f", r.Score, r.Stderr)
}

// An evaluation is a run of tasks with one representation.
type evaluation struct {
	*Representation
	ctx  context.Context
	seed uint64
}

// Run scores a representation by each task and returns the results in the order of tasks. The seed
// determines random splits and the bootstrap. Results don't depend on the number of processors.
//
// It returns an error if a vector of a task isn't finite, if the training texts of a classifier have
// only one label, or if a classifier doesn't converge. Run calls finished, unless it is nil, with the
// name of each finished task, from any goroutine.
func Run(ctx context.Context, r *Representation, tasks []Task, seed uint64, finished func(task string)) ([]Result, error) {
	for _, t := range tasks {
		if err := t.check(seed); err != nil {
			return nil, err
		}
	}
	e := &evaluation{r, ctx, seed}
	results := make([]Result, len(tasks))
	err := e.each(len(tasks), func(i int) (err error) {
		results[i], err = tasks[i].evaluate(e)
		switch {
		case err != nil && ctx.Err() == nil:
			err = fmt.Errorf("%s by %s: %w", r.Name, tasks[i].Name(), err)
		case err == nil && finished != nil:
			finished(tasks[i].Name())
		}
		return err
	})
	return results, err
}

// e.each calls f(0) to f(n−1) in parallel. It returns the error with the lowest index, or nil.
func (e *evaluation) each(n int, f func(i int) error) error {
	errs := make([]error, n)
	if err := parallel.Each(e.ctx, n, func(i int) { errs[i] = f(i) }); err != nil {
		return err
	}
	return cmp.Or(errs...)
}

// Random streams under one seed.
const (
	forSplits = iota
	forBootstrap
)

// bootstrap returns the standard deviation of a statistic over samples of n items drawn with
// replacement.
func (e *evaluation) bootstrap(n int, statistic func(sample []int) float64) printing.Number {
	const samples = 1000
	rng := rand.New(rand.NewPCG(e.seed, forBootstrap))
	sample := make([]int, n)
	var values []float64
	for range samples {
		for i := range sample {
			sample[i] = rng.IntN(n)
		}
		if v := statistic(sample); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return printing.Number(stat.PopStdDev(values, nil))
}
