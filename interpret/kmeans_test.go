package interpret

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
	given, err := json.Marshal(map[string]any{"x": x.Data, "dim": x.Dim, "centers": plusPlus(x, k, rand.New(rand.NewPCG(1, 0)))})
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
	if got := KMeans(x, k, 1); !slices.Equal(got, want) {
		n := 0
		for i := range got {
			if got[i] != want[i] {
				n++
			}
		}
		t.Errorf("%d of %d words are in other clusters", n, len(got))
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
		got := KMeans(x, k, seed)
		for i, c := range got {
			if c != got[i%k] || i < k && slices.Index(got, c) != i {
				t.Fatalf("seed %d: word %d is in cluster %d of %v", seed, i, c, got[:k])
			}
		}
	}
	sample := sampleVectors(t, 1000)
	want := KMeans(sample, 20, 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(7))
	if !slices.Equal(KMeans(sample, 20, 1), want) {
		t.Error("other clusters on seven processors")
	}
	// Of two distinct vectors there are two clusters, however many are asked for.
	twice := &vectors.Dense{Words: numberedWords(4), Dim: 1, Data: []float32{1, 2, 1, 2}}
	got := KMeans(twice, 3, 1)
	if got[0] != got[2] || got[1] != got[3] || got[0] == got[1] {
		t.Errorf("clusters of two vectors: %v", got)
	}
}
