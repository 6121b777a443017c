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

// An instance is a question: four words with large values in a dimension and an intruder with a
// small one, in random order.
type instance struct {
	rows     [5]int // of the words
	intruder int    // its index in rows
}

const (
	topWords   = len(instance{}.rows) - 1
	quarters   = 4
	candidates = 20 // intruders of a matched question: ten on either side in the order of frequency
)

// questions draws the questions about the positive poles of dimensions as the paper does (§4.1): an
// intruder is a word of the bottom half of a dimension and of the top tenth of another one.
//
// Most words have the value 0 in sparse codes, so that ranks are not unique. The bottom half are
// all words whose value is not above the median; a top tenth has no words with the value 0 or of the
// bottom half.
type questions struct {
	x        *interpret.Index
	median   []float32 // of each dimension: the largest value of its bottom half
	eligible []int32   // words of some top tenth, in row order
}

func newQuestions(x *interpret.Index) *questions {
	n := x.Codes.Rows
	q := &questions{x: x, median: make([]float32, x.Codes.Cols)}
	tenth := make([]float32, x.Codes.Cols)
	parallel.Each(context.Background(), len(tenth), func(k int) {
		_, values := x.Dimension(k)
		sorted := slices.Sorted(slices.Values(values))
		q.median[k], tenth[k] = ranked(sorted, n, n/2), ranked(sorted, n, max(n/10, 1)-1)
	})
	for i := range n {
		index, value := x.Codes.Row(i)
		for j, k := range index {
			if value[j] > q.median[k] && value[j] >= tenth[k] {
				q.eligible = append(q.eligible, int32(i))
				break
			}
		}
	}
	return q
}

// ranked returns the value of a rank among n values, from 0 for the largest. sorted has those that
// are not 0, increasing.
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

// live returns the dimensions with four words of positive value and an intruder, in decreasing order
// of variance.
func (q *questions) live() []int {
	isLive := make([]bool, q.x.Codes.Cols)
	parallel.Each(context.Background(), len(isLive), func(k int) { isLive[k] = q.pool(k) != nil })
	var live []int
	for k, ok := range isLive {
		if ok {
			live = append(live, k)
		}
	}
	variances := q.x.Variances()
	slices.SortStableFunc(live, func(a, b int) int { return cmp.Compare(variances[b], variances[a]) })
	return live
}

// A pool has the words of the questions about a dimension.
type pool struct {
	top       []int   // rows
	intruders []int32 // rows, in their order
}

// pool returns the top words and intruders of a dimension, or nil if it isn't live.
func (q *questions) pool(dimension int) *pool {
	p := new(pool)
	for _, e := range q.x.Top(interpret.Pole{Dimension: dimension}, topWords) {
		p.top = append(p.top, e.Row)
	}
	rows, values := q.x.Dimension(dimension)
	for _, i := range q.eligible {
		for len(rows) > 0 && rows[0] < i {
			rows, values = rows[1:], values[1:]
		}
		v := float32(0)
		if len(rows) > 0 && rows[0] == i {
			v = values[0]
		}
		// If more than half of the words tie for the top, the bottom half has the top words.
		if v <= q.median[dimension] && !(v > 0 && slices.Contains(p.top, int(i))) {
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
	near := p.top[rng.IntN(topWords)]
	at := sort.Search(len(p.intruders), func(i int) bool { return int(p.intruders[i]) > near })
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

// A quarter has the words of a quarter of the positive values of a dimension, and the words with the
// value 0.
type quarter struct {
	words    []int   // rows
	inactive []int32 // rows, in their order
}

// quarters returns the quarters of a dimension, the largest values first. It returns none if there
// are too few words for questions about each.
func (q *questions) quarters(dimension int) []quarter {
	rows, values := q.x.Dimension(dimension)
	active := make([]float32, q.x.Codes.Rows)
	var words []int
	for j, i := range rows {
		active[i] = values[j]
		if values[j] > 0 {
			words = append(words, int(i))
		}
	}
	var inactive []int32
	for i, v := range active {
		if v == 0 {
			inactive = append(inactive, int32(i))
		}
	}
	if len(words) < quarters*topWords || len(inactive) < candidates {
		return nil
	}
	slices.SortStableFunc(words, func(a, b int) int { return cmp.Compare(active[b], active[a]) })
	all := make([]quarter, quarters)
	for n := range all {
		all[n] = quarter{words[n*len(words)/quarters : (n+1)*len(words)/quarters], inactive}
	}
	return all
}

// draw returns a question about four random words and an inactive intruder that is about as
// frequent as one of them. It changes the order of words.
func (q *quarter) draw(rng *rand.Rand) instance {
	for j := range topWords {
		other := j + rng.IntN(len(q.words)-j)
		q.words[j], q.words[other] = q.words[other], q.words[j]
	}
	p := pool{q.words[:topWords], q.inactive}
	return p.drawMatched(rng)
}
