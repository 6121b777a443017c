package topics

import (
	"context"
	"math"
	"slices"

	"overcomplete/internal/cluster"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
	"overcomplete/model"
	"overcomplete/vectors"
)

const (
	rowThemes = 16      // largest number of themes of a row
	blockRows = 1 << 11 // rows that are compared with the themes in one step
)

// Memory estimates how many bytes the topics of n rows need beyond an index: the measured peak per row, times n.
func Memory(n int) uint64 { return 272 * uint64(n) }

// Encode returns the cosines of the rows of m with its M themes, V×M. Each is the cosine between the direction of a theme
// and the centred reconstruction aD of a row. A row holds up to sixteen cosines, the largest positive ones. It holds none if
// its text is empty, or if its largest cosine is at most a threshold. The threshold is √(2·ln M/L), about the largest
// cosine with M random directions, but at most 0.5. If ctx is cancelled, Encode returns ctx.Err().
func Encode(ctx context.Context, m *model.Model) (*vectors.CSR, error) {
	d, themes := &m.Dictionary, m.Info.Training.Themes.Len()
	k, _, err := simd.Choose()
	if err != nil {
		return nil, err
	}
	atoms, directions := matrix(d.Atoms, d.Dim), matrix(d.Themes, d.Dim)
	dim := atoms.Pitch // padded with zeros
	searcher, err := cluster.NewSearcher(directions.Data[:themes*dim], dim)
	if err != nil {
		return nil, err
	}
	const maxChance = 0.5 // limits the threshold of short vectors
	chance := float32(min(maxChance, math.Sqrt(2*math.Log(float64(themes))/float64(d.Dim))))
	most := m.Codes.Rows * min(rowThemes, themes)
	codes := &vectors.CSR{Cols: themes, Ptr: make([]int64, 1, m.Codes.Rows+1)}
	codes.Index, codes.Value = make([]int32, 0, most), make([]float32, 0, most) // growing them by copies would raise the peak
	rows := make([]float32, blockRows*dim)
	index, cosines := make([]int32, blockRows*rowThemes), make([]float32, blockRows*rowThemes)
	for lo := 0; lo < m.Codes.Rows; lo += blockRows {
		n := min(blockRows, m.Codes.Rows-lo)
		clear(rows)
		parallel.Ranges(n, func(first, end int) { decode(k, rows[first*dim:end*dim], m.Codes, lo+first, atoms) })
		cluster.Normalize(rows[:n*dim], dim)
		if err := searcher.Nearest(ctx, rows[:n*dim], rowThemes, index, cosines); err != nil {
			return nil, err
		}
		for i := range n {
			appendThemes(codes, index[i*rowThemes:][:rowThemes], cosines[i*rowThemes:][:rowThemes], chance)
		}
	}
	return codes, ctx.Err()
}

// matrix returns a padded copy of x, n×dim row-major.
func matrix(x []float32, dim int) simd.Matrix {
	m := simd.NewMatrix(len(x)/dim, dim)
	for i := range len(x) / dim {
		copy(m.Row(i), x[i*dim:])
	}
	return m
}

// decode adds the reconstruction aD of row first+i of codes to row i of the matrix rows, unless the row's text is
// empty. The outer loop is over blocks of atoms, so that a block stays in the level-2 cache while all rows use it.
func decode(k *simd.Kernels, rows []float32, codes *vectors.Sparse, first int, atoms simd.Matrix) {
	const blockAtoms = 256
	next := make([]int, len(rows)/atoms.Pitch) // index of the next nonzero of each code
	for end := blockAtoms; end < codes.Cols+blockAtoms; end += blockAtoms {
		for i := range next {
			if codes.Texts.Blank(first + i) {
				continue
			}
			index, value := codes.Row(first + i)
			next[i] += k.Decode(rows[i*atoms.Pitch:][:atoms.Pitch], index[next[i]:], value[next[i]:], atoms.Data, atoms.Pitch, int32(end))
		}
	}
}

// appendThemes appends a row with the positive cosines. The argument cosines is in decreasing order. The row is empty
// unless the largest cosine exceeds the threshold chance.
func appendThemes(codes *vectors.CSR, themes []int32, cosines []float32, chance float32) {
	n := 0
	for n < len(themes) && themes[n] >= 0 && cosines[n] > 0 {
		n++
	}
	if n == 0 || cosines[0] <= chance {
		n = 0
	}
	themes, cosines = themes[:n], cosines[:n]
	for i := range themes { // sort by theme
		for j := i; j > 0 && themes[j] < themes[j-1]; j-- {
			themes[j], themes[j-1] = themes[j-1], themes[j]
			cosines[j], cosines[j-1] = cosines[j-1], cosines[j]
		}
	}
	codes.AppendRow(themes, cosines)
}

// AssignDimensions sets t.Dimensions from the codes of the rows, V×K. The theme of dimension k is the theme with the
// largest Σ_i |a_ik|·cosine², or None if the rows of the dimension have no theme.
func (t *Table) AssignDimensions(codes *vectors.CSR) {
	themes := t.Codes
	t.Dimensions = make([]ID, codes.Cols)
	const maxSums = 1 << 24 // 128 MiB
	block := min(codes.Cols, max(1, maxSums/max(1, themes.Cols)))
	sums := make([]float64, block*themes.Cols)
	for first := 0; first < codes.Cols; first += block {
		clear(sums)
		for i := range codes.Rows {
			index, value := codes.Row(i)
			rowThemes, cosines := themes.Row(i)
			start, _ := slices.BinarySearch(index, int32(first))
			for j := start; j < len(index) && int(index[j]) < first+block; j++ {
				ofDimension := sums[(int(index[j])-first)*themes.Cols:][:themes.Cols]
				for c, theme := range rowThemes {
					ofDimension[theme] += math.Abs(float64(value[j])) * float64(cosines[c]) * float64(cosines[c])
				}
			}
		}
		for k := first; k < min(first+block, codes.Cols); k++ {
			t.Dimensions[k] = None
			largest := 0.0
			for theme, sum := range sums[(k-first)*themes.Cols:][:themes.Cols] {
				if sum > largest {
					largest, t.Dimensions[k] = sum, ID(theme)
				}
			}
		}
	}
}
