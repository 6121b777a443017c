package cluster

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"overcomplete/testonly"
)

// wardByDefinition merges, in each step, the two clusters that increase the sum of squared distances
// to the clusters' means least. It computes the sums from the rows.
func wardByDefinition(x []float32, dim int) (clusterings [][][]int, heights []float64) {
	var clusters [][]int
	for i := range len(x) / dim {
		clusters = append(clusters, []int{i})
	}
	spread := func(rows []int) (sum float64) {
		for l := range dim {
			mean := 0.0
			for _, i := range rows {
				mean += float64(x[i*dim+l]) / float64(len(rows))
			}
			for _, i := range rows {
				sum += (float64(x[i*dim+l]) - mean) * (float64(x[i*dim+l]) - mean)
			}
		}
		return sum
	}
	for len(clusters) > 1 {
		clusterings = append(clusterings, slices.Clone(clusters))
		a, b, least := 0, 0, math.Inf(1)
		for i := range clusters {
			for j := range i {
				if h := spread(slices.Concat(clusters[i], clusters[j])) - spread(clusters[i]) - spread(clusters[j]); h < least {
					a, b, least = j, i, h
				}
			}
		}
		heights = append(heights, least)
		clusters[a] = slices.Concat(clusters[a], clusters[b])
		slices.Sort(clusters[a])
		clusters = slices.Delete(clusters, b, b+1)
	}
	return clusterings, heights
}

// clustersAfter returns the clusters after the given merges, each sorted, in the order of their first rows.
func clustersAfter(merges []Merge, n int) (clusters [][]int) {
	nodes := make([][]int, n+len(merges))
	for i := range n {
		nodes[i] = []int{i}
	}
	for j, m := range merges {
		nodes[n+j] = slices.Concat(nodes[m.A], nodes[m.B])
		slices.Sort(nodes[n+j])
		nodes[m.A], nodes[m.B] = nil, nil
	}
	nodes = slices.DeleteFunc(nodes, func(rows []int) bool { return rows == nil })
	slices.SortFunc(nodes, func(a, b []int) int { return a[0] - b[0] })
	return nodes
}

func TestWardAgainstDefinition(t *testing.T) {
	x := sample(t, 60)
	merges, err := Ward(t.Context(), x.Data, x.Dim)
	testonly.Must(t, err)
	clusterings, heights := wardByDefinition(x.Data, x.Dim)
	for j, want := range clusterings {
		if got := clustersAfter(merges[:j], x.Len()); !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("after %d merges: %v, want %v", j, got, want)
		}
		// Rounding of float32 products: 2⁻²⁴ of squared norms up to 100, times the number of rows.
		if got := merges[j].Height; math.Abs(got-heights[j]) > 1e-4*(1+heights[j]) {
			t.Errorf("merge %d: height %g, want %g", j, got, heights[j])
		}
	}
}

func TestWardSameForAnyNumberOfProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	x := sample(t, 500)
	var want []Merge
	for _, workers := range []int{1, 3} {
		runtime.GOMAXPROCS(workers)
		y := slices.Clone(x.Data)
		testonly.Must(t, Smooth(t.Context(), y, x.Dim, 5, 3))
		got, err := Ward(t.Context(), y, x.Dim)
		testonly.Must(t, err)
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("%d processors: another tree", workers)
		}
	}
}

