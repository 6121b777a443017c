// Package eval measures word vectors by the benchmark tasks of the paper (§3 and
// Appendix B).
//
// Two tasks compare similarities of words: the score is the rank correlation of the
// vectors' cosines with people's judgments. The others classify texts: the score is
// the accuracy of a logistic regression on the average of the words' vectors or, for
// noun phrases, on the vectors of their three words side by side. Vectors are not
// tuned for a task.
//
// The paper leaves some choices open. Those made here are described by [Options] and
// by the functions that read the tasks, and are printed with every table.
//
// What is wrong with a task's files is reported as a [*vectors.InputError].
package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"overcomplete/internal/table"
	"overcomplete/vectors"
)

// Options are choices that the paper leaves open. Scores can be compared only if they
// were measured with the same ones.
type Options struct {
	OOV  OOV    // what is done about words without a vector
	Case Case   // how the vector of a token is looked up
	Raw  bool   // do not scale the features of a text to unit length
	Seed uint64 // of random splits and the bootstrap
}

// OOV says what is done about words that have no vector ("out of vocabulary").
type OOV string

const (
	// Skip leaves them out: pairs with such a word are dropped, and averages are over
	// the other words. In noun phrases, where places matter, they are zero vectors.
	Skip OOV = "skip"
	// Zero gives them the zero vector.
	Zero OOV = "zero"
	// Mean gives them the mean of all vectors.
	Mean OOV = "mean"
)

// Case says how the vector of a token is looked up.
type Case string

const (
	Fallback Case = "fallback" // as the token stands or, if that has no vector, in lower case
	Exact    Case = "exact"    // only as the token stands
	Lower    Case = "lower"    // only in lower case
)

// Describe returns the choices as an English sentence without a full stop.
func (o Options) Describe() string {
	oov := map[OOV]string{
		Skip: "left out (pairs dropped, zero in noun phrases)",
		Zero: "zero vectors",
		Mean: "the mean vector",
	}[o.OOV]
	look := map[Case]string{Fallback: "as they stand, else in lower case", Exact: "as they stand", Lower: "in lower case"}[o.Case]
	features := "scaled to unit length"
	if o.Raw {
		features = "unscaled"
	}
	return fmt.Sprintf("unknown words are %s; tokens are looked up %s; features are %s; "+
		"logistic regression ½‖w‖² + C·Σ loss, C of 1e-3, 1e-2, … 1e6 chosen on held-out data, the smaller of equals; seed %d",
		oov, look, features, o.Seed)
}

// A Task is a benchmark with its data. The Read functions make tasks.
type Task interface {
	Name() string
	evaluate(e *evaluation) (Result, error)
}

// fewest is the least number of pairs or test texts with vectors that a score needs.
const fewest = 10

// Result is the score of one representation in one task.
type Result struct {
	Score   float64 `json:"-"`           // accuracy, or Spearman's ρ, × 100; NaN if there is none: see Note
	Stderr  float64 `json:"-"`           // standard error of Score, by a bootstrap over the test items
	Covered int     `json:"covered"`     // how many of Total have vectors
	Total   int     `json:"total"`       // pairs or tokens in all parts of the task, training included
	Unit    string  `json:"unit"`        // what Covered and Total count: "pairs" or "tokens"
	C       float64 `json:"c,omitempty"` // the C of the logistic regression that was chosen; 0 in other tasks

	// Unconverged are the values of C for which a regression was ended before it
	// reached its optimum. Their accuracies may be slightly wrong.
	Unconverged []float64 `json:"unconverged,omitempty"`

	Note string `json:"note,omitempty"` // why there is no score, "" if there is one
}

// resultJSON is a Result in JSON.
type resultJSON struct {
	Score  table.Number `json:"score"`
	Stderr table.Number `json:"stderr"`
	*resultFields
}

type resultFields Result

// MarshalJSON implements [json.Marshaler]. A score of NaN becomes null.
func (r Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{table.Number(r.Score), table.Number(r.Stderr), (*resultFields)(&r)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Result) UnmarshalJSON(b []byte) error {
	none := table.Number(math.NaN())
	j := resultJSON{none, none, (*resultFields)(r)}
	err := json.Unmarshal(b, &j)
	r.Score, r.Stderr = float64(j.Score), float64(j.Stderr)
	return err
}

// left returns the result of a task that has no score.
func (r Result) left(note string) Result {
	r.Score, r.Stderr, r.Note = math.NaN(), math.NaN(), note
	return r
}

// An evaluation is that of one representation by some tasks.
type evaluation struct {
	*Representation
	Options
	ctx     context.Context
	workers chan struct{} // a token for each that may compute
}

// Run measures a representation by each of the tasks and returns their results in the
// same order. It uses all processors; the results do not depend on their number.
//
// It is an error if a vector that a task uses is not finite, or if a part of a task
// that a classifier is to be trained on has texts of one label only. If ctx is
// cancelled, its error is returned.
//
// Finished, unless it is nil, is called with the name of each task that is done, from any
// goroutine.
func Run(ctx context.Context, r *Representation, tasks []Task, o Options, finished func(task string)) ([]Result, error) {
	e := &evaluation{r, o, ctx, make(chan struct{}, runtime.GOMAXPROCS(0))}
	for _, t := range tasks {
		if t, ok := t.(*classification); ok {
			if err := t.check(e); err != nil {
				return nil, err
			}
		}
	}
	results := make([]Result, len(tasks))
	err := each(len(tasks), func(i int) (err error) {
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

// each runs f(0) … f(n−1) in goroutines and returns the first error by index.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = f(i) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// compute runs f when a processor is free, unless the evaluation is cancelled. f must not wait
// for others.
func (e *evaluation) compute(f func() error) error {
	e.workers <- struct{}{}
	defer func() { <-e.workers }()
	if err := e.ctx.Err(); err != nil {
		return err
	}
	return f()
}

// computeEach computes f(0) … f(n−1), and returns the first error by index.
func (e *evaluation) computeEach(n int, f func(i int) error) error {
	return each(n, func(i int) error { return e.compute(func() error { return f(i) }) })
}

// random returns the generator that a task uses for one purpose.
func (e *evaluation) random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(e.Seed, purpose)) }

// The purposes of random numbers.
const (
	forSplits = iota
	forBootstrap
)

// bootstrap returns the standard deviation of a statistic over samples of n items
// drawn with replacement.
func (e *evaluation) bootstrap(n int, statistic func(sample []int) float64) float64 {
	const samples = 1000
	rng := e.random(forBootstrap)
	sample := make([]int, n)
	var sum, squares float64
	used := 0.0
	for range samples {
		for i := range sample {
			sample[i] = rng.IntN(n)
		}
		if s := statistic(sample); !math.IsNaN(s) {
			sum, squares, used = sum+s, squares+s*s, used+1
		}
	}
	mean := sum / used
	return math.Sqrt(max(0, squares/used-mean*mean))
}

// inputError says that line of a file is wrong, or the file if line is 0.
func inputError(file string, line int, err error) error {
	return &vectors.InputError{File: file, Line: line, Err: err}
}
