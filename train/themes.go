package train

import (
	"context"
	"math"

	"overcomplete/internal/cluster"
	"overcomplete/model"
)

const (
	themeRows       = 6000 // the most rows that themes are learned from
	themeNeighbours = 10   // of a row, which smooth it
	themeSmoothings = 10
	topicShare      = 0.85 // of the variance that the themes explain, which the default number of topics explains
	maxTopics       = 64   // by default
)

// learnThemes learns at most the given number of themes from the rows of x, V×L row-major, except those to
// leave out (nil for none). It returns the atoms of M themes, M×L of norm 1, in the space of x − μ; their tree, M−1 merges; and
// the default number of topics. M is 0 if no row differs from μ.
//
// Rows, less the mean and scaled to norm 1, are smoothed and merged by Ward's method; the tree is cut
// where it has M clusters, and an atom is the direction of the mean of a cluster's rows. The number of topics
// is the least that explains the share topicShare of the variance that the themes explain. None of this
// depends on a seed or on the order of rows, except for copies of a row.
func learnThemes(ctx context.Context, x []float32, d *model.Dictionary, themes int, leaveOut func(i int) bool) (atoms []float32, tree []cluster.Merge, topics int, err error) {
	rows := directions(x, d, leaveOut)
	n := len(rows) / d.Dim
	if n == 0 {
		return nil, nil, 0, ctx.Err()
	}
	smooth := append([]float32(nil), rows...)
	if err := cluster.Smooth(ctx, smooth, d.Dim, themeNeighbours, themeSmoothings); err != nil {
		return nil, nil, 0, err
	}
	merges, err := cluster.Ward(ctx, smooth, d.Dim)
	if err != nil {
		return nil, nil, 0, err
	}
	of, tree := cluster.Cut(merges, n, min(themes, n))
	return means(rows, d.Dim, of, len(tree)+1), tree, topicsOf(tree), nil
}

// directions returns the rows of x that themes are learned from, less the mean and scaled to norm 1.
func directions(x []float32, d *model.Dictionary, leaveOut func(i int) bool) (rows []float32) {
	for _, i := range startOrder(x, d.Dim, false) {
		if len(rows) == themeRows*d.Dim {
			break
		}
		if leaveOut != nil && leaveOut(i) {
			continue
		}
		n := len(rows)
		rows = append(rows, x[i*d.Dim:][:d.Dim]...)
		row := rows[n:]
		d.Center(row, row)
		norm := math.Sqrt(squares(row))
		if norm < 1e-20 { // the mean itself
			rows = rows[:n]
			continue
		}
		for l, v := range row {
			row[l] = float32(float64(v) / norm)
		}
	}
	return rows
}

// means returns the directions of the means of clusters' rows.
func means(rows []float32, dim int, of []int32, clusters int) []float32 {
	sums := make([]float64, clusters*dim)
	for i, c := range of {
		sum := sums[int(c)*dim:][:dim]
		for l, v := range rows[i*dim:][:dim] {
			sum[l] += float64(v)
		}
	}
	atoms := make([]float32, len(sums))
	for c := range clusters {
		norm := 0.0
		for _, v := range sums[c*dim:][:dim] {
			norm += v * v
		}
		norm = max(math.Sqrt(norm), 1e-20)
		for l, v := range sums[c*dim:][:dim] {
			atoms[c*dim+l] = float32(v / norm)
		}
	}
	return atoms
}

// topicsOf returns the default number of topics of a tree of themes.
func topicsOf(tree []cluster.Merge) int {
	all := 0.0
	for _, m := range tree {
		all += m.Height
	}
	topics, explained := 1, 0.0
	for topics <= len(tree) && topics < maxTopics && explained < topicShare*all {
		explained += tree[len(tree)-topics].Height
		topics++
	}
	return topics
}
