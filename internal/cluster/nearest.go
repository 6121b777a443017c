package cluster

import (
	"cmp"
	"context"
	"math"
	"runtime"

	"overcomplete/internal/float32s"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
)

// chunk is the number of rows that a goroutine multiplies in one step.
const chunk = 4 * simd.TileRows

// A Searcher finds the rows of a matrix that have the largest dot products with query rows. Its methods
// use all processors and must not be called concurrently.
type Searcher struct {
	kernels *simd.Kernels
	panels  simd.Panels
	rows    simd.Matrix // n×dim
	workers []*searchWorker
}

type searchWorker struct {
	x    simd.Matrix
	sums []float32
}

// NewSearcher returns a searcher for the rows of y, n×dim row-major, which it copies. It fails if
// [simd.Choose] does.
func NewSearcher(y []float32, dim int) (*Searcher, error) {
	k, _, err := simd.Choose()
	if err != nil {
		return nil, err
	}
	s := &Searcher{kernels: k, workers: make([]*searchWorker, runtime.GOMAXPROCS(0))}
	for i := range s.workers {
		s.workers[i] = new(searchWorker)
	}
	s.reset(y, dim)
	return s, nil
}

// reset replaces the rows of s. It reuses memory.
func (s *Searcher) reset(y []float32, dim int) {
	n := len(y) / dim
	s.rows.Resize(n, dim)
	for i := range n {
		copy(s.rows.Row(i), y[i*dim:])
	}
	s.panels.Resize(s.kernels, n, dim)
	parallel.Ranges(s.panels.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			s.panels.Fill(i, s.rows)
		}
	})
}

// Products computes the dot products of n query rows with the rows of s. It calls each(i, column, sums) for blocks of
// products: sums[j] is the product of query i and row column+j of s. One goroutine makes all calls for a query, in
// increasing order of columns. If ctx is cancelled, Products returns ctx.Err().
func (s *Searcher) Products(ctx context.Context, n int, row func(i int) []float32, each func(i, column int, sums []float32)) error {
	parallel.With(s.workers, (n+chunk-1)/chunk, func(w *searchWorker, part int) {
		if ctx.Err() != nil {
			return
		}
		lo := part * chunk
		rows := min(chunk, n-lo)
		w.x.Resize(rows, s.rows.Width)
		for i := range rows {
			copy(w.x.Row(i), row(lo+i))
		}
		s.kernels.Correlate(w.x, 0, rows, &s.panels, nil, &w.sums, func(i, column int, sums []float32) {
			each(lo+i, column, sums)
		})
	})
	return ctx.Err()
}

// Nearest finds, for each row of x, n×dim row-major, the k rows of s with the largest dot products. The arguments index
// and product, both n×k, receive their indices and products, in decreasing order of products. Equal products are in the
// order of their rows. If s has fewer than k rows, the remaining indices are −1. If ctx is cancelled, Nearest returns
// ctx.Err().
func (s *Searcher) Nearest(ctx context.Context, x []float32, k int, index []int32, product []float32) error {
	dim := s.rows.Width
	return s.Products(ctx, len(x)/dim, func(i int) []float32 { return x[i*dim:][:dim] }, func(i, column int, sums []float32) {
		index, product := index[i*k:][:k], product[i*k:][:k]
		if column == 0 {
			for j := range index {
				index[j], product[j] = -1, 0
			}
		}
		for j, p := range sums {
			if index[k-1] >= 0 && p <= product[k-1] {
				continue
			}
			at := k - 1
			for ; at > 0 && (index[at-1] < 0 || p > product[at-1]); at-- {
				index[at], product[at] = index[at-1], product[at-1]
			}
			index[at], product[at] = int32(column+j), p
		}
	})
}

// Normalize scales the rows of x, n×dim row-major, to norm 1, except rows of norm 0.
func Normalize(x []float32, dim int) {
	parallel.Ranges(len(x)/dim, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := x[i*dim:][:dim]
			norm := cmp.Or(math.Sqrt(float32s.Squares(row)), 1)
			for l, v := range row {
				row[l] = float32(float64(v) / norm)
			}
		}
	})
}
