package eval

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"overcomplete/internal/printing"
)

// A text is a labelled item of a classification task.
type text struct {
	label  string
	tokens []string
}

// A classification is a task whose score is the accuracy of a text classifier.
type classification struct {
	name        string
	path        string // file or folder of the training texts
	texts       []text // training texts first, test texts last
	classes     map[string]int
	concatenate bool // the features are concatenated vectors rather than their mean
	split       func(seed uint64) split
}

// A split assigns the texts of a task to folds. C is the smallest of the values with the highest accuracy on the folds
// in tune. The score is the accuracy on the folds in test.
type split struct{ tune, test []fold }

// A fold holds the indices of its training texts and of the texts that it classifies.
type fold struct{ train, test []int }

// grid lists the values of C to choose from.
var grid = [...]float64{1e-3, 1e-2, 1e-1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6}

func (t *classification) Name() string { return t.name }

// check returns an error if the training texts of a fold have only one label.
func (t *classification) check(seed uint64) error {
	s := t.split(seed)
	for _, f := range slices.Concat(s.tune, s.test) {
		first := t.texts[f.train[0]].label
		if !slices.ContainsFunc(f.train, func(i int) bool { return t.texts[i].label != first }) {
			return inputError(t.path, 0, fmt.Errorf("with %d texts held out, all training texts of %s have the label %q; want more texts of each label", len(f.test), t.name, first))
		}
	}
	return nil
}

func (t *classification) evaluate(e *evaluation) (Result, error) {
	x, err := newFeatures(e.Representation, t)
	if err != nil {
		return Result{}, err
	}
	r := Result{Covered: x.covered, Total: x.total, Unit: "tokens"}
	s := t.split(e.seed)
	known, texts := 0, 0
	for _, f := range s.test {
		for _, i := range f.test {
			texts++
			if x.known[i] {
				known++
			}
		}
	}
	if known < minItems {
		return r.withoutScore(fmt.Sprintf("%d of %d test texts have a word with a vector, want at least %d", known, texts, minItems)), nil
	}
	if r.C, err = tune(e, x, s.tune); err != nil {
		return r, err
	}
	correct, err := test(e, x, s.test, r.C)
	if err != nil {
		return r, err
	}
	accuracy := func(sample []int) float64 {
		n := 0
		for _, i := range sample {
			if correct[i] {
				n++
			}
		}
		return 100 * float64(n) / float64(len(sample))
	}
	r.Score = printing.Number(accuracy(span(0, len(correct))))
	r.Stderr = e.bootstrap(len(correct), accuracy)
	return r, nil
}

// A search holds the fits of one fold for all values of the grid.
type search struct {
	*regression
	test    []int
	fits    [len(grid)]parameters
	correct [len(grid)]int // number of test texts classified correctly
}

// tune returns the value of C with the highest accuracy. A coarse fit takes a fraction of the time of a fine one.
// Therefore tune first fits all values coarsely. It then refines the values whose accuracy is close to the best, until
// all such values are refined.
func tune(e *evaluation, x *features, folds []fold) (c float64, err error) {
	searches := make([]search, len(folds))
	fit := func(f, n int, start parameters, precision float64) (err error) {
		s := &searches[f]
		if s.fits[n], err = s.regression.fit(e.ctx, grid[n], start, precision); err == nil {
			s.correct[n] = count(s.classify(s.fits[n], s.test))
		}
		return err
	}
	texts := 0
	for _, f := range folds {
		texts += len(f.test)
	}
	err = e.each(len(folds), func(f int) error {
		searches[f] = search{regression: newRegression(x, folds[f].train), test: folds[f].test}
		var start parameters
		for n := range grid {
			if err := fit(f, n, start, coarse); err != nil {
				return err
			}
			start = searches[f].fits[n]
		}
		return nil
	})
	var refined [len(grid)]bool
	for err == nil {
		var correct [len(grid)]int
		for _, s := range searches {
			for n := range grid {
				correct[n] += s.correct[n]
			}
		}
		most := slices.Max(correct[:])
		// With GoogleNews A, coarse fits classify at most 0.9 % fewer of the paper's texts correctly than fine fits, or
		// 5 fewer if there are few texts. (With far too large values of C, coarse fits classify up to 2.7 % more.)
		var near []int
		for n := range grid {
			if !refined[n] && correct[n] >= most-texts/100-5 {
				near = append(near, n)
				refined[n] = true
			}
		}
		if near == nil {
			return grid[slices.Index(correct[:], most)], nil
		}
		err = e.each(len(folds), func(f int) error {
			for _, n := range near {
				if err := fit(f, n, searches[f].fits[n], fine); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return 0, err
}

// test reports for each text of the folds whether it is classified correctly with C = c.
func test(e *evaluation, x *features, folds []fold, c float64) (correct []bool, err error) {
	parts := make([][]bool, len(folds))
	err = e.each(len(folds), func(f int) error {
		r := newRegression(x, folds[f].train)
		p, err := r.fit(e.ctx, c, nil, coarse)
		if err != nil {
			return err
		}
		if p, err = r.fit(e.ctx, c, p, fine); err == nil {
			parts[f] = r.classify(p, folds[f].test)
		}
		return err
	})
	return slices.Concat(parts...), err
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

func span(first, end int) []int {
	s := make([]int, end-first)
	for i := range s {
		s[i] = first + i
	}
	return s
}

// withDevelopment splits texts that are in the order training, development, test. C is chosen on the development texts.
// Neither fold trains on them.
func withDevelopment(train, dev, test int) func(seed uint64) split {
	return func(uint64) split {
		return split{
			tune: []fold{{span(0, train), span(train, train+dev)}},
			test: []fold{{span(0, train), span(train+dev, train+dev+test)}},
		}
	}
}

// withHeldOut chooses C on random training texts that it holds out. Neither fold trains on these texts.
func withHeldOut(train, heldOut, test int) func(seed uint64) split {
	return func(seed uint64) split {
		order := shuffled(train, seed)
		return split{
			tune: []fold{{order[:train-heldOut], order[train-heldOut:]}},
			test: []fold{{order[:train-heldOut], span(train, train+test)}},
		}
	}
}

// withCrossValidation chooses C by five-fold cross-validation on the training texts.
func withCrossValidation(train, test int) func(seed uint64) split {
	return func(seed uint64) split {
		folds := make([]fold, 5)
		for n, i := range shuffled(train, seed) {
			for f := range folds {
				if n%len(folds) == f {
					folds[f].test = append(folds[f].test, i)
				} else {
					folds[f].train = append(folds[f].train, i)
				}
			}
		}
		return split{tune: folds, test: []fold{{span(0, train), span(train, train+test)}}}
	}
}

func shuffled(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, forSplits)).Perm(n) }
