package explore

import (
	"context"
	"math"
	"slices"
	"sync"

	"overcomplete/internal/parallel"
	"overcomplete/interpret"
)

// comparedWords is the number of words over which the dimensions of two models are compared. They are the first
// words of the first model that the second also has. In most files the first words are the most frequent.
const comparedWords = 20_000

// matches holds the best matches of the dimensions of two models.
type matches struct {
	Words int               `json:"words"` // number of words of the comparison
	First []interpret.Match `json:"first"` // of each dimension of the first model, in the second
	Other []interpret.Match `json:"other"` // of each dimension of the second model, in the first
}

// compareWith adds the second model. It computes the matches in the background.
func (x *Explorer) compareWith(other *Explorer) {
	x.summary.Other = &otherModel{other.summary.Name, otherPath[1:] + "/"}
	other.summary.Other = &otherModel{x.summary.Name, "../"}
	x.matches = sync.OnceValue(func() matches { return matchValues(x.index, other.index, comparedWords) })
	other.matches = func() matches {
		m := x.matches()
		return matches{m.Words, m.Other, m.First}
	}
	go x.matches()
}

// matchValues compares each dimension of a with each dimension of b, by the cosine of their values over the first
// n words of a that b also has. The best match has the largest absolute cosine.
func matchValues(a, b *interpret.Index, n int) matches {
	const none = -1
	rowOf := make([]int, a.Codes.Rows) // rows in b of the words of a
	m := matches{
		First: slices.Repeat([]interpret.Match{{Dimension: none}}, a.Codes.Cols),
		Other: slices.Repeat([]interpret.Match{{Dimension: none}}, b.Codes.Cols),
	}
	squares := make([]float64, b.Codes.Cols)
	for i, w := range a.Codes.Words {
		rowOf[i] = none
		first, _ := a.Row(w)
		row, ok := b.Row(w)
		if !ok || b.Codes.Words[row] != w || m.Words == n || first != i {
			continue
		}
		rowOf[i] = row
		m.Words++
		code := b.Code(row)
		for j, k := range code.Index {
			squares[k] += float64(code.Value[j]) * float64(code.Value[j])
		}
	}
	var merging sync.Mutex
	parallel.Each(context.Background(), a.Codes.Cols, func(k int) {
		products := make([]float64, b.Codes.Cols)
		own := 0.0
		rows, values := a.Dimension(k)
		for j, i := range rows {
			if rowOf[i] == none {
				continue
			}
			v := float64(values[j])
			own += v * v
			code := b.Code(rowOf[i])
			for l, other := range code.Index {
				products[other] += v * float64(code.Value[l])
			}
		}
		merging.Lock()
		defer merging.Unlock()
		for l, product := range products {
			if product != 0 {
				cosine := product / math.Sqrt(own*squares[l])
				improve(&m.First[k], interpret.Match{Dimension: l, Cosine: cosine})
				improve(&m.Other[l], interpret.Match{Dimension: k, Cosine: cosine})
			}
		}
	})
	return m
}

// improve replaces a match by a better one. A tie goes to the lower dimension.
func improve(best *interpret.Match, m interpret.Match) {
	a, b := math.Abs(m.Cosine), math.Abs(best.Cosine)
	if best.Dimension < 0 || a > b || a == b && m.Dimension < best.Dimension {
		*best = m
	}
}
