package interpret

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sort"

	"overcomplete/internal/parallel"
)

// An Instance is one question of a word intrusion test (paper §4.1): the four words
// with the largest values in a dimension and an intruder with a small one, in random
// order. If the dimension means something, the intruder stands out.
type Instance struct {
	Dimension int
	Rows      [5]int // the rows of the five words
	Intruder  int    // the index of the intruder in Rows
}

const topWords = len(Instance{}.Rows) - 1

// Intrusion draws word intrusion questions for the dimensions of one matrix, in the
// paper's way: words are ranked by their value in a dimension, and an intruder is a
// word of the bottom half that is in the top tenth of another dimension.
//
// In sparse codes most words have the value 0, so ranks are not unique. The bottom half
// is therefore taken to be all words whose value is not above the median, and a top
// tenth has no words with the value 0 or of the bottom half.
type Intrusion struct {
	x        *Index
	median   []float32 // of each dimension: the largest value of its bottom half
	eligible []int32   // words of some top tenth, in row order
}

// NewIntrusion prepares the questions for the dimensions of x.
func NewIntrusion(x *Index) *Intrusion {
	n := x.Codes.Rows
	t := &Intrusion{x: x, median: make([]float32, x.Codes.Cols)}
	tenth := make([]float32, x.Codes.Cols)
	parallel.Each(context.Background(), len(tenth), func(k int) {
		values := x.values(k)
		t.median[k] = ranked(values, n, n/2)
		tenth[k] = ranked(values, n, max(n/10, 1)-1)
	})
	for i := range n {
		index, value := x.Codes.Row(i)
		for j, k := range index {
			if value[j] > t.median[k] && value[j] >= tenth[k] {
				t.eligible = append(t.eligible, int32(i))
				break
			}
		}
	}
	return t
}

// ranked returns the value at a rank, from 0 for the largest, of n values, of
// which those not given are zero.
func ranked(values []float32, n, rank int) float32 {
	positive, negative := 0, 0
	for _, v := range values {
		if v > 0 {
			positive++
		} else {
			negative++
		}
	}
	switch {
	case n == 0 || rank >= positive && rank < n-negative:
		return 0
	case rank >= positive: // among the negative ones
		rank -= n - len(values)
	}
	return smallest(slices.Clone(values), len(values)-1-rank)
}

// Dimensions returns the live dimensions, in decreasing order of variance, which is
// the order in which the paper chooses dimensions. A dimension is live if at least
// four words have a positive value in it and there is an intruder for it.
func (t *Intrusion) Dimensions() []int {
	isLive := make([]bool, t.x.Codes.Cols)
	parallel.Each(context.Background(), len(isLive), func(k int) { isLive[k] = t.pool(k) != nil })
	var live []int
	for k, ok := range isLive {
		if ok {
			live = append(live, k)
		}
	}
	variances := t.x.Variances()
	slices.SortStableFunc(live, func(a, b int) int { return cmp.Compare(variances[b], variances[a]) })
	return live
}

// Draw draws a question for a live dimension. All intruders are equally likely. It
// panics if the dimension is not live.
func (t *Intrusion) Draw(dimension int, rng *rand.Rand) Instance {
	return t.pool(dimension).draw(rng)
}

// A pool is what the instances of a dimension are drawn from.
type pool struct {
	dimension int
	top       []Entry
	intruders []int32 // rows, in their order
}

// pool returns that of a dimension, nil if the dimension is not live.
func (t *Intrusion) pool(dimension int) *pool {
	p := &pool{dimension: dimension, top: t.x.Top(Pole{Dimension: dimension}, topWords)}
	if len(p.top) < topWords {
		return nil
	}
	rows, values := t.x.Dimension(dimension)
	for _, i := range t.eligible {
		for len(rows) > 0 && rows[0] < i {
			rows, values = rows[1:], values[1:]
		}
		v := float32(0)
		if len(rows) > 0 && rows[0] == i {
			v = values[0]
		}
		// Where more than half of the words tie for the top, the top words are in
		// the bottom half as well.
		if v <= t.median[dimension] && !(v > 0 && p.isTop(i)) {
			p.intruders = append(p.intruders, i)
		}
	}
	if len(p.intruders) == 0 {
		return nil
	}
	return p
}

func (p *pool) isTop(row int32) bool {
	return slices.ContainsFunc(p.top, func(e Entry) bool { return e.Row == int(row) })
}

func (p *pool) draw(rng *rand.Rand) Instance { return p.instance(p.intruders, rng) }

// drawMatched draws an instance whose intruder is about as frequent as one of the
// top words, if rows are in the order of frequency: it is one of the ten intruders on
// either side in that order, fewer at its ends.
func (p *pool) drawMatched(rng *rand.Rand) Instance {
	near := p.top[rng.IntN(topWords)].Row
	at := sort.Search(len(p.intruders), func(i int) bool { return int(p.intruders[i]) > near })
	return p.instance(p.intruders[max(at-matches/2, 0):min(at+matches/2, len(p.intruders))], rng)
}

const matches = 20

// instance returns one with one of these intruders.
func (p *pool) instance(intruders []int32, rng *rand.Rand) Instance {
	it := Instance{Dimension: p.dimension}
	order := rng.Perm(len(it.Rows))
	for j, e := range p.top {
		it.Rows[order[j]] = e.Row
	}
	it.Intruder = order[topWords]
	it.Rows[it.Intruder] = int(intruders[rng.IntN(len(intruders))])
	return it
}

// A quarter is the words of a quarter of a dimension's positive values, and those that
// have the value 0 in it.
type quarter struct {
	dimension int
	words     []Entry
	inactive  []int32 // rows, in their order
}

// quarters returns those of a dimension, the one of the largest values first. It returns
// none if one of them would have fewer words than a question takes, or if fewer words
// than are matched have the value 0.
func (t *Intrusion) quarters(dimension int) []quarter {
	rows, values := t.x.Dimension(dimension)
	var words []Entry
	inactive := make([]int32, 0, t.x.Codes.Rows-len(rows))
	next := int32(0)
	for j, i := range rows {
		for ; next < i; next++ {
			inactive = append(inactive, next)
		}
		next++
		if values[j] > 0 {
			words = append(words, Entry{int(i), values[j]})
		}
	}
	for ; int(next) < t.x.Codes.Rows; next++ {
		inactive = append(inactive, next)
	}
	if len(words) < quarters*topWords || len(inactive) < matches {
		return nil
	}
	slices.SortFunc(words, compareEntries)
	all := make([]quarter, quarters)
	for q := range all {
		all[q] = quarter{dimension, words[q*len(words)/quarters : (q+1)*len(words)/quarters], inactive}
	}
	return all
}

// draw draws four words of the quarter and an intruder that is about as frequent as one
// of them. It changes the order of the quarter's words.
func (q *quarter) draw(rng *rand.Rand) Instance {
	for j := range topWords {
		other := j + rng.IntN(len(q.words)-j)
		q.words[j], q.words[other] = q.words[other], q.words[j]
	}
	p := pool{q.dimension, q.words[:topWords], q.inactive}
	return p.drawMatched(rng)
}

func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Row, b.Row))
}
