package eval

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/printing"
)

// wordSimilarity is a task whose score is Spearman's ρ between human judgments of word pairs and the
// cosines of their vectors.
type wordSimilarity struct {
	name  string
	pairs []pair
}

type pair struct {
	words [2]string
	score float64
}

// ReadWordSimilarity reads a word similarity task from a file of lines "word word score",
// separated by white space.
func ReadWordSimilarity(name, path string) (Task, error) {
	t := &wordSimilarity{name: name}
	err := readLines(path, utf8Text, func(_ int, line string) error {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("%d fields, want two words and a score", len(fields))
		}
		score, err := strconv.ParseFloat(fields[2], 64)
		if err != nil || math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("score is %q, want a number", fields[2])
		}
		t.pairs = append(t.pairs, pair{[2]string{fields[0], fields[1]}, score})
		return nil
	})
	if err == nil && len(t.pairs) == 0 {
		err = inputError(path, 0, errors.New("no pairs"))
	}
	return t, err
}

func (t *wordSimilarity) Name() string { return t.name }

func (t *wordSimilarity) check(uint64) error { return nil }

func (t *wordSimilarity) evaluate(e *evaluation) (Result, error) {
	r := Result{Total: len(t.pairs), Unit: "pairs"}
	var judged, cosines []float64
	for _, p := range t.pairs {
		a, okA := e.find(p.words[0])
		b, okB := e.find(p.words[1])
		if okA && okB {
			judged = append(judged, p.score)
			cosines = append(cosines, e.vector(a).cosine(e.vector(b)))
		}
	}
	r.Covered = len(judged)
	if r.Covered < minItems {
		return r.withoutScore(fmt.Sprintf("%d of %d pairs have vectors, want at least %d", r.Covered, r.Total, minItems)), nil
	}
	rho := Spearman(judged, cosines)
	if math.IsNaN(rho) {
		return r.withoutScore("all pairs are equally similar"), nil
	}
	x, y := make([]float64, len(judged)), make([]float64, len(judged))
	r.Score = printing.Number(100 * rho)
	r.Stderr = 100 * e.bootstrap(len(judged), func(sample []int) float64 {
		for i, j := range sample {
			x[i], y[i] = judged[j], cosines[j]
		}
		return Spearman(x, y)
	})
	return r, nil
}

// Spearman returns Spearman's rank correlation ρ of x and y, which have the same length. Equal
// values share the mean of their ranks. ρ is NaN if all values of x or of y are equal.
func Spearman(x, y []float64) float64 {
	return stat.Correlation(ranks(x), ranks(y), nil)
}

// ranks returns the rank of each value, from 1.
func ranks(x []float64) []float64 {
	sorted, order, rank := slices.Clone(x), make([]int, len(x)), make([]float64, len(x))
	floats.Argsort(sorted, order)
	for first, end := 0, 0; first < len(x); first = end {
		for end < len(x) && sorted[end] == sorted[first] {
			end++
		}
		for _, i := range order[first:end] {
			rank[i] = float64(first+end+1) / 2
		}
	}
	return rank
}
