package cli

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/npy"
	"overcomplete/internal/realdata"
	"overcomplete/model"
	"overcomplete/vectors"
)

// heldOut trains a model named model, by the given flags, on nine words in ten of
// the GoogleNews vectors, in train.txt, and returns the others, which are in
// test.txt. All is in the current directory.
func heldOut(t *testing.T, flags string) (trained, held *vectors.Dense) {
	t.Helper()
	path := realdata.Path(t, "vectors/googlenews.300d.8000.txt.gz")
	if testing.Short() {
		t.Skip("trains for some seconds; left out by -short")
	}
	t.Chdir(t.TempDir())
	all, _, err := vectors.Read(context.Background(), path, vectors.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trained, held = &vectors.Dense{Dim: all.Dim}, &vectors.Dense{Dim: all.Dim}
	out := rand.New(rand.NewPCG(1, 1)).Perm(all.Len())[:all.Len()/10]
	slices.Sort(out)
	for i, word := range all.Words {
		d := trained
		if _, found := slices.BinarySearch(out, i); found {
			d = held
		}
		d.Words, d.Data = append(d.Words, word), append(d.Data, all.Row(i)...)
	}
	writeFile(t, "train.txt", gloVeText(trained))
	writeFile(t, "test.txt", gloVeText(held))
	mustRun(t, "train --recipe paper train.txt -o model --device cpu "+flags)
	return trained, held
}

// neighbours returns the k rows of m nearest to each row of q by cosine, itself
// left out. Rows are scaled in place.
func neighbours(m, q [][]float64, self bool, k int) [][]int {
	for _, rows := range [][][]float64{m, q} {
		for _, x := range rows {
			var square float64
			for _, v := range x {
				square += v * v
			}
			for j := range x {
				x[j] /= math.Sqrt(max(square, 1e-300))
			}
		}
	}
	near := make([][]int, len(q))
	for i, x := range q {
		cosine := make([]float64, len(m))
		order := make([]int, len(m))
		for j, y := range m {
			order[j] = j
			for l := range x {
				cosine[j] += x[l] * y[l]
			}
		}
		if self {
			cosine[i] = -1
		}
		slices.SortFunc(order, func(a, b int) int {
			if cosine[a] > cosine[b] {
				return -1
			}
			return 1
		})
		near[i] = order[:k]
	}
	return near
}

// denseRows returns rows of codes, or of vectors.
func denseRows(n, dim int, row func(i int, into []float64)) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, dim)
		row(i, rows[i])
	}
	return rows
}

func codeRows(m *model.Model, n int) [][]float64 {
	return denseRows(n, m.Codes.Cols, func(i int, into []float64) {
		index, value := m.Codes.Row(i)
		for j, k := range index {
			into[k] = float64(value[j])
		}
	})
}

func vectorRows(d *vectors.Dense, n int) [][]float64 {
	return denseRows(n, d.Dim, func(i int, into []float64) {
		for j, x := range d.Row(i) {
			into[j] = float64(x)
		}
	})
}

// Of ten neighbours by dense vectors, how many are neighbours by codes.
func shared(dense, sparse [][]int) (mean float64) {
	for i := range dense {
		for _, j := range dense[i] {
			if slices.Contains(sparse[i], j) {
				mean += 1 / float64(len(dense))
			}
		}
	}
	return mean
}

// Words that were not trained on get codes about as good as those that were: their
// error, and how many of their ten nearest words among 2,000 trained ones are
// the same by codes as by dense vectors.
func TestHeldOutRealData(t *testing.T) {
	trained, held := heldOut(t, "--recipe best --sparsity 0.92 --quiet")
	mustRun(t, "encode model test.txt -o test --quiet")
	m, test := openModel(t, "model"), openModel(t, "test")
	const some, k = 2000, 10
	from := func(self bool, dense, codes [][]float64, n int) float64 {
		return shared(neighbours(vectorRows(trained, some), dense[:n], self, k), neighbours(codeRows(m, some), codes[:n], self, k))
	}
	ofTrained := from(true, vectorRows(trained, 200), codeRows(m, 200), 200)
	ofHeld := from(false, vectorRows(held, 200), codeRows(test, 200), 200)
	e, h := m.Info.Encoding, test.Info.Encoding
	t.Logf("trained on: error %.4f, zeros %.2f %%, %.1f of 10 neighbours; held out: error %.4f, zeros %.2f %%, %.1f of 10 neighbours",
		e.Error, 100*e.Sparsity, ofTrained, h.Error, 100*h.Sparsity, ofHeld)
	if e.Error > 0.35 || e.Sparsity < 0.915 {
		t.Errorf("error %v, sparsity %v: want under 0.35 at 92 %%", e.Error, e.Sparsity)
	}
	if h.Sparsity < 0.915 || ofHeld < ofTrained-2 {
		t.Errorf("held-out words: sparsity %v, %v neighbours of ten, trained ones %v", h.Sparsity, ofHeld, ofTrained)
	}
}

