package interpret

import "overcomplete/internal/ranking"

// A knownRanking ranks rows by score. Known rows with at least half of the largest score precede all other rows; see
// [Index.Known].
type knownRanking struct {
	known      int
	all, first ranking.Ranking
}

func (x *Index) newRanking(n int) *knownRanking {
	return &knownRanking{x.Known, ranking.Ranking{N: n}, ranking.Ranking{N: n}}
}

func (r *knownRanking) add(row int, score float64) {
	item := ranking.Item{Index: row, Score: score}
	r.all.Add(item)
	if row < r.known {
		r.first.Add(item)
	}
}

// merge adds the rows of another ranking.
func (r *knownRanking) merge(other *knownRanking) {
	for _, i := range other.all.Items() {
		r.all.Add(i)
	}
	for _, i := range other.first.Items() {
		r.first.Add(i)
	}
}

// sorted returns the known rows with at least half of the largest score, and then all other rows.
func (r *knownRanking) sorted() []ranking.Item {
	all := r.all.Items()
	precedes := func(i ranking.Item) bool { return i.Index < r.known && 2*i.Score >= all[0].Score }
	list := make([]ranking.Item, 0, len(all))
	for _, i := range r.first.Items() {
		if precedes(i) {
			list = append(list, i)
		}
	}
	for _, i := range all {
		if len(list) < len(all) && !precedes(i) {
			list = append(list, i)
		}
	}
	return list
}
