package train

import (
	"context"
	"math"

	"overcomplete/internal/cluster"
	"overcomplete/model"
	"overcomplete/vectors"
)

const (
	themeRows       = 6000 // the most rows that themes are learned from
	themeNeighbours = 10   // of a row, which smooth it
	themeSmoothings = 10
	topicShare      = 0.85 // of the variance that the themes explain, which the default number of topics explains
	maxTopics       = 64   // by default
	maxThemes       = 512  // by default
)

// learnThemes learns themes from the rows of x, V×L, except blank texts. It returns their atoms, M×L of norm
// 1, in the space of x − μ, and their tree. There are none if no row differs from μ. Topics is their default
// number, or 0 for one that the rows determine.
//
// Rows, less the mean and scaled to norm 1, are smoothed and merged by Ward's method; the tree is cut
// where it has M clusters, and an atom is the direction of the mean of a cluster's rows. None of this
// depends on a seed or on the order of rows, except for copies of a row.
func learnThemes(ctx context.Context, x *vectors.Dense, d *model.Dictionary, topics int) (atoms []float32, themes *model.Themes, err error) {
	rows := directions(x, d)
	n := len(rows) / d.Dim
	if n == 0 {
		return nil, nil, ctx.Err()
	}
	smooth := append([]float32(nil), rows...)
	if err := cluster.Smooth(ctx, smooth, d.Dim, themeNeighbours, themeSmoothings); err != nil {
		return nil, nil, err
	}
	merges, err := cluster.Ward(ctx, smooth, d.Dim)
	if err != nil {
		return nil, nil, err
	}
	of, tree := cluster.Cut(merges, n, min(max(topics, defaultThemes(x.Len())), n))
	order, splits := inOrder(tree)
	means := means(rows, d.Dim, of, len(order))
	for _, c := range order {
		atoms = append(atoms, means[int(c)*d.Dim:][:d.Dim]...)
	}
	if topics == 0 {
		topics = defaultTopics(tree)
	}
	return atoms, &model.Themes{Topics: min(topics, len(order)), Splits: splits}, nil
}

// defaultThemes returns the default number of themes of n rows, M.
func defaultThemes(n int) int {
	return max(2, min(int(2.4*math.Sqrt(float64(n))), n/4, maxThemes))
}

// inOrder returns the leaves of a tree in an order in which every branch is a range, and the first leaf of the
// range that each merge splits off, from the root down.
func inOrder(tree []cluster.Merge) (order, splits []int32) {
	leaves := len(tree) + 1
	splits = make([]int32, len(tree))
	var visit func(node int)
	visit = func(node int) {
		if node < leaves {
			order = append(order, int32(node))
			return
		}
		m := tree[node-leaves]
		visit(int(m.A))
		splits[2*leaves-2-node] = int32(len(order))
		visit(int(m.B))
	}
	visit(2*leaves - 2)
	return order, splits
}

// directions returns the rows of x that themes are learned from, less the mean and scaled to norm 1.
func directions(x *vectors.Dense, d *model.Dictionary) (rows []float32) {
	for _, i := range startOrder(x.Data, d.Dim, false) {
		if len(rows) == themeRows*d.Dim {
			break
		}
		if x.Texts.Blank(i) {
			continue
		}
		n := len(rows)
		rows = append(rows, x.Row(i)...)
		row := rows[n:]
		d.Center(row, row)
		if squares(row) == 0 { // the mean itself
			rows = rows[:n]
		}
	}
	cluster.Normalize(rows, d.Dim)
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

// defaultTopics returns the default number of topics of a tree of themes: the least that explains the share
// topicShare of the variance that the themes explain.
func defaultTopics(tree []cluster.Merge) int {
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
