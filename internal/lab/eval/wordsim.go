package eval

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// wordSimilarity compares the cosine of two words' vectors with people's
// judgments of their similarity, by Spearman's ρ over all pairs.
type wordSimilarity struct {
	name  string
	pairs []pair
}

type pair struct {
	words [2]string
	score float64
}

// ReadWordSimilarity reads pairs of words with people's judgments of their similarity
// from a file with a line "word word score" for each pair, separated by white space.
// The score of the task is Spearman's ρ of the judgments and the vectors' cosines.
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
		err = inputError(path, 0, errors.New("holds no pairs"))
	}
	return t, err
}

func (t *wordSimilarity) Name() string { return t.name }

func (t *wordSimilarity) evaluate(e *evaluation) (r Result, err error) {
	err = e.compute(func() error {
		r = t.correlate(e)
		return nil
	})
	return r, err
}

func (t *wordSimilarity) correlate(e *evaluation) Result {
	r := Result{Total: len(t.pairs), Unit: "pairs"}
	var unknown vector // zero
	if e.OOV == Mean {
		unknown = e.mean()
	}
	var judged, cosines []float64
	for _, p := range t.pairs {
		known := 0
		var v [2]vector
		for i, word := range p.words {
			v[i] = unknown
			if row, ok := e.find(word, e.Case); ok {
				v[i] = e.vector(row)
				known++
			}
		}
		if known == 2 {
			r.Covered++
		} else if e.OOV == Skip {
			continue
		}
		judged = append(judged, p.score)
		cosines = append(cosines, v[0].cosine(v[1]))
	}
	if r.Covered < fewest {
		return r.left(fmt.Sprintf("%d of %d pairs have vectors, too few", r.Covered, r.Total))
	}
	rho := Spearman(judged, cosines)
	if math.IsNaN(rho) {
		return r.left("all pairs are equally similar")
	}
	sampleJudged, sampleCosines := make([]float64, len(judged)), make([]float64, len(judged))
	r.Score = 100 * rho
	r.Stderr = 100 * e.bootstrap(len(judged), func(sample []int) float64 {
		for i, j := range sample {
			sampleJudged[i], sampleCosines[i] = judged[j], cosines[j]
		}
		return Spearman(sampleJudged, sampleCosines)
	})
	return r
}
