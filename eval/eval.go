// Package eval measures word vectors by the benchmark tasks of the paper (§3 and
// Appendix B).
//
// Two tasks ask how similar words are: the rank correlation of the vectors'
// cosines with people's judgments. The other ones classify texts by logistic
// regression on the average of their words' vectors, or noun phrases on three
// vectors appended. No vector is tuned for a task; better vectors make the same
// simple classifier better.
//
// What the paper leaves open is settled here, and printed with every table:
// see [Options] and the tasks.
package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"overcomplete/vectors"
)

// Options are the choices that the paper leaves open. Numbers from different
// choices can't be compared.
type Options struct {
	OOV  OOV  // what stands for words without a vector
	Case Case // how a token's vector is looked up
	Raw  bool // leave a text's features as they are, instead of scaling them to unit length
	Seed uint64
}

// OOV says what stands for words without a vector ("out of vocabulary").
type OOV string

const (
	// Skip leaves such words out: pairs with one are dropped, averages are over
	// the others. In a noun phrase, where a vector's place matters, they are zero.
	Skip OOV = "skip"
	// Zero gives them the zero vector.
	Zero OOV = "zero"
	// Mean gives them the mean of all vectors.
	Mean OOV = "mean"
)

// Case says how the vector of a token is looked up.
type Case string

const (
	Fallback Case = "fallback" // as it stands, else in lower case
	Exact    Case = "exact"    // as it stands
	Lower    Case = "lower"    // in lower case
)

// Describe says in words what o's choices are.
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

// A Task is a benchmark with its data.
type Task interface {
	Name() string
	evaluate(e *evaluation) (Result, error)
}

// fewest is how many covered items a score needs.
const fewest = 10

// Result is what a task measured.
type Result struct {
	Score   float64 // accuracy, or Spearman's ρ, × 100; NaN if Note says why there is none
	Stderr  float64 // its standard error, by a bootstrap over test items
	Covered int     // units with vectors, in all of the task's parts
	Total   int
	Unit    string  // of Covered and Total: pairs or tokens
	C       float64 // of the logistic regression, 0 if there is none
	// Unconverged are the values of C for which a regression was ended before its
	// optimum. What they scored may be a bit off.
	Unconverged []float64
	Note        string
}

// resultJSON is a Result in JSON, where a score that there is not is null.
type resultJSON struct {
	Score       *float64  `json:"score"`
	Stderr      *float64  `json:"stderr"`
	Covered     int       `json:"covered"`
	Total       int       `json:"total"`
	Unit        string    `json:"unit"`
	C           float64   `json:"c,omitempty"`
	Unconverged []float64 `json:"unconverged,omitempty"`
	Note        string    `json:"note,omitempty"`
}

// MarshalJSON implements [json.Marshaler]. JSON has no NaN.
func (r Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{Covered: r.Covered, Total: r.Total, Unit: r.Unit, C: r.C, Unconverged: r.Unconverged, Note: r.Note}
	if r.Note == "" {
		j.Score, j.Stderr = &r.Score, &r.Stderr
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Result) UnmarshalJSON(b []byte) error {
	var j resultJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*r = Result{math.NaN(), math.NaN(), j.Covered, j.Total, j.Unit, j.C, j.Unconverged, j.Note}
	if j.Score != nil && j.Stderr != nil {
		r.Score, r.Stderr = *j.Score, *j.Stderr
	}
	return nil
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

// Run evaluates a representation by tasks, on all processors. The results do not
// depend on their number.
func Run(ctx context.Context, r *Representation, tasks []Task, o Options) ([]Result, error) {
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
		if results[i], err = tasks[i].evaluate(e); err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s by %s: %w", r.Name, tasks[i].Name(), err)
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

// compute runs f when a processor is free. f must not wait for others.
func (e *evaluation) compute(f func()) error {
	e.workers <- struct{}{}
	defer func() { <-e.workers }()
	if err := e.ctx.Err(); err != nil {
		return err
	}
	f()
	return nil
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
