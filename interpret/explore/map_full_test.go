//go:build full

package explore

import (
	"context"
	"math"
	"slices"
	"testing"

	"overcomplete/cpu"
	"overcomplete/internal/testonly/realdata"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// On a trained model of 3,000 dimensions, one in five of the twelve dimensions whose codes
// are nearest is among the twelve that are nearest on the map.
func TestMapRealData(t *testing.T) {
	path := realdata.Path(t, "vectors/googlenews.300d.8000.txt.gz")
	if testing.Short() {
		t.Skip("trains a model")
	}
	x, source, err := vectors.Read(t.Context(), path, vectors.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := train.Fit(context.Background(), x, train.Best(), cpu.Device{}, train.Options{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	c := newExplorer(t, m, "test").mapped()
	share := recall(c.Points, nearCodes(m, c.Points))
	t.Logf("recall %.3f", share)
	if share < .2 { // by chance, 0.004
		t.Errorf("recall %.3f, want 0.2", share)
	}
	for _, r := range c.Regions {
		t.Log(r.Words)
	}
}

// nearCodes returns whether j is among the twelve dimensions whose codes have the largest
// cosine with i's, for indices in points. All inner products are summed word by word.
func nearCodes(m *model.Model, points []point) func(i, j int) bool {
	const k = 12
	cols := m.Codes.Cols
	products := make([]float64, cols*cols)
	for row := range m.Codes.Rows {
		index, value := m.Codes.Row(row)
		for a, ka := range index {
			line := products[int(ka)*cols : (int(ka)+1)*cols]
			for b, kb := range index {
				line[kb] += float64(value[a]) * float64(value[b])
			}
		}
	}
	cosine := func(i, j int) float64 {
		a, b := points[i].Dimension, points[j].Dimension
		return products[a*cols+b] / math.Sqrt(products[a*cols+a]*products[b*cols+b])
	}
	least := make([]float64, len(points)) // the cosine of the twelfth
	for i := range points {
		var all []float64
		for j := range points {
			if j != i {
				all = append(all, cosine(i, j))
			}
		}
		slices.Sort(all)
		least[i] = all[len(all)-k]
	}
	return func(i, j int) bool { return cosine(i, j) >= least[i] }
}
