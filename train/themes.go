package train

import (
	"context"
	"math"

	"overcomplete/internal/cluster"
	"overcomplete/internal/float32s"
	"overcomplete/model"
	"overcomplete/vectors"
)

const (
	maxThemeRows    = 6000 // maximum number of rows that themes are learned from
	themeNeighbours = 10   // number of nearest neighbours with which a row is averaged
	themeSmoothings = 10   // iterations of smoothing
	topicShare      = 0.9  // least variance that the default topics explain, relative to maxTopics topics
	minTopics       = 6    // least default number of topics
	maxTopics       = 12   // largest default number of topics
	maxThemes       = 512  // largest default number of themes
)

// learnThemes clusters the rows of x, V×L, except blank texts, into M themes. It returns the directions of the themes,
// M×L, each of norm 1, in the space of x − μ. It also returns the tree of the themes. Both are nil if no row differs
// from μ. The argument topics is the default number of topics of the model; if it is 0, the number is derived from the
// tree.
//
// It uses at most maxThemeRows rows, minus the mean and scaled to norm 1. It averages each row with its nearest
// neighbours (smoothing), merges the rows by Ward's method, and cuts the tree into M clusters. The direction of a theme
// is the direction of the mean of its rows. A coarser cut of the same tree gives topics. The result doesn't depend on a
// seed, nor on the order of rows unless rows are equal.
func learnThemes(ctx context.Context, x *vectors.Dense, d *model.Dictionary, topics int) (atoms []float32, themes *model.Themes, err error) {
	rows := unitRows(x, d)
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
	clusterOf, tree := cluster.Cut(merges, n, min(max(topics, defaultThemes(x.Len())), n))
	order, splits := leafOrder(tree)
	means := meanDirections(rows, d.Dim, clusterOf, len(order))
	for _, c := range order {
		atoms = append(atoms, means[int(c)*d.Dim:][:d.Dim]...)
	}
	if topics == 0 {
		topics = defaultTopics(tree)
	}
	return atoms, &model.Themes{Topics: min(topics, len(order)), Splits: splits}, nil
}

func defaultThemes(n int) int {
	return max(2, min(int(2.4*math.Sqrt(float64(n))), n/4, maxThemes))
}

// leafOrder returns the leaves of a tree in an order in which the leaves of every branch are
// consecutive. For merge i, counted from the root down, order[splits[i]] is the first leaf of the second branch.
func leafOrder(tree []cluster.Merge) (order, splits []int32) {
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

// unitRows returns the rows that themes are learned from, minus the mean and scaled to norm 1.
func unitRows(x *vectors.Dense, d *model.Dictionary) (rows []float32) {
	for _, i := range candidateOrder(x.Data, d.Dim, false) {
		if len(rows) == maxThemeRows*d.Dim {
			break
		}
		if x.Texts.Blank(i) {
			continue
		}
		n := len(rows)
		rows = append(rows, x.Row(i)...)
		row := rows[n:]
		d.Center(row, row)
		if float32s.Squares(row) == 0 { // the row equals the mean
			rows = rows[:n]
		}
	}
	cluster.Normalize(rows, d.Dim)
	return rows
}

// meanDirections returns the mean of each cluster's rows, scaled to norm 1.
func meanDirections(rows []float32, dim int, clusterOf []int32, clusters int) []float32 {
	sums := make([]float64, clusters*dim)
	for i, c := range clusterOf {
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

// defaultTopics returns the default number of topics: the least number, from minTopics to maxTopics, whose topics
// explain at least topicShare of the variance that maxTopics topics explain. Splits beyond maxTopics don't count,
// because their number grows with the number of rows.
func defaultTopics(tree []cluster.Merge) int {
	total := 0.0
	for _, m := range tree[max(0, len(tree)+1-maxTopics):] {
		total += m.Height
	}
	topics, explained := 1, 0.0
	for topics <= len(tree) && (topics < minTopics || explained < topicShare*total) {
		explained += tree[len(tree)-topics].Height
		topics++
	}
	return topics
}
