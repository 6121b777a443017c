package cluster

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

func sample(t *testing.T, words int) *vectors.Dense {
	t.Helper()
	x, _, err := vectors.Read(t.Context(), []string{"../../testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{MaxRows: words})
	testonly.Must(t, err)
	return x
}

func cluster(t *testing.T, x []float32, dim, k int, seed uint64) []int {
	t.Helper()
	clusters, err := KMeans(t.Context(), x, dim, k, seed)
	testonly.Must(t, err)
	return clusters
}

// At convergence each vector is nearest to the mean of its own cluster. Sums in float32 would fail for
// vectors far from zero.
func TestConverges(t *testing.T) {
	x := sample(t, 1000)
	for i := range x.Data {
		x.Data[i] += 1000
	}
	const k = 20
	clusters := cluster(t, x.Data, x.Dim, k, 1)
	means, sizes := make([][]float64, k), make([]float64, k)
	for _, c := range clusters {
		sizes[c]++
	}
	for i, c := range clusters {
		if means[c] == nil {
			means[c] = make([]float64, x.Dim)
		}
		for l, v := range x.Row(i) {
			means[c][l] += float64(v) / sizes[c]
		}
	}
	for i, c := range clusters {
		for other := range k {
			if sizes[other] > 0 && squaredDistance(x.Row(i), means[other]) < squaredDistance(x.Row(i), means[c])-1e-9 { // 1e-9 for the rounding of values around 1e4
				t.Fatalf("row %d of cluster %d is nearer to the mean of cluster %d", i, c, other)
			}
		}
	}
}

// KMeans separates distant clusters for any seed. The result doesn't depend on the number of processors.
func TestCluster(t *testing.T) {
	const k, each = 5, 70
	var x []float32
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range k * each {
		for l := range k {
			v := float32(rng.NormFloat64())
			if l == i%k {
				v += 100
			}
			x = append(x, v)
		}
	}
	for seed := range uint64(20) {
		got := cluster(t, x, k, k, seed)
		for i, c := range got {
			if c != got[i%k] || i < k && slices.Index(got, c) != i {
				t.Fatalf("seed %d: row %d is in cluster %d of %v", seed, i, c, got[:k])
			}
		}
	}
	s := sample(t, 1000)
	want := cluster(t, s.Data, s.Dim, 20, 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(7))
	if !slices.Equal(cluster(t, s.Data, s.Dim, 20, 1), want) {
		t.Error("other clusters on seven processors")
	}
	// Two distinct vectors make two nonempty clusters for any k.
	if got := cluster(t, []float32{1, 2, 1, 2}, 1, 3, 1); got[0] != got[2] || got[1] != got[3] || got[0] == got[1] {
		t.Errorf("clusters of two vectors: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := KMeans(ctx, x, k, k, 1); err != context.Canceled {
		t.Errorf("cancelled: error %v", err)
	}
}
