package interpret

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"overcomplete/internal/float32s"
	"overcomplete/internal/parallel"
)

// A Code is a sparse vector of K dimensions.
type Code struct {
	Index []int32   // dimensions of the nonzeros, in increasing order
	Value []float32 // nonzeros
}

// Code returns the code of a row. It shares the memory of the index.
func (x *Index) Code(row int) Code {
	index, value := x.Codes.Row(row)
	return Code{index, value}
}

// Norm returns the Euclidean norm of a code.
func (c Code) Norm() float64 { return math.Sqrt(float32s.Squares(c.Value)) }

// Norm returns the Euclidean norm of the code of a row. It is faster than the norm of a [Code].
func (x *Index) Norm(row int) float64 { return x.norms[row] }

// At returns the value of a dimension.
func (c Code) At(dimension int) float32 {
	if j, found := slices.BinarySearch(c.Index, int32(dimension)); found {
		return c.Value[j]
	}
	return 0
}

// A Weight is the value of a code in a dimension.
type Weight struct {
	Dimension int     `json:"dimension"`
	Value     float32 `json:"value"`
}

// Pole returns the pole of w.Dimension that has the same sign as w.Value.
func (w Weight) Pole() Pole { return Pole{w.Dimension, w.Value < 0} }

// Weights returns the nonzeros of a code in decreasing order of absolute value.
func (c Code) Weights() []Weight {
	weights := make([]Weight, len(c.Index))
	for j, k := range c.Index {
		weights[j] = Weight{int(k), c.Value[j]}
	}
	slices.SortStableFunc(weights, func(a, b Weight) int {
		return cmp.Compare(max(b.Value, -b.Value), max(a.Value, -a.Value))
	})
	return weights
}

// Sum returns Σ w·a/‖a‖ over the terms of a query, where w is the weight of a term and a its code. The dimensions that
// the query excludes are set to zero. The norms of codes don't affect the sum.
func (x *Index) Sum(q Query) Code {
	sum := make([]float64, x.Codes.Cols)
	for _, t := range q.Terms {
		code := x.Code(t.Row)
		for j, k := range code.Index {
			sum[k] += t.Weight * float64(code.Value[j]) / x.norms[t.Row]
		}
	}
	for _, k := range q.Without {
		sum[k] = 0
	}
	var c Code
	for k, v := range sum {
		if v := float32(v); v != 0 {
			c.Index, c.Value = append(c.Index, int32(k)), append(c.Value, v)
		}
	}
	return c
}

// Centrality returns the dot product of each row's code, scaled to norm 1, with the sum of all these scaled codes.
func Centrality[R int | int32](x *Index, rows []R) []float64 {
	sum, products := make([]float64, x.Codes.Cols), make([]float64, len(rows))
	for _, i := range rows {
		code := x.Code(int(i))
		for j, k := range code.Index {
			sum[k] += float64(code.Value[j]) / x.norms[i]
		}
	}
	for r, i := range rows {
		code := x.Code(int(i))
		for j, k := range code.Index {
			products[r] += sum[k] * float64(code.Value[j]) / x.norms[i]
		}
	}
	return products
}

// Steer returns c/‖c‖ + Σ_k s_k e_k, where the weight s_k of dimension k may be negative. The dot product of this sum
// with v, a row's code scaled to norm 1, is the row's score: the cosine plus a part for each steered dimension:
//
//	c·v/‖c‖ + Σ_k s_k v_k
//
// [Index.Nearest] gives the same ranking, because it divides all scores by the same number, the norm of the
// steered query.
func (c Code) Steer(weights ...Weight) Code {
	values, norm := map[int32]float64{}, cmp.Or(c.Norm(), 1)
	for j, k := range c.Index {
		values[k] = float64(c.Value[j]) / norm
	}
	for _, w := range weights {
		values[int32(w.Dimension)] += float64(w.Value)
	}
	var steered Code
	for _, k := range slices.Sorted(maps.Keys(values)) {
		steered.Index, steered.Value = append(steered.Index, k), append(steered.Value, float32(values[k]))
	}
	return steered
}

// A Neighbour is a row and the cosine of its code with the query.
type Neighbour struct {
	Row    int
	Cosine float64
}

// Nearest returns up to n rows whose codes have the largest positive cosines with c, largest first. The frequent words
// of [Index.Known] precede the others. Nearest leaves out the excluded rows.
func (x *Index) Nearest(c Code, n int, excluded ...int) []Neighbour {
	norm := c.Norm()
	blocks := make([]*knownRanking, x.blocks)
	parallel.Each(context.Background(), x.blocks, func(b int) {
		lo, hi := x.block(b)
		products := make([]float64, hi-lo)
		for j, k := range c.Index {
			rows, values := x.blockColumn(int(k), b)
			for l, row := range rows {
				products[row] += float64(c.Value[j]) * float64(values[l])
			}
		}
		blocks[b] = x.newRanking(n)
		for i, product := range products {
			if row := lo + i; product > 0 && !slices.Contains(excluded, row) {
				blocks[b].add(row, product/(norm*x.norms[row]))
			}
		}
	})
	found := x.newRanking(n)
	for _, b := range blocks {
		found.merge(b)
	}
	neighbours := []Neighbour{}
	for _, i := range found.sorted() {
		neighbours = append(neighbours, Neighbour{i.Index, i.Score})
	}
	return neighbours
}

// A Contribution is the term of one dimension in a sum over dimensions.
type Contribution struct {
	Dimension int       `json:"dimension"`
	Part      float64   `json:"part"`
	Values    []float64 `json:"values"` // value of each code in the dimension, divided by the norm of the code
}

// Compare splits the cosine of codes u and v, of norm 1, into a part per dimension:
//
//	cosine = Σ_k u_k v_k    and    1 − cosine = Σ_k (u_k − v_k)²/2
//
// The list shared holds the nonzero terms of the first sum. The list apart holds the terms of the second, which are
// positive. Both lists are in decreasing order of absolute value. Compare first scales codes to norm 1. For more than
// two codes, each term is the mean over all pairs. A code of zeros has the cosine 0 with every other code; the terms in
// the list apart then add up to ½, although 1 − cosine is 1.
func Compare(codes ...Code) (shared, apart []Contribution) {
	norms := make([]float64, len(codes))
	var dimensions []int32
	for i, c := range codes {
		norms[i] = cmp.Or(c.Norm(), 1)
		dimensions = append(dimensions, c.Index...)
	}
	slices.Sort(dimensions)
	pairs := float64(len(codes) * (len(codes) - 1) / 2)
	shared, apart = []Contribution{}, []Contribution{}
	for _, k := range slices.Compact(dimensions) {
		values := make([]float64, len(codes))
		for i, c := range codes {
			values[i] = float64(c.At(int(k))) / norms[i]
		}
		product, distance := 0.0, 0.0
		for i, a := range values {
			for _, b := range values[:i] {
				product += a * b
				distance += (a - b) * (a - b) / 2
			}
		}
		if product != 0 {
			shared = append(shared, Contribution{int(k), product / pairs, values})
		}
		if distance != 0 {
			apart = append(apart, Contribution{int(k), distance / pairs, values})
		}
	}
	byPart := func(a, b Contribution) int { return cmp.Compare(math.Abs(b.Part), math.Abs(a.Part)) }
	slices.SortStableFunc(shared, byPart)
	slices.SortStableFunc(apart, byPart)
	return shared, apart
}