// byScikitLearn solves the lasso with scikit-learn, whose objective has a half:
// ½‖y − aD‖² + α‖a‖₁ with α = λ/2.
const byScikitLearn = `
import sys, warnings
import numpy as np
from sklearn.decomposition import sparse_encode

warnings.simplefilter("error")  # of rows that do not converge
y, d = np.load("y.npy").astype(np.float64), np.load("d.npy").astype(np.float64)
penalty = float(sys.argv[1])
a = sparse_encode(y, d, algorithm="lasso_cd", alpha=penalty / 2, max_iter=1000000, positive=sys.argv[2] == "true")
np.save("objective.npy", (((y - a @ d) ** 2).sum(axis=1) + penalty * abs(a).sum(axis=1)).astype(np.float32))
`

// The objective of the exact lasso on held-out words is scikit-learn's.
func TestExactRealData(t *testing.T) {
	interpreter := python(t)
	if out, err := exec.Command(interpreter, "-c", "import sklearn").CombinedOutput(); err != nil {
		t.Skipf("%s cannot import scikit-learn: %v\n%s", interpreter, err, out)
	}
	const rows, penalty = 50, 0.5
	_, held := heldOut(t, "--center --epochs 10 --quiet")
	m := openModel(t, "model")
	dim := held.Dim
	y := make([]float32, rows*dim)
	m.Dictionary.Center(y, held.Data[:rows*dim])
	save := func(name string, shape []int, data []float32) {
		var b bytes.Buffer
		if err := npy.Write(&b, shape, data); err != nil {
			t.Fatal(err)
		}
		writeFile(t, name, b.Bytes())
	}
	save("y.npy", []int{rows, dim}, y)
	save("d.npy", []int{m.Info.Training.Atoms, dim}, m.Dictionary.Atoms)
	for _, nonnegative := range []bool{false, true} {
		cmd := exec.Command(interpreter, "-c", byScikitLearn, fmt.Sprint(penalty), fmt.Sprint(nonnegative))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		f, err := os.Open("objective.npy")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		a, err := npy.Open(f, -1)
		if err != nil {
			t.Fatal(err)
		}
		want, err := a.Float32(a.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := cpu.Device{}.Encoder(&m.Dictionary, encode.Options{Lambda: penalty, Nonnegative: nonnegative, Gap: 1e-4})
		if err != nil {
			t.Fatal(err)
		}
		codes, err := e.Encode(t.Context(), held.Data[:rows*dim])
		if err != nil {
			t.Fatal(err)
		}
		var ours, theirs, most float64
		for i := range rows {
			objective := codes.Loss[i]
			_, value := codes.Row(i)
			for _, v := range value {
				objective += penalty * math.Abs(float64(v))
			}
			ours, theirs = ours+objective/rows, theirs+float64(want[i])/rows
			most = max(most, math.Abs(objective/float64(want[i])-1))
		}
		t.Logf("nonnegative %v: objective %.6f, scikit-learn's %.6f; words differ by up to %.1e; largest gap %.1e",
			nonnegative, ours, theirs, most, slices.Max(codes.Gap))
		// Ours may be above the minimum by the gap that was asked for.
		if most > 1e-4 || slices.Max(codes.Gap) > 1e-4 {
			t.Errorf("nonnegative %v: objectives differ by up to %v", nonnegative, most)
		}
	}
}
