package explore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/internal/parallel"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/train"
	"overcomplete/vectors"
)

// recall returns the share of true neighbours, by near, among the twelve nearest points of each point on the map.
func recall(points []point, near func(i, j int) bool) float64 {
	const k = 12
	found := make([]float64, len(points))
	parallel.Each(context.Background(), len(points), func(i int) {
		distances, order := make([]float64, len(points)), make([]int, len(points))
		for j, p := range points {
			distances[j] = math.Hypot(float64(points[i].X-p.X), float64(points[i].Y-p.Y))
		}
		distances[i] = -1 // itself first, before points at the same place
		floats.Argsort(distances, order)
		for _, j := range order[1 : k+1] {
			if near(i, j) {
				found[i]++
			}
		}
	})
	return floats.Sum(found) / float64(k*len(points))
}

// planted returns a model with groups of dimensions, which the same words use. Its atoms are random.
func planted(groups, members, words int) *model.Model {
	rng := rand.New(rand.NewPCG(3, 4))
	cols := groups * members
	h := train.Paper()
	h.Atoms = cols
	training := model.Training{Input: model.Input{Rows: words, Dim: 20}, Recipe: h}
	m := &model.Model{
		Info:       model.Info{Training: training, Encoding: training.PaperEncoding()},
		Codes:      &vectors.Sparse{CSR: vectors.CSR{Rows: words, Cols: cols, Ptr: []int64{0}}},
		Dictionary: model.Dictionary{Dim: 20, Atoms: make([]float32, cols*20)},
	}
	for i := range m.Dictionary.Atoms {
		m.Dictionary.Atoms[i] = float32(rng.NormFloat64())
	}
	for i := range words {
		m.Codes.IDs = append(m.Codes.IDs, fmt.Sprint("w", i))
		mine := map[int]bool{rng.IntN(groups): true, rng.IntN(groups): true, rng.IntN(groups): true}
		for k := range cols {
			// A word uses half of the dimensions of its groups, and one in fifty others.
			if in := mine[k%groups]; in && rng.IntN(2) == 0 || !in && rng.IntN(50) == 0 {
				m.Codes.Index = append(m.Codes.Index, int32(k))
				m.Codes.Value = append(m.Codes.Value, rng.Float32()+.5)
			}
		}
		m.Codes.Ptr = append(m.Codes.Ptr, int64(len(m.Codes.Index)))
	}
	return m
}

// Nearest neighbours on the map are of the same group.
func TestMapKeepsGroups(t *testing.T) {
	groups, members := 30, 15
	if testonly.Full {
		groups = 200
	}
	m := planted(groups, members, 10*groups)
	x := newExplorer(t, m, "test")
	c := x.dimensionMap()
	share := recall(c.Points, func(i, j int) bool { return c.Points[i].Dimension%groups == c.Points[j].Dimension%groups })
	t.Logf("of the nearest twelve, %.3f are of the same group", share)
	if share < .9 { // chance: 0.03
		t.Errorf("of the nearest twelve, %.3f are of the same group, want 0.9", share)
	}
	same := 0
	for i, p := range c.Points {
		for _, q := range c.Points[:i] {
			if p.Dimension%groups == q.Dimension%groups && p.Region == q.Region {
				same++
			}
		}
	}
	// Each region consists of whole groups.
	if share := float64(same) / float64(groups*members*(members-1)/2); share < .8 {
		t.Errorf("%.3f of the pairs of a group are in one region, want 0.8", share)
	}

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	again := newExplorer(t, m, "test").dimensionMap()
	if !slices.Equal(again.Points, c.Points) {
		t.Error("another map with another number of processors")
	}
}

// The words of a region are nearest to its dimensions.
func TestRegionWords(t *testing.T) {
	m := planted(6, 60, 300)
	c := newExplorer(t, m, "test").dimensionMap()
	codes := clitest.Matrix(m.Codes)
	norms := make([]float64, m.Codes.Cols)
	for k := range norms {
		values := column(codes, k, func(v float64) float64 { return v })
		norms[k] = floats.Norm(values, 2)
	}
	for r, region := range c.Regions {
		sum := make([]float64, m.Codes.Cols)
		for _, p := range c.Points {
			if p.Region == r {
				sum[p.Dimension] = 1 / norms[p.Dimension]
			}
		}
		cosine := func(word string) float64 {
			row := codes[slices.Index(m.Codes.IDs, word)]
			return floats.Dot(row, sum) / floats.Norm(row, 2) / floats.Norm(sum, 2)
		}
		var all []float64
		for _, w := range m.Codes.IDs {
			all = append(all, cosine(w))
		}
		slices.Sort(all)
		for i, w := range region.Words {
			if want := all[len(all)-1-i]; len(region.Words) != regionWords || math.Abs(cosine(w)-want) > 1e-6 {
				t.Errorf("region %d: word %d is %s with %v, want %v", r, i, w, cosine(w), want)
			}
		}
	}
}

// The affinities are symmetric, sum to 1, and have the given perplexity.
func TestAffinities(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const n = 100
	near := make([][]link, n)
	for i := range near {
		for j := 1; j <= links; j++ {
			near[i] = append(near[i], link{(i + j) % n, 1 + float64(j)*rng.Float64()})
		}
		slices.SortFunc(near[i], func(a, b link) int { return cmp.Compare(a.value, b.value) })
		row := slices.Clone(near[i])
		scale(row, 1)
		entropy := 0.0
		for _, l := range row {
			entropy -= l.value * math.Log(l.value)
		}
		if math.Abs(math.Exp(entropy)-min(perplexity, float64(len(row)))) > .01 {
			t.Errorf("row %d of %d has perplexity %v", i, len(row), math.Exp(entropy))
		}
	}
	p := make([][n]float64, n)
	sum := 0.0
	for i, row := range affinities(near) {
		for _, l := range row {
			if p[i][l.to] != 0 {
				t.Fatalf("%d and %d are linked twice", i, l.to)
			}
			p[i][l.to] = l.value
			sum += l.value
		}
	}
	for i := range p {
		for j := range p {
			if p[i][j] != p[j][i] {
				t.Fatalf("p(%d, %d) is %v, the other way %v", i, j, p[i][j], p[j][i])
			}
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the affinities sum to %v", sum)
	}
}

// The repulsion of the tree approximates the sum over all pairs, even for points at one place.
func TestRepulsion(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	at := make([][2]float64, 500)
	for i := range at {
		at[i] = [2]float64{20 * rng.NormFloat64(), 5 * rng.NormFloat64()}
		if i%10 == 1 {
			at[i] = at[i-1]
		}
	}
	var tree quadtree
	tree.build(at)
	var wrong, sizes float64
	for _, p := range at {
		var want [2]float64
		norm, size := 0.0, 0.0
		for _, y := range at {
			if y == p {
				continue
			}
			q := 1 / (1 + distance2(p, y))
			norm += q
			size += q * q * math.Sqrt(distance2(p, y))
			for c := range want {
				want[c] += q * q * (p[c] - y[c])
			}
		}
		force, z := tree.repulsion(p)
		if math.Abs(z-norm) > .1*norm {
			t.Errorf("at %v, Σq is %v, want %v", p, z, norm)
		}
		wrong += math.Sqrt(distance2(force, want))
		sizes += size
	}
	if wrong > .05*sizes { // error due to theta
		t.Errorf("relative error of forces %.3f", wrong/sizes)
	}
}
