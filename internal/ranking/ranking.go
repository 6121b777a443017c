// Package ranking keeps the largest of many scores:
//
//	best := ranking.Ranking{N: 2}
//	for i, score := range []float64{0.3, 0.9, 0.5} {
//		best.Add(ranking.Item{Index: i, Score: score})
//	}
//	best.Items() // {1 0.9} {2 0.5}
package ranking

import (
	"cmp"
	"slices"
)

// An Item is the index of a row, or of anything else, with its score.
type Item struct {
	Index int
	Score float64
}

func compare(a, b Item) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Index, b.Index))
}

// A Ranking keeps the N added items with the largest scores. Ties go to the smaller index.
type Ranking struct {
	N int

	items []Item
	full  bool // items[:N] are sorted, and items[N-1] ranks last among them
}

// Add adds an item. It takes O(log N) time on average, because it sorts once per N items.
func (r *Ranking) Add(i Item) {
	if r.N <= 0 || r.full && (i.Score < r.items[r.N-1].Score || compare(i, r.items[r.N-1]) >= 0) {
		return
	}
	r.items = append(r.items, i)
	if len(r.items)/2 == r.N {
		r.Items()
		r.full = true
	}
}

// Items returns the kept items in decreasing order of scores; equal scores are in the order of indices. The slice is
// valid until the next call of Add.
func (r *Ranking) Items() []Item {
	slices.SortFunc(r.items, compare)
	r.items = r.items[:min(max(r.N, 0), len(r.items))]
	return r.items
}
