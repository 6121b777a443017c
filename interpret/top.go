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

// Entry is a word's value in a dimension.
type Entry struct {
	Row   int // of the word
	Value float32
}

// TopWords returns for each dimension the n words, or fewer, with the largest
// positive values, largest first and in row order where they are equal.
func TopWords(codes *vectors.Sparse, n int) [][]Entry {
	top := make([][]Entry, codes.Cols)
	if n <= 0 {
		return top
	}
	for i := range codes.Rows {
		index, value := codes.Row(i)
		for j, k := range index {
			if v := value[j]; v > 0 && (len(top[k]) < n || v > top[k][n-1].Value) {
				top[k] = insert(top[k], Entry{i, v}, n)
			}
		}
	}
	return top
}

// insert keeps the n largest entries in order.
func insert(top []Entry, e Entry, n int) []Entry {
	at, _ := slices.BinarySearchFunc(top, e, func(old, e Entry) int {
		if old.Value >= e.Value {
			return -1
		}
		return 1
	})
	top = slices.Insert(top, at, e)
	return top[:min(n, len(top))]
}

// Strongest returns the dimensions in the order of what their top words, of
// TopWords with n, add up to. The first ones have words that stand for them.
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
