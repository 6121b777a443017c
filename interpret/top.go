// Package interpret shows what dimensions mean (paper §4, and its table of word
// clusters in §2.2).
//
// A dimension means what the words with its largest values have in common
// ([Index.Top]). A word is explained by its strongest dimensions ([Index.Explain]).
// [Intrusion] tests whether dimensions mean something. The test is taken by people, for
// which see package judge, or by other vectors of the same words. [HeatMap] and
// [Common] compare groups of words, and [KMeans] makes clusters to compare dimensions
// with.
//
// This prints the dimensions of a word with their top words, and its nearest words:
//
//	m, err := model.Open("godoc.model")
//	x := interpret.NewIndex(m.Codes)
//	row, ok := x.Row("mutex")
//	columns, values := m.Codes.Row(row)
//	for _, d := range x.Explain(columns, values, 5, 8) {
//		fmt.Println(d.Dimension, d.Weight, d.Words)
//	}
//	for _, n := range x.Nearest(row, 10) {
//		fmt.Println(m.Codes.Words[n.Row], n.Cosine)
//	}
//
// Dense vectors can be looked at in the same way: see [FromDense].
package interpret

import (
	"cmp"
	"slices"

	"overcomplete/vectors"
)

// Entry is a word's value in a dimension.
type Entry struct {
	Row   int // of the word
	Value float32
}

// TopWords returns, for each of the K dimensions of codes, the n words with the largest
// positive values, largest first. Equal values are in row order. A dimension with fewer
// positive values has fewer words.
func TopWords(codes *vectors.Sparse, n int) [][]Entry {
	best := make([]best[Entry], codes.Cols)
	for k := range best {
		best[k].n, best[k].compare = n, compareEntries
	}
	for i := range codes.Rows {
		index, value := codes.Row(i)
		for j, k := range index {
			if v := value[j]; v > 0 {
				best[k].add(Entry{i, v})
			}
		}
	}
	top := make([][]Entry, codes.Cols)
	for k := range top {
		top[k] = best[k].sorted()
	}
	return top
}

// compareEntries orders entries by decreasing value, and by row where that is
// equal.
func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Row, b.Row))
}

// Strongest returns the dimensions in decreasing order of the sum of their top words'
// values. The argument is the result of [TopWords].
func Strongest(top [][]Entry) []int {
	strength := make([]float64, len(top))
	dimensions := make([]int, len(top))
	for k, entries := range top {
		dimensions[k] = k
		for _, e := range entries {
			strength[k] += float64(e.Value)
		}
	}
	slices.SortStableFunc(dimensions, func(a, b int) int { return cmp.Compare(strength[b], strength[a]) })
	return dimensions
}

// Common returns how many dimensions all of the given rows of codes use: their values
// there are not zero.
func Common(codes *vectors.Sparse, rows []int) int {
	uses := make(map[int32]int)
	for _, i := range rows {
		index, _ := codes.Row(i)
		for _, k := range index {
			uses[k]++
		}
	}
	common := 0
	for _, n := range uses {
		if n == len(rows) {
			common++
		}
	}
	return common
}
