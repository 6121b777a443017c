package intrusion

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sort"

	"overcomplete/internal/parallel"
	"overcomplete/interpret"
)

// An instance is a question of five words in random order: four words with large values in a dimension
// and an intruder with a small value.
type instance struct {
	rows     [5]int
	intruder int // index in rows
}

const (
	topWords   = len(instance{}.rows) - 1
	candidates = 20 // number of candidates for a matched intruder: ten more frequent and ten less frequent words
)

// A sampler draws questions about the positive poles of dimensions as the paper does (§4.1). An
// intruder is in the bottom half of a dimension and in the top tenth of another dimension.
//
// Ranks are not unique, because most values of sparse codes are 0. The bottom half is all words whose
// value is at most the median. A top tenth excludes the bottom half and words with the value 0.
type sampler struct {
	x        *interpret.Index
	median   []float32 // by dimension: the largest value of the bottom half
	eligible []int32   // rows in the top tenth of any dimension, in increasing order
}

func newSampler(x *interpret.Index) *sampler {
	n := x.Codes.Rows
	s := &sampler{x: x, median: make([]float32, x.Codes.Cols)}
	tenth := make([]float32, x.Codes.Cols)
	parallel.Each(context.Background(), len(tenth), func(k int) {
		values := x.Values(k)
		sorted := slices.Sorted(slices.Values(values))
		s.median[k], tenth[k] = ranked(sorted, n, n/2), ranked(sorted, n, max(n/10, 1)-1)
	})
	for i := range n {
		index, value := x.Codes.Row(i)
		for j, k := range index {
			if value[j] > s.median[k] && value[j] >= tenth[k] {
				s.eligible = append(s.eligible, int32(i))
				break
			}
		}
	}
	return s
}

// ranked returns the value with the given rank among n values; the largest has rank 0. The argument sorted holds the
// nonzero values in increasing order.
func ranked(sorted []float32, n, rank int) float32 {
	negative, _ := slices.BinarySearch(sorted, 0)
	switch positive := len(sorted) - negative; {
	case rank < positive:
		return sorted[len(sorted)-1-rank]
	case rank < n-negative:
		return 0
	}
	return sorted[n-1-rank]
}

// live returns the dimensions that have four words with positive values and an intruder, in decreasing
// order of variance.
func (s *sampler) live() []int {
	isLive := make([]bool, s.x.Codes.Cols)
	parallel.Each(context.Background(), len(isLive), func(k int) { isLive[k] = s.pool(k) != nil })
	var live []int
	for k, ok := range isLive {
		if ok {
			live = append(live, k)
		}
	}
	variances := s.x.Variances()
	slices.SortStableFunc(live, func(a, b int) int { return cmp.Compare(variances[b], variances[a]) })
	return live
}

// A pool holds the rows of the words in the questions about a dimension.
type pool struct {
	top       []int
	intruders []int32 // in increasing order
}

// pool returns the top words and intruders of a dimension, or nil if it isn't live.
func (s *sampler) pool(dimension int) *pool {
	p := new(pool)
	for _, e := range s.x.Top(interpret.Pole{Dimension: dimension}, topWords) {
		p.top = append(p.top, e.Row)
	}
	rows, values := s.x.Dimension(dimension)
	for _, i := range s.eligible {
		for len(rows) > 0 && rows[0] < i {
			rows, values = rows[1:], values[1:]
		}
		v := float32(0)
		if len(rows) > 0 && rows[0] == i {
			v = values[0]
		}
		// If more than half of the words share the largest value, the bottom half includes the top words.
		if v <= s.median[dimension] && !(v > 0 && slices.Contains(p.top, int(i))) {
			p.intruders = append(p.intruders, i)
		}
	}
	if len(p.top) < topWords || len(p.intruders) == 0 {
		return nil
	}
	return p
}

// draw returns a question with any of the intruders.
func (p *pool) draw(rng *rand.Rand) instance { return p.instance(p.intruders, rng) }

// drawMatched returns a question whose intruder is about as frequent as one of the top words, if
// rows are in the order of frequency.
func (p *pool) drawMatched(rng *rand.Rand) instance {
	matched := p.top[rng.IntN(topWords)]
	at := sort.Search(len(p.intruders), func(i int) bool { return int(p.intruders[i]) > matched })
	return p.instance(p.intruders[max(at-candidates/2, 0):min(at+candidates/2, len(p.intruders))], rng)
}

func (p *pool) instance(intruders []int32, rng *rand.Rand) (it instance) {
	order := rng.Perm(len(it.rows))
	for j, row := range p.top {
		it.rows[order[j]] = row
	}
	it.intruder = order[topWords]
	it.rows[it.intruder] = int(intruders[rng.IntN(len(intruders))])
	return it
}
