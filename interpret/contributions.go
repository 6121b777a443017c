package interpret

import (
	"cmp"
	"math"
	"slices"
)

// A Contribution is the part that a dimension has in a number, which is the sum of all
// dimensions' parts.
type Contribution struct {
	Dimension int       `json:"dimension"`
	Part      float64   `json:"part"`
	Values    []float64 `json:"values"` // of each word's code, divided by its norm
}

// A Comparison says why words are alike, and why not. Both lists have the largest absolute
// parts first.
type Comparison struct {
	Cosine float64        `json:"cosine"` // the mean over all pairs of words
	Shared []Contribution `json:"shared"` // parts of Cosine
	Apart  []Contribution `json:"apart"`  // parts of 1 − Cosine, none negative
}

// Compare compares the words of two rows or more. With u and v for the codes of a pair,
// divided by their norms, it adds up
//
//	cosine = Σ_k u_k v_k    and    1 − cosine = Σ_k (u_k − v_k)²/2
//
// dimension by dimension, and takes the mean over the pairs. A code that is all zeros has
// the cosine 0 with every other.
func (x *Index) Compare(rows []int) Comparison {
	values := make(map[int][]float64)
	for w, row := range rows {
		index, value := x.Codes.Row(row)
		for j, k := range index {
			if values[int(k)] == nil {
				values[int(k)] = make([]float64, len(rows))
			}
			values[int(k)][w] = float64(value[j]) / x.norms[row]
		}
	}
	c := Comparison{Shared: []Contribution{}, Apart: []Contribution{}}
	pairs := float64(len(rows) * (len(rows) - 1) / 2)
	for k, v := range values {
		shared, apart := 0.0, 0.0
		for i, a := range v {
			for _, b := range v[:i] {
				shared += a * b
				apart += (a - b) * (a - b) / 2
			}
		}
		if shared != 0 {
			c.Shared = append(c.Shared, Contribution{k, shared / pairs, v})
		}
		if apart != 0 {
			c.Apart = append(c.Apart, Contribution{k, apart / pairs, v})
		}
	}
	byPart(c.Shared)
	byPart(c.Apart)
	for _, s := range c.Shared {
		c.Cosine += s.Part
	}
	return c
}

func byPart(contributions []Contribution) {
	slices.SortFunc(contributions, func(a, b Contribution) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Part), math.Abs(a.Part)), cmp.Compare(a.Dimension, b.Dimension))
	})
}

// Combine returns the code Σ w·a/‖a‖ over the terms of a question, as its nonzero values
// and their columns, which increase, less the dimensions that it switches off: each word counts the
// same, however many dimensions it has.
func (x *Index) Combine(q Question) (index []int32, value []float32) {
	sum := make([]float64, x.Codes.Cols)
	for _, t := range q.Terms {
		columns, values := x.Codes.Row(t.Row)
		for j, k := range columns {
			sum[k] += t.Weight * float64(values[j]) / x.norms[t.Row]
		}
	}
	for _, k := range q.Without {
		sum[k] = 0
	}
	for k, v := range sum {
		if v := float32(v); v != 0 {
			index, value = append(index, int32(k)), append(value, v)
		}
	}
	return index, value
}

// Unit returns the value of a dimension in the code of a row, divided by the code's norm.
func (x *Index) Unit(row, dimension int) float64 {
	index, value := x.Codes.Row(row)
	if j, ok := slices.BinarySearch(index, int32(dimension)); ok {
		return float64(value[j]) / x.norms[row]
	}
	return 0
}

// Contributions returns the parts of the cosine of a code, given by its nonzero values and
// their columns, which increase, and that of a row, the largest absolute part first. Their
// Values are those two codes', divided by their norms.
func (x *Index) Contributions(index []int32, value []float32, row int) []Contribution {
	own := norm(value)
	parts := []Contribution{}
	columns, values := x.Codes.Row(row)
	for j, k := range columns {
		if i, ok := slices.BinarySearch(index, k); ok {
			a, b := float64(value[i])/own, float64(values[j])/x.norms[row]
			parts = append(parts, Contribution{int(k), a * b, []float64{a, b}})
		}
	}
	byPart(parts)
	return parts
}

func norm(value []float32) float64 {
	sum := 0.0
	for _, v := range value {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}
