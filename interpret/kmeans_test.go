package interpret

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"overcomplete/vectors"
)

func sampleVectors(t *testing.T, words int) *vectors.Dense {
	t.Helper()
	x, _, err := vectors.Read(context.Background(), "../testdata/godoc.50d.txt.gz", vectors.ReadOptions{MaxWords: words})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// scikit-learn's Lloyd iteration from the same centres.
const clusterWithScikitLearn = `
import json, sys
import numpy as np
from sklearn.cluster import KMeans
given = json.load(open(sys.argv[1]))
x = np.array(given["x"], np.float32).reshape(-1, given["dim"])
centers = np.array(given["centers"], np.float32).reshape(-1, given["dim"])
k = KMeans(len(centers), init=centers, n_init=1, algorithm="lloyd", tol=0, max_iter=100).fit(x)
print(json.dumps(k.labels_.tolist()))
`

func TestKMeansAgainstScikitLearn(t *testing.T) {
	python := os.Getenv("OVERCOMPLETE_PYTHON")
	if python == "" {
		t.Skip("needs Python with scikit-learn: set OVERCOMPLETE_PYTHON")
	}
	x := sampleVectors(t, 2000)
	const k = 30
	centers, err := plusPlus(t.Context(), x, k, rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	given, err := json.Marshal(map[string]any{"x": x.Data, "dim": x.Dim, "centers": centers})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "given.json")
	if err := os.WriteFile(path, given, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", clusterWithScikitLearn, path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []int
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if got := kMeans(t, x, k, 1); !slices.Equal(got, want) {
		n := 0
		for i := range got {
			if got[i] != want[i] {
				n++
			}
		}
		t.Errorf("%d of %d words are in other clusters", n, len(got))
	}
}

func kMeans(t *testing.T, x *vectors.Dense, k int, seed uint64) []int {
	t.Helper()
	cluster, err := KMeans(t.Context(), x, k, seed)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// doneAfter returns a context that is done after it has been asked n times whether
// it is.
func doneAfter(n int64) context.Context {
	c := &doneLater{Context: context.Background()}
	c.left.Store(n)
	return c
}

type doneLater struct {
	context.Context
	left atomic.Int64
}

func (c *doneLater) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// In the end each vector is nearest to the mean of its own cluster. Sums in float32 would fail far from
// zero.
func TestKMeansConverges(t *testing.T) {
	x := sampleVectors(t, 1000)
	far := &vectors.Dense{Words: x.Words, Dim: x.Dim}
	for _, v := range x.Data {
		far.Data = append(far.Data, 1000+v)
	}
	const k = 20
	for name, x := range map[string]*vectors.Dense{"sample": x, "far from zero": far} {
		cluster := kMeans(t, x, k, 1)
		var means [k][]float64
		var sizes [k]float64
		for i, c := range cluster {
			if means[c] == nil {
				means[c] = make([]float64, x.Dim)
			}
			for l, v := range x.Row(i) {
				means[c][l] += float64(v)
			}
			sizes[c]++
		}
		elsewhere := 0
		for i, c := range cluster {
			distance := func(c int) float64 {
				sum := 0.0
				for l, v := range x.Row(i) {
					d := float64(v) - means[c][l]/sizes[c]
					sum += d * d
				}
				return sum
			}
			for other := range k {
				if sizes[other] > 0 && distance(other) < distance(c)-1e-9 { // rounding of sums around 1e4
					elsewhere++
					break
				}
			}
		}
		if elsewhere > 0 {
			t.Errorf("%s: %d of %d words are nearer to the mean of another cluster", name, elsewhere, x.Len())
		}
	}
}

func TestKMeansStops(t *testing.T) {
	x := sampleVectors(t, 1000)
	for _, n := range []int64{0, 10, 100, 150} {
		if _, err := KMeans(doneAfter(n), x, 20, 1); err != context.Canceled {
			t.Errorf("interrupted after %d checks: %v", n, err)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(-1)} {
		bad := &vectors.Dense{Words: []string{"a", "b"}, Dim: 1, Data: []float32{1, float32(v)}}
		if _, err := KMeans(t.Context(), bad, 1, 1); err == nil || !strings.Contains(err.Error(), `"b"`) {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// Clusters far apart are found whatever the seed, and the result does not depend
// on the number of processors.
func TestKMeans(t *testing.T) {
	const k, each = 5, 70
	x := &vectors.Dense{Words: numberedWords(k * each), Dim: k}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range k * each {
		for l := range k {
			v := float32(rng.NormFloat64())
			if l == i%k {
				v += 100
			}
			x.Data = append(x.Data, v)
		}
	}
	for seed := range uint64(20) {
		got := kMeans(t, x, k, seed)
		for i, c := range got {
			if c != got[i%k] || i < k && slices.Index(got, c) != i {
				t.Fatalf("seed %d: word %d is in cluster %d of %v", seed, i, c, got[:k])
			}
		}
	}
	sample := sampleVectors(t, 1000)
	want := kMeans(t, sample, 20, 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(7))
	if !slices.Equal(kMeans(t, sample, 20, 1), want) {
		t.Error("other clusters on seven processors")
	}
	// Of two distinct vectors there are two clusters, however many are asked for.
	twice := &vectors.Dense{Words: numberedWords(4), Dim: 1, Data: []float32{1, 2, 1, 2}}
	got := kMeans(t, twice, 3, 1)
	if got[0] != got[2] || got[1] != got[3] || got[0] == got[1] {
		t.Errorf("clusters of two vectors: %v", got)
	}
}

func TestFromDense(t *testing.T) {
	x := &vectors.Dense{Words: []string{"a", "b", "c"}, Dim: 2, Data: []float32{1, 0, 0, 0, -2, 3}}
	got := FromDense(x)
	want := &vectors.Sparse{Words: x.Words, CSR: vectors.CSR{Rows: 3, Cols: 2, Ptr: []int64{0, 1, 1, 3}, Index: []int32{0, 0, 1}, Value: []float32{1, -2, 3}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want = &vectors.Sparse{Words: []string{"c", "a"}, CSR: vectors.CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 2, 3}, Index: []int32{0, 1, 0}, Value: []float32{-2, 3, 1}}}
	if got := SelectRows(got, []int{2, 0}); !reflect.DeepEqual(got, want) {
		t.Errorf("rows 2 and 0: %v", got)
	}
}
