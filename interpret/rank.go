package interpret

import (
	"cmp"
	"slices"
)

// A candidate is a row for a list whose elements have the largest sizes.
type candidate struct {
	row   int
	value float32
	size  float64
}

func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.row, b.row))
}

// A ranking keeps the n largest of the candidates that it is given.
type ranking struct {
	n    int
	kept []candidate
	full bool // kept[n-1] is the smallest of n in order
}

// add takes O(log n) time on average: it sorts once per n candidates.
func (r *ranking) add(c candidate) {
	if r.n <= 0 || r.full && compareCandidates(c, r.kept[r.n-1]) >= 0 {
		return
	}
	r.kept = append(r.kept, c)
	if len(r.kept)/2 == r.n {
		r.sorted()
		r.full = true
	}
}

// sorted returns the candidates that are kept, the largest first and equal ones in row order.
func (r *ranking) sorted() []candidate {
	slices.SortFunc(r.kept, compareCandidates)
	r.kept = r.kept[:min(max(r.n, 0), len(r.kept))]
	return r.kept
}

// A knownRanking is a ranking that puts known rows before others, see [Index.Known].
type knownRanking struct {
	known      int
	all, first ranking
}

func (x *Index) newRanking(n int) *knownRanking {
	return &knownRanking{x.Known, ranking{n: n}, ranking{n: n}}
}

func (r *knownRanking) add(c candidate) {
	r.all.add(c)
	if c.row < r.known {
		r.first.add(c)
	}
}

// merge adds the candidates of another ranking.
func (r *knownRanking) merge(other *knownRanking) {
	for _, c := range other.all.kept {
		r.all.add(c)
	}
	for _, c := range other.first.kept {
		r.first.add(c)
	}
}

// sorted returns the known rows of at least half of the largest size, and then the others.
func (r *knownRanking) sorted() []candidate {
	all := r.all.sorted()
	precedes := func(c candidate) bool { return c.row < r.known && 2*c.size >= all[0].size }
	list := make([]candidate, 0, len(all))
	for _, c := range r.first.sorted() {
		if precedes(c) {
			list = append(list, c)
		}
	}
	for _, c := range all {
		if len(list) < len(all) && !precedes(c) {
			list = append(list, c)
		}
	}
	return list
}
