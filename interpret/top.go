// Package interpret shows what dimensions mean.
//
// A dimension of sparse codes is read through the words that have its largest
// values (paper §4.1).
package interpret

import (
	"cmp"
	"slices"

	"overcomplete/vectors"
)

// ByVariance returns all dimensions by decreasing variance of their values over
// the words, as the paper orders them for its intrusion test (§4.1).
func ByVariance(codes *vectors.Sparse) []int {
	sum, squares := make([]float64, codes.Cols), make([]float64, codes.Cols)
	for i, k := range codes.Index {
		v := float64(codes.Value[i])
		sum[k] += v
		squares[k] += v * v
	}
	n := float64(codes.Rows)
	variance := func(k int) float64 { return squares[k]/n - (sum[k]/n)*(sum[k]/n) }
	dimensions := make([]int, codes.Cols)
	for k := range dimensions {
		dimensions[k] = k
	}
	slices.SortStableFunc(dimensions, func(a, b int) int { return cmp.Compare(variance(b), variance(a)) })
	return dimensions
}

// TopWords returns, for each of the dimensions, the rows of at most n words with
// its largest positive values, largest first.
func TopWords(codes *vectors.Sparse, dimensions []int, n int) [][]int {
	type entry struct {
		row   int
		value float32
	}
	wanted := make(map[int32][]entry, len(dimensions))
	for _, k := range dimensions {
		wanted[int32(k)] = nil
	}
	for i := range codes.Rows {
		index, value := codes.Row(i)
		for j, k := range index {
			if entries, ok := wanted[k]; ok && value[j] > 0 {
				wanted[k] = append(entries, entry{i, value[j]})
			}
		}
	}
	top := make([][]int, len(dimensions))
	for d, k := range dimensions {
		entries := wanted[int32(k)]
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(b.value, a.value) })
		for _, e := range entries[:min(n, len(entries))] {
			top[d] = append(top[d], e.row)
		}
	}
	return top
}
