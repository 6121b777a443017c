package eval

import (
	"cmp"
	"fmt"
	"slices"
)

// A text is an item of a classification task.
type text struct {
	label  int
	tokens []string
}

// A classification is a task that classifies texts.
type classification struct {
	name   string
	layout layout
	labels []string // of the classes
	texts  []text   // all parts
	split  func(e *evaluation) split
}

// A split says which texts serve for what. C is the value of the grid with the
// most texts of tune's folds right, the smaller of equals; the score is the share
// of test's folds that is right with it.
type split struct{ tune, test []fold }

// A fold is texts, by their indices, to train on and others to classify then.
type fold struct{ train, test []int }

// grid is the values of C that are tried. A regression is fitted for one after the
// other, each from the optimum of the one before.
var grid = []float64{1e-3, 1e-2, 1e-1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6}

func (t *classification) Name() string { return t.name }

func (t *classification) evaluate(e *evaluation) (Result, error) {
	var x *features
	if err := e.compute(func() { x = newFeatures(e, t.texts, len(t.labels), t.layout) }); err != nil {
		return Result{}, err
	}
	r := Result{Covered: x.covered, Total: x.total, Unit: "tokens"}
	s := t.split(e)
	known, tested := 0, 0
	for _, f := range s.test {
		for _, i := range f.test {
			tested++
			if x.known[i] {
				known++
			}
		}
	}
	if known < fewest {
		return r.left(fmt.Sprintf("%d of %d test texts have a word with a vector, too few", known, tested)), nil
	}
	n, err := tune(e, x, s.tune)
	if err != nil {
		return r, err
	}
	right, err := test(e, x, s.test, grid[:n+1])
	if err != nil {
		return r, err
	}
	r.C = grid[n]
	r.Score = 100 * float64(count(right)) / float64(len(right))
	r.Stderr = 100 * e.bootstrap(len(right), func(sample []int) float64 {
		n := 0
		for _, i := range sample {
			if right[i] {
				n++
			}
		}
		return float64(n) / float64(len(right))
	})
	return r, nil
}

// tune returns the index of the best value of the grid.
func tune(e *evaluation, x *features, folds []fold) (int, error) {
	right := make([][]int, len(folds)) // for each value
	err := each(len(folds), func(f int) (err error) {
		failed := e.compute(func() {
			r := newRegression(x, folds[f].train)
			var p parameters
			for _, c := range grid {
				if p, err = r.fit(e.ctx, c, p, searchTolerance); err != nil {
					return
				}
				right[f] = append(right[f], count(r.correct(p, folds[f].test)))
			}
		})
		return cmp.Or(failed, err)
	})
	if err != nil {
		return 0, err
	}
	best, most := 0, -1
	for n := range grid {
		sum := 0
		for _, r := range right {
			sum += r[n]
		}
		if sum > most {
			best, most = n, sum
		}
	}
	return best, nil
}

// test reports which texts of the folds are right with the last of some values of
// C, which are those on the way there.
func test(e *evaluation, x *features, folds []fold, way []float64) ([]bool, error) {
	right := make([][]bool, len(folds))
	err := each(len(folds), func(f int) (err error) {
		failed := e.compute(func() {
			r := newRegression(x, folds[f].train)
			var p parameters
			for _, c := range way {
				if p, err = r.fit(e.ctx, c, p, searchTolerance); err != nil {
					return
				}
			}
			if p, err = r.fit(e.ctx, way[len(way)-1], p, finalTolerance); err == nil {
				right[f] = r.correct(p, folds[f].test)
			}
		})
		return cmp.Or(failed, err)
	})
	return slices.Concat(right...), err
}

func count(b []bool) int {
	n := 0
	for _, b := range b {
		if b {
			n++
		}
	}
	return n
}

// span returns the numbers from first to last−1.
func span(first, last int) []int {
	s := make([]int, 0, last-first)
	for i := first; i < last; i++ {
		s = append(s, i)
	}
	return s
}

// withDevelopment takes parts that follow one another in a task's texts.
func withDevelopment(train, dev, test int) func(*evaluation) split {
	return func(*evaluation) split {
		return split{
			tune: []fold{{span(0, train), span(train, train+dev)}},
			test: []fold{{span(0, train), span(train+dev, train+dev+test)}},
		}
	}
}

// withHeldOut holds the last texts of a random order of the training texts out to
// choose C.
func withHeldOut(train, held, test int) func(*evaluation) split {
	return func(e *evaluation) split {
		order := e.random(forSplits).Perm(train)
		return split{
			tune: []fold{{order[:train-held], order[train-held:]}},
			test: []fold{{order[:train-held], span(train, train+test)}},
		}
	}
}

const tuningFolds = 5

// withCrossValidation chooses C by cross-validation on the training texts, in
// random order.
func withCrossValidation(train, test int) func(*evaluation) split {
	return func(e *evaluation) split {
		folds := make([]fold, tuningFolds)
		for n, i := range e.random(forSplits).Perm(train) {
			for f := range folds {
				if n%tuningFolds == f {
					folds[f].test = append(folds[f].test, i)
				} else {
					folds[f].train = append(folds[f].train, i)
				}
			}
		}
		return split{tune: folds, test: []fold{{span(0, train), span(train, train+test)}}}
	}
}