// Copies merge in pairs. Merging 2,000 one after the other would take minutes.
func TestWardOfCopies(t *testing.T) {
	const dim = 3
	for name, x := range map[string][]float32{
		"none": nil, "one": {1, 2, 3}, "two alike": {1, 2, 3, 1, 2, 3},
		"2000 alike": slices.Repeat([]float32{0.1, 0.2, 0.3}, 2000), "1000 zeros": make([]float32, 3000),
	} {
		merges, err := Ward(t.Context(), x, dim)
		if n := len(x) / dim; err != nil || len(merges) != max(0, n-1) {
			t.Errorf("%s: %d merges, %v", name, len(merges), err)
		}
		for _, m := range merges {
			if m.Height > 1e-3 {
				t.Errorf("%s: height %g", name, m.Height)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	x := sample(t, 300)
	queries := sample(t, 310).Data[200*x.Dim:]
	const k = 7
	n := len(queries) / x.Dim
	index, product := make([]int32, n*k), make([]float32, n*k)
	s, err := NewSearcher(x.Data, x.Dim)
	testonly.Must(t, err)
	testonly.Must(t, s.Nearest(t.Context(), queries, k, index, product))
	for i := range n {
		var all []float64
		for j := range x.Len() {
			sum := 0.0
			for l, v := range x.Row(j) {
				sum += float64(v) * float64(queries[i*x.Dim+l])
			}
			all = append(all, sum)
		}
		for c := range k {
			j := index[i*k+c]
			if math.Abs(all[j]-float64(product[i*k+c])) > 1e-4 || c > 0 && product[i*k+c] > product[i*k+c-1] {
				t.Fatalf("row %d: product %d is %g, want %g", i, c, product[i*k+c], all[j])
			}
		}
		slices.Sort(all)
		if least := float64(product[i*k+k-1]); math.Abs(least-all[len(all)-k]) > 1e-4 {
			t.Errorf("row %d: the last of %d has %g, want %g", i, k, least, all[len(all)-k])
		}
	}
	few, err := NewSearcher(x.Data[:2*x.Dim], x.Dim)
	testonly.Must(t, err)
	if err := few.Nearest(t.Context(), queries[:x.Dim], 3, index[:3], product[:3]); err != nil || index[0] < 0 || index[1] < 0 || index[2] != -1 {
		t.Errorf("of two rows: %v, %v", index[:3], err)
	}
}

// Two regions with noise: smoothing shrinks the noise and keeps the regions.
func TestSmooth(t *testing.T) {
	const dim, n = 16, 200
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n*dim)
	for i := range n {
		row := x[i*dim:][:dim]
		row[i%2] = 1
		for l := range row {
			row[l] += float32(rng.NormFloat64()) / 10
		}
	}
	Normalize(x, dim)
	noise := func() (within, between float64) {
		for i := 2; i < n; i++ {
			for l, v := range x[i*dim:][:dim] {
				d := float64(v - x[(i-2)*dim+l])
				e := float64(v - x[(i-1)*dim+l])
				within, between = within+d*d, between+e*e
			}
		}
		return within / n, between / n
	}
	within, between := noise()
	testonly.Must(t, Smooth(t.Context(), x, dim, 10, 10))
	if w, b := noise(); w > within/10 || b < between/2 {
		t.Errorf("distances within regions %g → %g, between %g → %g", within, w, between, b)
	}
}

// A row moves halfway to its neighbour, and is not a neighbour of itself.
func TestSmoothPair(t *testing.T) {
	x := []float32{1, 0, 0, 1}
	testonly.Must(t, Smooth(t.Context(), x, 2, 1, 1))
	for _, v := range x {
		if math.Abs(float64(v)-math.Sqrt(0.5)) > 1e-7 {
			t.Fatalf("%v, want all √½", x)
		}
	}
}

// The tree of a cut is the upper part of the tree of all rows: both have the same clusters for fewer topics.
func TestCut(t *testing.T) {
	x := sample(t, 300)
	merges, err := Ward(t.Context(), x.Data, x.Dim)
	testonly.Must(t, err)
	for _, k := range []int{1, 5, 60, 300} {
		clusterOf, tree := Cut(merges, x.Len(), k)
		if len(tree) != k-1 {
			t.Fatalf("%d merges of %d clusters", len(tree), k)
		}
		for _, topics := range []int{1, 3, 5} {
			if topics > k {
				continue
			}
			direct, _ := Cut(merges, x.Len(), topics)
			nested, _ := Cut(tree, k, topics)
			same := map[[2]int32]bool{}
			for i := range clusterOf {
				same[[2]int32{direct[i], nested[clusterOf[i]]}] = true
			}
			if len(same) != topics {
				t.Errorf("%d topics of %d themes are %d pairs", topics, k, len(same))
			}
		}
	}
}
