package main

import "math"

// count returns how often the words occur together: C[i][j] is the sum, over
// all pairs of words[i] and words[j] in a paragraph at a distance of d ≤ window,
// of window+1−d, so that near words weigh more. Words that are not in words are
// taken out first, which lets the window reach further. C is symmetric.
func count(text [][]string, words []string, window int) [][]uint32 {
	index := make(map[string]int, len(words))
	counts := make([][]uint32, len(words))
	for i, w := range words {
		index[w] = i
		counts[i] = make([]uint32, len(words))
	}
	var known []int
	for _, paragraph := range text {
		known = known[:0]
		for _, w := range paragraph {
			if i, ok := index[w]; ok {
				known = append(known, i)
			}
		}
		for at, i := range known {
			for d := 1; d <= window && d <= at; d++ {
				j := known[at-d]
				counts[i][j] += uint32(window + 1 - d)
				counts[j][i] += uint32(window + 1 - d)
			}
		}
	}
	return counts
}

// sparse is a square matrix: row i has the value value[i][p] in column
// column[i][p].
type sparse struct {
	column [][]int
	value  [][]float64
}

// ppmi returns the positive pointwise mutual information of symmetric counts C,
//
//	M[i][j] = max(0, log(C[i][j]·ΣC / (Σ_k C[i][k] · Σ_k C[k][j])))
func ppmi(counts [][]uint32) *sparse {
	sums := make([]float64, len(counts)) // of rows, and of columns: C is symmetric
	var total float64
	for i, row := range counts {
		for _, c := range row {
			sums[i] += float64(c)
		}
		total += sums[i]
	}
	m := &sparse{column: make([][]int, len(counts)), value: make([][]float64, len(counts))}
	for i, row := range counts {
		for j, c := range row {
			if c == 0 {
				continue
			}
			if pmi := math.Log(float64(c) * total / (sums[i] * sums[j])); pmi > 0 {
				m.column[i] = append(m.column[i], j)
				m.value[i] = append(m.value[i], pmi)
			}
		}
	}
	return m
}
