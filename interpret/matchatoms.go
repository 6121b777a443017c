package interpret

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// MatchAtoms matches the atoms of two dictionaries, K×L row-major, one to one, so that the sum
// of the matches' cosines is the largest that there is: the measure of whether a training
// finds its dimensions again. Of each atom of a it returns the atom of b, or Dimension −1
// where b has fewer. Atoms of zeros have the cosine 0. If ctx is cancelled, the error is its.
//
// It is the Hungarian method by shortest augmenting paths (Jonker and Volgenant, A Shortest
// Augmenting Path Algorithm for Dense and Sparse Linear Assignment Problems, 1987).
func MatchAtoms(ctx context.Context, a, b []float32, dim int) ([]Match, error) {
	if dim < 1 || len(a)%dim != 0 || len(b)%dim != 0 {
		return nil, fmt.Errorf("interpret: %d and %d numbers are no atoms of %d", len(a), len(b), dim)
	}
	cosines, rows, columns := cosines(a, b, dim)
	at := func(i, j int) float64 { return float64(cosines[i*columns+j]) }
	if rows > columns { // the shorter side's atoms are all matched
		rows, columns = columns, rows
		at = func(i, j int) float64 { return float64(cosines[j*rows+i]) }
	}
	rowOf := assignOnce(ctx, rows, columns, func(i, j int) float64 { return 1 - at(i, j) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	matches := make([]Match, len(a)/dim)
	for i := range matches {
		matches[i].Dimension = -1
	}
	for j, i := range rowOf {
		switch {
		case i < 0:
		case len(a) <= len(b):
			matches[i] = Match{j, at(i, j)}
		default:
			matches[j] = Match{i, at(i, j)}
		}
	}
	return matches, nil
}

// cosines are those of all rows of a with all of b, n×m.
func cosines(a, b []float32, dim int) (c []float32, n, m int) {
	x, y := units(a, dim), units(b, dim)
	n, m = x.Rows, y.Rows
	c = make([]float32, n*m)
	if len(c) > 0 {
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, x, y, 0, blas32.General{Rows: n, Cols: m, Stride: m, Data: c})
	}
	return c, n, m
}

// units are the rows of a at norm 1, but for zeros.
func units(a []float32, dim int) blas32.General {
	u := blas32.General{Rows: len(a) / dim, Cols: dim, Stride: dim, Data: make([]float32, len(a))}
	for i := 0; i < len(a); i += dim {
		var squares float64
		for _, v := range a[i : i+dim] {
			squares += float64(v) * float64(v)
		}
		if squares > 0 {
			for j, v := range a[i : i+dim] {
				u.Data[i+j] = float32(float64(v) / math.Sqrt(squares))
			}
		}
	}
	return u
}

// assignOnce gives each of n rows a column of its own, of m ≥ n, at the least sum of costs, and
// returns the row of each column, or −1. It ends early when ctx is done.
func assignOnce(ctx context.Context, n, m int, cost func(i, j int) float64) (rowOf []int) {
	rowOf = make([]int, m+1) // the last column is where a row begins
	from := make([]int, m+1) // the column before, on the path to a column
	u, v := make([]float64, n), make([]float64, m+1)
	distance, done := make([]float64, m), make([]bool, m+1)
	for j := range rowOf {
		rowOf[j] = -1
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		for j := range distance {
			distance[j] = math.Inf(1)
		}
		clear(done)
		j := m
		rowOf[m] = i
		for rowOf[j] >= 0 { // until a column is free
			done[j] = true
			row, least, next := rowOf[j], math.Inf(1), -1
			for k := range m {
				if done[k] {
					continue
				}
				if d := cost(row, k) - u[row] - v[k]; d < distance[k] {
					distance[k], from[k] = d, j
				}
				if distance[k] < least {
					least, next = distance[k], k
				}
			}
			for k := range done {
				if done[k] {
					u[rowOf[k]] += least
					v[k] -= least
				} else {
					distance[k] -= least
				}
			}
			j = next
		}
		for j != m {
			rowOf[j] = rowOf[from[j]]
			j = from[j]
		}
	}
	return rowOf[:m]
}
