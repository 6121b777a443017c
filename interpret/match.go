package interpret

import (
	"context"
	"math"
	"runtime"
)

// A Match is the dimension of another model that is most like one.
type Match struct {
	Dimension int     `json:"dimension"` // −1 if no word is in both
	Cosine    float64 `json:"cosine"`    // of the two dimensions' atoms, or values over the words of both; negative if they point opposite ways
}

// closer reports whether m is a better match than other. Of equal ones the lower dimension
// is.
func (m Match) closer(other Match) bool {
	a, b := math.Abs(m.Cosine), math.Abs(other.Cosine)
	return a > b || a == b && m.Dimension < other.Dimension
}

// Matches says which dimensions of two models are alike.
type Matches struct {
	Words int     `json:"words"` // that the dimensions were compared over
	Atoms bool    `json:"atoms"` // their atoms were compared instead, one to one
	First []Match `json:"first"` // of each dimension of the first model: the best in the second
	Other []Match `json:"other"` // of each dimension of the second model: the best in the first
}

// MatchDimensions compares each dimension of a with each of b by the cosine of their
// values over the words that both have as they stand: the first ones of a, at most as many
// as most says. The best match has the largest absolute cosine.
func MatchDimensions(a, b *Index, most int) Matches {
	const none = -1
	rowOf := make([]int32, a.Codes.Rows) // of a's words in b
	m := Matches{First: make([]Match, a.Codes.Cols), Other: make([]Match, b.Codes.Cols)}
	squares := make([]float64, b.Codes.Cols)
	for i, w := range a.Codes.Words {
		rowOf[i] = none
		row, ok := b.rowOf[w]
		if !ok || m.Words == most || int(a.rowOf[w]) != i {
			continue
		}
		rowOf[i] = row
		m.Words++
		columns, values := b.Codes.Row(int(row))
		for j, k := range columns {
			squares[k] += float64(values[j]) * float64(values[j])
		}
	}
	for k := range m.Other {
		m.Other[k].Dimension = none
	}
	parts := min(runtime.GOMAXPROCS(0), a.Codes.Cols)
	best := make([][]Match, parts) // of b's dimensions, among a part of a's
	parallel(context.Background(), parts, func(p int) {
		best[p] = append([]Match(nil), m.Other...)
		products := make([]float64, b.Codes.Cols)
		for k := p; k < a.Codes.Cols; k += parts {
			clear(products)
			own := 0.0
			rows, values := a.Dimension(k)
			for j, i := range rows {
				if rowOf[i] == none {
					continue
				}
				v := float64(values[j])
				own += v * v
				columns, others := b.Codes.Row(int(rowOf[i]))
				for l, other := range columns {
					products[other] += v * float64(others[l])
				}
			}
			m.First[k] = Match{Dimension: none}
			for l, product := range products {
				if product == 0 {
					continue
				}
				cosine := product / math.Sqrt(own*squares[l])
				if found := (Match{l, cosine}); m.First[k].Dimension == none || found.closer(m.First[k]) {
					m.First[k] = found
				}
				if found := (Match{k, cosine}); best[p][l].Dimension == none || found.closer(best[p][l]) {
					best[p][l] = found
				}
			}
		}
	})
	for _, part := range best {
		for l, found := range part {
			if found.Dimension != none && (m.Other[l].Dimension == none || found.closer(m.Other[l])) {
				m.Other[l] = found
			}
		}
	}
	return m
}
