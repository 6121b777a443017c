package interpret

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/parallel"
	"overcomplete/vectors"
)

const (
	intrudersDrawn = 10   // for each dimension, of each kind
	quarterDrawn   = 5    // for each quarter of a dimension
	resamples      = 2000 // of a bootstrap
)

// OddOneOut is a word intrusion test without people: other dense vectors of the same
// words, reference, V×M with row i for word i, are asked instead. Their answer to a
// question is the word whose mean cosine with the other four is the smallest. Guessing
// would be right in one of five. The cosines are those of the reference less its mean: what
// all vectors have in common tells words apart by little but their frequency.
//
// About each live dimension it asks ten questions with any intruder and ten with matched
// ones. Matched takes rows to be in the order of the words' frequency: each intruder is
// one of the twenty nearest in rank to one of the top words.
//
// Top words are a small part of those that have a dimension. So it asks five questions
// about each quarter of a dimension's positive values as well: four words drawn from that
// quarter, and an intruder that has the value 0 in the dimension, matched to one of the
// four. A dimension with fewer than sixteen positive words, or fewer than twenty with 0,
// has no quarters; nor have dense vectors.
//
// The intervals are percentiles of a bootstrap over the dimensions, with random numbers
// from seed. If ctx is cancelled, its error is returned.
func (t *Intrusion) OddOneOut(ctx context.Context, reference *vectors.Dense, seed uint64) (Coherence, error) {
	judge := newJudge(reference)
	scores := make([]*Score, t.x.Codes.Cols)
	random := make([]*rand.Rand, len(scores)) // of each dimension, for any order of them
	seeds := rand.NewPCG(seed, 0)
	for k := range random {
		random[k] = rand.New(rand.NewPCG(seeds.Uint64(), seeds.Uint64()))
	}
	err := parallel.Each(ctx, len(scores), func(k int) {
		p := t.pool(k)
		if p == nil {
			return
		}
		right := func(questions int, draw func(*rand.Rand) Instance) float64 {
			n := 0
			for range questions {
				if it := draw(random[k]); judge.oddOneOut(it.Rows) == it.Intruder {
					n++
				}
			}
			return float64(n) / float64(questions)
		}
		s := &Score{Dimension: k, Any: right(intrudersDrawn, p.draw), Matched: right(intrudersDrawn, p.drawMatched)}
		for _, q := range t.quarters(k) {
			s.Quarters = append(s.Quarters, right(quarterDrawn, q.draw))
		}
		scores[k] = s
	})
	if err != nil {
		return Coherence{}, err
	}
	c := Coherence{Words: reference.Len(), Seed: seed}
	var anyone, matched []float64
	var quartered [quarters][]float64
	for _, s := range scores {
		if s == nil {
			continue
		}
		c.Scores = append(c.Scores, *s)
		anyone, matched = append(anyone, s.Any), append(matched, s.Matched)
		for q, share := range s.Quarters {
			quartered[q] = append(quartered[q], share)
		}
	}
	c.Dimensions, c.Any, c.Matched = len(c.Scores), bootstrap(anyone, seed), bootstrap(matched, seed)
	if c.Quartered = len(quartered[0]); c.Quartered > 0 {
		for _, shares := range quartered {
			c.Quarters = append(c.Quarters, bootstrap(shares, seed))
		}
	}
	return c, nil
}

// A judge answers questions by dense vectors less their mean.
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
		j.mean[l] /= float64(x.Len()) // the mean of equal vectors is one of them
	}
	for i := range j.norms {
		j.norms[i] = math.Sqrt(j.dot(i, i))
	}
	return j
}

// oddOneOut returns the place of the word whose cosines to the others add up to
// the least. The cosine with a zero vector is 0.
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

// dot returns the product of two rows less the mean.
func (j *judge) dot(i, k int) float64 {
	x, y := j.Row(i), j.Row(k)
	sum := 0.0
	for l, m := range j.mean {
		sum += (float64(x[l]) - m) * (float64(y[l]) - m)
	}
	return sum
}

// bootstrap returns the mean of a sample and the percentiles of the means of
// samples drawn from it, with replacement.
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

// RandomProjection returns codes that nothing was learned for, to compare learned codes
// with. It multiplies x, V×L, by a random L×K matrix of Gaussian numbers from seed. Of
// each row of the product it keeps as many values as the same row of codes, V×K, has
// nonzeros: those of the largest absolute value or, with nonnegative, the largest
// positive ones. If ctx is cancelled, its error is returned.
func RandomProjection(ctx context.Context, x *vectors.Dense, codes *vectors.CSR, nonnegative bool, seed uint64) (*vectors.Sparse, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	directions := general(x.Dim, codes.Cols, nil)
	for i := range directions.Data {
		directions.Data[i] = float32(rng.NormFloat64())
	}
	size := func(v float32) float32 {
		if nonnegative {
			return max(v, 0)
		}
		return max(v, -v)
	}
	index, value := make([][]int32, x.Len()), make([][]float32, x.Len())
	err := parallel.Each(ctx, (x.Len()+chunk-1)/chunk, func(c int) {
		lo, hi := c*chunk, min((c+1)*chunk, x.Len())
		rows := general(hi-lo, x.Dim, x.Data[lo*x.Dim:hi*x.Dim])
		products := general(hi-lo, codes.Cols, nil)
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, rows, directions, 0, products)
		sizes := make([]float32, codes.Cols)
		for i := lo; i < hi; i++ {
			product := products.Data[(i-lo)*codes.Cols : (i-lo+1)*codes.Cols]
			for k, v := range product {
				sizes[k] = size(v)
			}
			least := float32(math.Inf(1))
			if n := int(codes.Ptr[i+1] - codes.Ptr[i]); n > 0 {
				least = smallest(sizes, len(sizes)-n)
			}
			for k, v := range product {
				if s := size(v); s >= least && s > 0 {
					index[i], value[i] = append(index[i], int32(k)), append(value[i], v)
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	projected := &vectors.Sparse{Words: x.Words, Texts: x.Texts, CSR: vectors.CSR{Cols: codes.Cols, Ptr: make([]int64, 1, codes.Rows+1)}}
	for i := range index {
		projected.AppendRow(index[i], value[i])
	}
	return projected, nil
}

// chunk is the number of rows that are multiplied at a time.
const chunk = 256

// general returns a matrix of these values, or of zeros for nil.
func general(rows, cols int, data []float32) blas32.General {
	if data == nil {
		data = make([]float32, rows*cols)
	}
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}
