package intrusion

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
	"overcomplete/interpret"
	"overcomplete/vectors"
)

// Accuracy is the word intrusion accuracy of the positive poles of dimensions, judged by reference
// vectors. Accuracies are shares of questions; chance is 0.2.
type Accuracy struct {
	Reference  string          `json:"reference,omitempty"` // name of the file of the reference vectors
	Words      int             `json:"words"`               // number of words in the test
	Seed       uint64          `json:"seed"`
	Dimensions int             `json:"dimensions"`         // number of live dimensions: dimensions with questions
	Any        Estimate        `json:"any"`                // accuracy if all intruders are equally likely
	Matched    Estimate        `json:"matched"`            // accuracy if intruders are about as frequent as the top words
	Scores     []*PoleAccuracy `json:"scores,omitempty"`   // live dimensions, in increasing order
	Negative   *Accuracy       `json:"negative,omitempty"` // accuracy of the negative poles; nil if codes are nonnegative
}

// PoleAccuracy is the accuracy of one pole of a dimension.
type PoleAccuracy struct {
	Dimension int     `json:"dimension"`
	Any       float64 `json:"any"`
	Matched   float64 `json:"matched"`
}

// An Estimate is a mean over dimensions with its 95 % confidence interval.
type Estimate struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

const (
	questionsPerKind = 10   // number of questions about a dimension with any intruders, and as many with matched ones
	resamples        = 2000 // number of samples of the bootstrap
)

// Measure returns the accuracy of the positive poles of codes, whose V rows are the test's words. The reference
// vectors of the words judge it. The answer to a question is the word whose mean cosine with the other four is smallest. The mean of the
// reference vectors is subtracted first, because this mean separates words mostly by their frequency.
//
// Each live dimension has ten questions with any intruder and ten with a matched intruder. Matching
// assumes that rows are in decreasing order of frequency. Intervals are bootstrapped over dimensions.
func (t *Test) Measure(ctx context.Context, codes *vectors.Sparse) (*Accuracy, error) {
	bytes, _ := interpret.Memory(codes)
	if err := memory.Check(bytes); err != nil {
		return nil, fmt.Errorf("an index of %d rows: %w", codes.Rows, err)
	}
	sampler, judge := newSampler(interpret.NewIndex(codes)), newJudge(t.Reference)
	scores := make([]*PoleAccuracy, codes.Cols)
	random := make([]*rand.Rand, len(scores)) // one per dimension, so that results don't depend on the number of processors
	seeds := rand.NewPCG(t.Seed, 0)
	for k := range random {
		random[k] = rand.New(rand.NewPCG(seeds.Uint64(), seeds.Uint64()))
	}
	err := parallel.Each(ctx, len(scores), func(k int) {
		p := sampler.pool(k)
		if p == nil {
			return
		}
		accuracy := func(draw func(*rand.Rand) instance) float64 {
			found := 0
			for range questionsPerKind {
				if it := draw(random[k]); judge.oddOneOut(it.rows) == it.intruder {
					found++
				}
			}
			return float64(found) / questionsPerKind
		}
		scores[k] = &PoleAccuracy{Dimension: k, Any: accuracy(p.draw), Matched: accuracy(p.drawMatched)}
	})
	if err != nil {
		return nil, err
	}
	a := &Accuracy{Reference: t.Name, Words: t.Reference.Len(), Seed: t.Seed}
	var anyone, matched []float64
	for _, s := range scores {
		if s != nil {
			a.Scores, anyone, matched = append(a.Scores, s), append(anyone, s.Any), append(matched, s.Matched)
		}
	}
	a.Dimensions, a.Any, a.Matched = len(a.Scores), bootstrap(anyone, t.Seed), bootstrap(matched, t.Seed)
	return a, nil
}

// A judge answers questions by the cosines of centred vectors.
type judge struct {
	*vectors.Dense
	mean, norms []float64
}

func newJudge(x *vectors.Dense) *judge {
	j := &judge{x, make([]float64, x.Dim), make([]float64, x.Len())}
	for i := range x.Len() {
		for l, v := range x.Row(i) {
			j.mean[l] += float64(v)
		}
	}
	for l := range j.mean {
		j.mean[l] /= float64(x.Len()) // exact for equal vectors
	}
	for i := range j.norms {
		j.norms[i] = math.Sqrt(j.dot(i, i))
	}
	return j
}

// oddOneOut returns the index of the word whose cosines with the other words have the smallest sum. The cosine with a
// zero vector is 0.
func (j *judge) oddOneOut(rows [5]int) int {
	sums := make([]float64, len(rows))
	for a, i := range rows {
		for b, k := range rows[:a] {
			if j.norms[i] > 0 && j.norms[k] > 0 {
				cosine := j.dot(i, k) / j.norms[i] / j.norms[k]
				sums[a] += cosine
				sums[b] += cosine
			}
		}
	}
	return floats.MinIdx(sums)
}

// dot returns the dot product of two centred rows.
func (j *judge) dot(i, k int) float64 {
	x, y := j.Row(i), j.Row(k)
	sum := 0.0
	for l, m := range j.mean {
		sum += (float64(x[l]) - m) * (float64(y[l]) - m)
	}
	return sum
}

// bootstrap returns the mean of a sample and its 95 % percentile interval.
func bootstrap(sample []float64, seed uint64) Estimate {
	if len(sample) == 0 {
		return Estimate{}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	means := make([]float64, resamples)
	for b := range means {
		for range sample {
			means[b] += sample[rng.IntN(len(sample))]
		}
		means[b] /= float64(len(sample))
	}
	slices.Sort(means)
	return Estimate{
		Mean: stat.Mean(sample, nil),
		Low:  stat.Quantile(.025, stat.LinInterp, means, nil),
		High: stat.Quantile(.975, stat.LinInterp, means, nil),
	}
}

// Save writes a to a JSON file, which replaces an existing one atomically.
func (a *Accuracy) Save(ctx context.Context, path string) error {
	return atomicfile.WriteFile(ctx, path, true, func(w io.Writer) error { return json.NewEncoder(w).Encode(a) })
}

// Matched reads a file that [Accuracy.Save] wrote. It returns the name of the reference vectors, and the word intrusion
// accuracy with matched intruders of each pole. It returns an error if the file has scores outside [0, 1], or scores of
// dimensions that the model lacks.
func Matched(path string, dimensions int) (reference string, accuracy map[interpret.Pole]float64, err error) {
	const maxBytes = 1 << 26 // enough for the scores of 100,000 dimensions
	data, err := input.ReadRegular(path, maxBytes)
	if err != nil {
		return "", nil, err
	}
	var positive Accuracy
	if err := json.Unmarshal(data, &positive); err != nil {
		return "", nil, fmt.Errorf("%s: %.200v", path, err)
	}
	accuracy = map[interpret.Pole]float64{}
	for negative, a := range map[bool]*Accuracy{false: &positive, true: positive.Negative} {
		if a == nil {
			continue
		}
		for _, s := range a.Scores {
			if s == nil || s.Dimension < 0 || s.Dimension >= dimensions || !(s.Matched >= 0 && s.Matched <= 1) {
				return "", nil, fmt.Errorf("%s: no word intrusion accuracy of %d dimensions", path, dimensions)
			}
			accuracy[interpret.Pole{Dimension: s.Dimension, Negative: negative}] = s.Matched
		}
	}
	return positive.Reference, accuracy, nil
}
