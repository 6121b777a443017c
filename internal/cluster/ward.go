package cluster

import (
	"cmp"
	"context"
	"math"
	"slices"

	"overcomplete/internal/float32s"
	"overcomplete/internal/parallel"
)

// A Merge is an inner node of a tree of n leaves. The leaves are the nodes 0 to n−1. Merge j is node n+j, which joins
// the lower nodes A and B. Height is the increase of the sum of squared distances to the clusters' means.
type Merge struct {
	A, B   int32
	Height float64
}

// Ward returns the tree of the rows of x, n×dim row-major, by Ward's method (1963): each merge is the one that
// least increases the sum of squared distances to the clusters' means, up to the rounding of float32. The n−1
// merges are in increasing order of heights. If ctx is cancelled, Ward returns ctx.Err(). It fails if
// [simd.Choose] does.
//
// Each round merges all pairs of clusters that are nearest to each other. The tree is the same, because no
// merge brings another cluster nearer (Sumengen et al., Scaling Hierarchical Agglomerative Clustering to
// Billion-sized Datasets, 2021, §3). A round computes its distances as one matrix product. In all, Ward
// takes about as long as two products of n×dim by dim×n matrices.
func Ward(ctx context.Context, x []float32, dim int) ([]Merge, error) {
	n := len(x) / dim
	w := &forest{dim: dim, active: make([]int, n), clusters: make([]group, n), mean: slices.Clone(x), next: make([]candidate, n)}
	stale := make([]int, n)
	for i := range n {
		w.active[i], stale[i] = i, i
		w.clusters[i] = group{node: int32(i), size: 1, square: float32s.Squares(x[i*dim:][:dim])}
	}
	s, err := NewSearcher(nil, dim)
	if err != nil {
		return nil, err
	}
	for len(w.active) > 1 {
		if err := w.search(ctx, s, stale); err != nil {
			return nil, err
		}
		stale = w.merge()
	}
	return sortByHeight(w.merges, n), nil
}

// A forest is a set of clusters that merge into one tree.
type forest struct {
	dim      int
	active   []int // clusters not yet merged into another, in increasing order
	clusters []group
	mean     []float32 // means of the clusters, n×dim
	next     []candidate
	packed   []float32 // means of the active clusters
	merges   []Merge
}

// A group is a cluster of the forest.
type group struct {
	node   int32
	size   float64
	square float64 // squared norm of the mean
}

// A candidate is the cluster that a cluster would best merge with.
type candidate struct {
	cluster int
	height  float64
}

// height returns the increase of the sum of squared distances if two clusters merge. The argument
// product is the dot product of their means.
func height(a, b *group, product float32) float64 {
	return max(0, a.square+b.square-2*float64(product)) * (a.size * b.size / (a.size + b.size))
}

// search finds the candidate b of each cluster a in clusters. If several clusters have the least height, b is the
// cluster with the least a xor b. Copies of a row then merge in pairs, not one after the other.
func (w *forest) search(ctx context.Context, s *Searcher, clusters []int) error {
	w.packed = w.packed[:0]
	for _, c := range w.active {
		w.packed = append(w.packed, w.mean[c*w.dim:][:w.dim]...)
	}
	s.reset(w.packed, w.dim)
	row := func(i int) []float32 { return w.mean[clusters[i]*w.dim:][:w.dim] }
	return s.Products(ctx, len(clusters), row, func(i, column int, products []float32) {
		a := clusters[i]
		best := w.next[a]
		if column == 0 {
			best = candidate{-1, math.Inf(1)}
		}
		for j, p := range products {
			b := w.active[column+j]
			if h := height(&w.clusters[a], &w.clusters[b], p); a != b && (h < best.height || h == best.height && a^b < a^best.cluster) {
				best = candidate{b, h}
			}
		}
		w.next[a] = best
	})
}

// merge joins all pairs of clusters that are each other's candidates; there is at least one. It returns the
// clusters whose candidates must be searched again.
func (w *forest) merge() (stale []int) {
	changed := make([]bool, len(w.clusters))
	least := w.active[0]
	for _, a := range w.active {
		if w.next[a].height < w.next[least].height {
			least = a
		}
	}
	w.next[w.next[least].cluster] = candidate{least, w.next[least].height} // one pair must merge despite rounding
	for _, a := range w.active {
		b := w.next[a].cluster
		if w.next[b].cluster != a || b < a || changed[a] || changed[b] {
			continue
		}
		w.join(a, b)
		changed[a], changed[b] = true, true
	}
	w.active = slices.DeleteFunc(w.active, func(c int) bool { return w.clusters[c].size == 0 })
	for _, a := range w.active {
		if changed[a] || changed[w.next[a].cluster] {
			stale = append(stale, a)
		}
	}
	return stale
}

