//go:build full

package e2e

import (
	"math"
	"slices"
	"testing"

	"overcomplete/model"
	"overcomplete/vectors"
)

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
	t.Parallel()
	dir, trained, held := heldOut(t, 8000, "--sparsity 0.92 --quiet")
	dir.MustRun(t, "encode model test.txt -o test --quiet")
	m, test := dir.Model(t, "model"), dir.Model(t, "test")
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
