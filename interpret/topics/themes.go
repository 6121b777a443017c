package topics

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"

	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/model"
	"overcomplete/vectors"
)

// rowThemes is the most themes of a row.
const rowThemes = 8

// Encode returns the codes of rows by the M themes of m, V×M: the largest positive cosines of the themes with
// aD, the vector less μ that a row's code stands for. The row is empty of an empty text, and of a vector that
// is no nearer to a theme than a random direction is to the nearest of M random ones, √(2·ln M/L). The
// error is ctx's.
func Encode(ctx context.Context, m *model.Model) (*vectors.CSR, error) {
	d, rows, themes := &m.Dictionary, m.Codes.Rows, m.Info.Training.Themes.Len()
	products := make([]float32, d.Len()*themes) // of atoms with themes, K×M
	err := parallel.Each(ctx, d.Len(), func(k int) {
		for t := range themes {
			products[k*themes+t] = blas32.Dot(vector(d.Atom(k)), vector(d.Themes[t*d.Dim:][:d.Dim]))
		}
	})
	if err != nil {
		return nil, err
	}
	const most = 0.5 // of short vectors
	chance := min(most, math.Sqrt(2*math.Log(float64(themes))/float64(d.Dim)))
	largest := make([][]ranking.Item, rows)
	parallel.Ranges(rows, func(lo, hi int) {
		y, cosines := make([]float32, d.Dim), make([]float32, themes)
		for i := lo; i < hi && ctx.Err() == nil; i++ {
			if m.Codes.Texts.Blank(i) {
				continue
			}
			clear(y)
			clear(cosines)
			index, value := m.Codes.Row(i)
			for j, k := range index {
				blas32.Axpy(value[j], vector(d.Atom(int(k))), vector(y))
				blas32.Axpy(value[j], vector(products[int(k)*themes:][:themes]), vector(cosines))
			}
			norm := math.Max(float64(blas32.Nrm2(vector(y))), 1e-30)
			found := ranking.Ranking{N: rowThemes}
			for t, product := range cosines {
				if product > 0 {
					found.Add(ranking.Item{Index: t, Score: float64(product) / norm})
				}
			}
			if items := found.Items(); len(items) > 0 && items[0].Score > chance {
				largest[i] = items
			}
		}
	})
	codes := &vectors.CSR{Cols: themes, Ptr: []int64{0}}
	for _, items := range largest {
		slices.SortFunc(items, func(a, b ranking.Item) int { return a.Index - b.Index })
		index, value := make([]int32, len(items)), make([]float32, len(items))
		for j, item := range items {
			index[j], value[j] = int32(item.Index), float32(item.Score)
		}
		codes.AppendRow(index, value)
	}
	return codes, ctx.Err()
}

// parents returns the theme of each dimension k: that with the largest Σ_i |a_ik|·cosine², or None of a
// dimension whose rows have no theme.
func parents(codes, themes *vectors.CSR) []ID {
	sums := make([]float64, codes.Cols*themes.Cols)
	for i := range codes.Rows {
		index, value := codes.Row(i)
		of, cosines := themes.Row(i)
		for j, k := range index {
			for c, theme := range of {
				sums[int(k)*themes.Cols+int(theme)] += math.Abs(float64(value[j])) * float64(cosines[c]) * float64(cosines[c])
			}
		}
	}
	parents := make([]ID, codes.Cols)
	for k := range parents {
		parents[k] = None
		most := 0.0
		for theme, sum := range sums[k*themes.Cols:][:themes.Cols] {
			if sum > most {
				most, parents[k] = sum, ID(theme)
			}
		}
	}
	return parents
}

func vector(x []float32) blas32.Vector { return blas32.Vector{N: len(x), Inc: 1, Data: x} }
