package encode

import (
	"context"
	"math"
	"slices"

	"overcomplete/internal/cluster"
	"overcomplete/model"
	"overcomplete/vectors"
)

// rowThemes is the most themes of a row.
const rowThemes = 8

// A themer encodes rows by the themes of a dictionary: a code has the largest positive cosines of a row, less
// the mean, with the themes. It is empty for a blank text, and for a row no nearer to a theme than a random
// direction is to the nearest of as many random ones, about √(2·ln M/L).
type themer struct {
	dictionary *model.Dictionary
	chance     float32
	searcher   *cluster.Searcher
	rows       []float32 // of norm 1, n×L
	index      []int32   // n×rowThemes
	cosine     []float32
}

// newThemer returns nil if the dictionary has no themes.
func newThemer(d *model.Dictionary) (*themer, error) {
	if d == nil || d.Themes == nil {
		return nil, nil
	}
	const most = 0.5 // for short vectors
	themes := float64(len(d.Themes) / d.Dim)
	s, err := cluster.NewSearcher(d.Themes, d.Dim)
	return &themer{dictionary: d, chance: float32(min(most, math.Sqrt(2*math.Log(themes)/float64(d.Dim)))), searcher: s}, err
}

// encode returns the codes of x.
func (t *themer) encode(ctx context.Context, x *vectors.Dense) (*vectors.CSR, error) {
	t.rows = append(t.rows[:0], x.Data...)
	t.dictionary.Center(t.rows, t.rows)
	cluster.Normalize(t.rows, x.Dim)
	n := rowThemes * x.Len()
	t.index, t.cosine = slices.Grow(t.index[:0], n)[:n], slices.Grow(t.cosine[:0], n)[:n]
	if err := t.searcher.Nearest(ctx, t.rows, rowThemes, t.index, t.cosine); err != nil {
		return nil, err
	}
	codes := &vectors.CSR{Cols: len(t.dictionary.Themes) / x.Dim}
	for i := range x.Len() {
		index, cosine := t.index[i*rowThemes:][:rowThemes], t.cosine[i*rowThemes:][:rowThemes]
		if x.Texts.Blank(i) || !(cosine[0] > t.chance) {
			codes.AppendRow(nil, nil)
			continue
		}
		last := len(cosine)
		for index[last-1] < 0 || !(cosine[last-1] > 0) {
			last--
		}
		codes.AppendRow(sorted(index[:last], cosine[:last]))
	}
	return codes, nil
}

// sorted sorts a row by columns, in place.
func sorted(index []int32, value []float32) ([]int32, []float32) {
	for i := range index {
		for j := i; j > 0 && index[j] < index[j-1]; j-- {
			index[j], index[j-1] = index[j-1], index[j]
			value[j], value[j-1] = value[j-1], value[j]
		}
	}
	return index, value
}
