//go:build full

package explore

import (
	"context"
	"math"
	"slices"
	"testing"

	"overcomplete/cpu"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/train"
	"overcomplete/vectors"
)

// On a model of 3,000 dimensions from GoogleNews, the recall of twelve neighbours is at least 0.3.
func TestMapRealData(t *testing.T) {
	path := testonly.Data(t, "vectors/googlenews.300d.8000.txt.gz")
	x, source, err := vectors.Read(t.Context(), []string{path}, vectors.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := train.Fit(context.Background(), x, train.Best(), cpu.Device{}, train.Options{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	c := newExplorer(t, m, "test").dimensionMap()
	share := recall(c.Points, nearCodes(m, c.Points))
	t.Logf("recall %.3f", share)
	if share < .3 { // chance: 0.004
		t.Errorf("recall %.3f, want 0.3", share)
	}
}

// nearCodes returns a function that reports whether the column of point j is among the twelve nearest to the column
// of point i, by cosine.
func nearCodes(m *model.Model, points []point) func(i, j int) bool {
	const k = 12
	cols := m.Codes.Cols
	products := make([]float64, cols*cols) // sums over words
	for row := range m.Codes.Rows {
		index, value := m.Codes.Row(row)
		for a, ka := range index {
			for b, kb := range index {
				products[int(ka)*cols+int(kb)] += float64(value[a]) * float64(value[b])
			}
		}
	}
	cosine := func(i, j int) float64 {
		a, b := points[i].Dimension, points[j].Dimension
		return products[a*cols+b] / math.Sqrt(products[a*cols+a]*products[b*cols+b])
	}
	twelfth := make([]float64, len(points))
	for i := range points {
		var all []float64
		for j := range points {
			all = append(all, cosine(i, j))
		}
		slices.Sort(all)
		twelfth[i] = all[len(all)-k-1] // the largest cosine is with itself
	}
	return func(i, j int) bool { return cosine(i, j) >= twelfth[i] }
}
