package interpret

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"overcomplete/internal/memory"
)

// A Match is the dimension of another model that MatchAtoms assigns to a dimension.
type Match struct {
	Dimension int     `json:"dimension"` // −1 without a match
	Cosine    float64 `json:"cosine"`    // of the two atoms; negative for opposite signs
}

// MatchAtoms matches the atoms of two dictionaries, K×L row-major, one to one, so that the sum of cosines is largest.
// The cosines measure stability across seeds. MatchAtoms returns the match of each atom of the dictionary a. Atoms of
// zeros have the cosine 0. If ctx is cancelled, it returns ctx's error. It returns an error if the cosines of all pairs
// don't fit into memory.
//
// It uses the Hungarian method by shortest augmenting paths (Jonker and Volgenant, A Shortest Augmenting
// Path Algorithm for Dense and Sparse Linear Assignment Problems, 1987).
func MatchAtoms(ctx context.Context, a, b []float32, dim int) ([]Match, error) {
	if dim < 1 || len(a)%dim != 0 || len(b)%dim != 0 {
		return nil, fmt.Errorf("interpret: match atoms: partial atoms (got %d and %d numbers, want multiples of %d)", len(a), len(b), dim)
	}
	matches := slices.Repeat([]Match{{Dimension: -1}}, len(a)/dim)
	swapped := len(a) > len(b)
	if swapped {
		a, b = b, a
	}
	n, m := len(a)/dim, len(b)/dim
	if err := memory.Check(4 * uint64(n) * uint64(m)); err != nil {
		return nil, fmt.Errorf("the cosines of %d and %d atoms: %w", n, m, err)
	}
	cosines := blas32.General{Rows: n, Cols: m, Stride: m, Data: make([]float32, n*m)}
	if n > 0 {
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, normalized(a, dim), normalized(b, dim), 0, cosines)
	}
	rowOf, err := assignColumns(ctx, cosines)
	if err != nil {
		return nil, err
	}
	for j, i := range rowOf {
		switch {
		case i < 0:
		case swapped:
			matches[j] = Match{i, float64(cosines.Data[i*m+j])}
		default:
			matches[i] = Match{j, float64(cosines.Data[i*m+j])}
		}
	}
	return matches, nil
}

// normalized returns a copy of atoms, each scaled to norm 1 unless its norm is zero or NaN.
func normalized(atoms []float32, dim int) blas32.General {
	u := blas32.General{Rows: len(atoms) / dim, Cols: dim, Stride: dim, Data: slices.Clone(atoms)}
	for atom := range slices.Chunk(u.Data, dim) {
		if norm := (Code{Value: atom}).Norm(); norm > 0 {
			for j, v := range atom {
				atom[j] = float32(float64(v) / norm)
			}
		}
	}
	return u
}

// assignColumns assigns each of n rows its own column, out of m ≥ n columns, so that the sum of cosines is largest.
// It returns the row of each column, or −1.
func assignColumns(ctx context.Context, cosines blas32.General) (rowOf []int, err error) {
	n, m := cosines.Rows, cosines.Cols
	rowOf = slices.Repeat([]int{-1}, m+1) // column m is the start of each path
	previous := make([]int, m+1)          // column before each column on its path
	u, v := make([]float64, n), make([]float64, m+1)
	distance, done := make([]float64, m), make([]bool, m+1)
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
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
				cost := 1 - float64(cosines.Data[row*m+k])
				if d := cost - u[row] - v[k]; d < distance[k] {
					distance[k], previous[k] = d, j
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
			rowOf[j] = rowOf[previous[j]]
			j = previous[j]
		}
	}
	return rowOf[:m], nil
}
