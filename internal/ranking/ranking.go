// Package ranking keeps the largest of many scores.
package ranking

import (
	"cmp"
	"slices"
)

// An Item is a row, or another thing with an index, and its score.
type Item struct {
	Index int
	Score float64
}

func compare(a, b Item) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Index, b.Index))
}

// A Ranking keeps the N items with the largest scores among those added.
type Ranking struct {
	N int

	items []Item
	full  bool // items[N-1] is the last of N in order
}

// Add takes O(log N) time on average: it sorts once per N items.
func (r *Ranking) Add(i Item) {
	if r.N <= 0 || r.full && compare(i, r.items[r.N-1]) >= 0 {
		return
	}
	r.items = append(r.items, i)
	if len(r.items)/2 == r.N {
		r.Items()
		r.full = true
	}
}

// Items returns the items that are kept, the largest score first and equal scores by index.
func (r *Ranking) Items() []Item {
	slices.SortFunc(r.items, compare)
	r.items = r.items[:min(max(r.N, 0), len(r.items))]
	return r.items
}