// join adds cluster b to cluster a.
func (w *forest) join(a, b int) {
	p, q := &w.clusters[a], &w.clusters[b]
	w.merges = append(w.merges, Merge{p.node, q.node, w.next[a].height})
	mean, other := w.mean[a*w.dim:][:w.dim], w.mean[b*w.dim:][:w.dim]
	size := p.size + q.size
	for l := range mean {
		mean[l] = float32((p.size*float64(mean[l]) + q.size*float64(other[l])) / size)
	}
	*p = group{node: int32(len(w.clusters) + len(w.merges) - 1), size: size, square: float32s.Squares(mean)}
	q.size = 0
}

// sortByHeight returns the merges of n leaves in increasing order of heights. If rounding made a merge lower
// than one of its children, sortByHeight raises it to the child's height.
func sortByHeight(merges []Merge, n int) []Merge {
	for i := range merges {
		for _, child := range []int32{merges[i].A, merges[i].B} {
			if int(child) >= n {
				merges[i].Height = max(merges[i].Height, merges[int(child)-n].Height)
			}
		}
	}
	order := make([]int, len(merges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(merges[i].Height, merges[j].Height) })
	node := make([]int32, n+len(merges))
	for i := range n {
		node[i] = int32(i)
	}
	for j, i := range order {
		node[n+i] = int32(n + j)
	}
	sorted := make([]Merge, len(merges))
	for j, i := range order {
		m := merges[i]
		sorted[j] = Merge{node[m.A], node[m.B], m.Height}
	}
	return sorted
}

// Smooth moves each row of x, n×dim row-major and of norm 1, halfway to the mean of its k nearest
// neighbours by cosine, and scales it to norm 1. It repeats this the given number of times, with the same
// neighbours. Smoothing removes the noise in which neighbours differ, and keeps the differences between
// regions of many rows. If ctx is cancelled, Smooth returns ctx.Err(). It fails if [simd.Choose] does.
func Smooth(ctx context.Context, x []float32, dim, k, times int) error {
	s, err := NewSearcher(x, dim)
	if err != nil {
		return err
	}
	n := len(x) / dim
	index, cosine := make([]int32, n*(k+1)), make([]float32, n*(k+1))
	if err := s.Nearest(ctx, x, k+1, index, cosine); err != nil {
		return err
	}
	from := slices.Clone(x)
	for range times {
		copy(from, x)
		err := parallel.Each(ctx, n, func(i int) {
			sum := make([]float64, dim)
			neighbours := 0
			for _, j := range index[i*(k+1):][:k+1] {
				if j < 0 || int(j) == i || neighbours == k {
					continue
				}
				neighbours++
				for l, v := range from[int(j)*dim:][:dim] {
					sum[l] += float64(v)
				}
			}
			if neighbours == 0 {
				return
			}
			norm := 0.0
			for l, v := range from[i*dim:][:dim] {
				sum[l] = sum[l]/float64(neighbours) + float64(v)
				norm += sum[l] * sum[l]
			}
			if norm == 0 { // the neighbours' mean is opposite to the row
				return
			}
			norm = math.Sqrt(norm)
			for l := range sum {
				x[i*dim+l] = float32(sum[l] / norm)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Cut cuts a tree of n leaves into k clusters, 1 ≤ k ≤ n. It returns the cluster of each leaf, and the tree
// whose leaves are the clusters. Clusters are numbered in the order of their first leaves.
func Cut(merges []Merge, n, k int) (clusterOf []int32, tree []Merge) {
	parent := make([]int32, n+len(merges))
	for j, m := range merges {
		parent[m.A], parent[m.B] = int32(n+j), int32(n+j)
	}
	first := n + n - k // the first node that is above the cut
	for node := first - 1; node >= 0; node-- {
		if p := int(parent[node]); p < first && p > node {
			parent[node] = parent[p]
		} else {
			parent[node] = int32(node) // a cluster
		}
	}
	number := make(map[int32]int32, k)
	clusterOf = make([]int32, n)
	for i := range clusterOf {
		if _, ok := number[parent[i]]; !ok {
			number[parent[i]] = int32(len(number))
		}
		clusterOf[i] = number[parent[i]]
	}
	rename := func(node int32) int32 {
		if int(node) >= first {
			return node - int32(first) + int32(k)
		}
		return number[node]
	}
	for _, m := range merges[n-k:] {
		tree = append(tree, Merge{rename(m.A), rename(m.B), m.Height})
	}
	return clusterOf, tree
}
