package recall

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/testonly/encodetest"
	"overcomplete/vectors"
)

const rows, dim, atoms, k = 300, 8, 20, 5

// sample returns vectors and codes with a row of zeros in both. They are unrelated, so that each search finds other rows.
func sample(t *testing.T) (*vectors.Dense, *model.Model) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := clitest.Vectors(rows, dim)
	clear(x.Row(7))
	dense := make([][]float32, rows)
	for i := range dense {
		dense[i] = make([]float32, atoms)
		for j := range dense[i] {
			if i != 7 && rng.IntN(4) == 0 {
				dense[i][j] = float32(rng.NormFloat64())
			}
		}
	}
	m := clitest.NewModel(x.IDs, dense)
	m.Dictionary = model.Dictionary{Dim: dim, Atoms: make([]float32, atoms*dim), Mean: make([]float32, dim)}
	for i := range m.Dictionary.Atoms {
		m.Dictionary.Atoms[i] = float32(rng.NormFloat64())
	}
	for j := range m.Dictionary.Mean {
		m.Dictionary.Mean[j] = float32(rng.NormFloat64())
	}
	return x, m
}

// first returns the n rows with the largest scores in among, except the row without.
func first(scores []float64, n, without int, among []int) []int {
	order := slices.Clone(among)
	order = slices.DeleteFunc(order, func(i int) bool { return i == without })
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	return order[:min(n, len(order))]
}

func cosine(a, b []float64) float64 {
	if norms := floats.Norm(a, 2) * floats.Norm(b, 2); norms > 0 {
		return floats.Dot(a, b) / norms
	}
	return 0
}

// The oracle multiplies the query by aD, whereas Measure multiplies the query's weights by a. New queries have random
// vectors and codes.
func TestMeasureAgainstFullMatrices(t *testing.T) {
	t.Run("rows of the index", func(t *testing.T) { testMeasure(t, nil, nil) })
	t.Run("new queries", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		queries, encoded := &vectors.Dense{Dim: dim}, &vectors.Sparse{CSR: vectors.CSR{Cols: atoms}}
		for range 40 {
			queries.IDs = append(queries.IDs, "same")
			for range dim {
				queries.Data = append(queries.Data, float32(rng.NormFloat64()))
			}
			encoded.AppendRow([]int32{int32(rng.IntN(9)), int32(9 + rng.IntN(atoms-9))}, []float32{rng.Float32() + 0.1, rng.Float32() + 0.1})
		}
		testMeasure(t, queries, encoded)
	})
}

func testMeasure(t *testing.T, queries *vectors.Dense, encoded *vectors.Sparse) {
	const weights = 4
	x, m := sample(t)
	from, codes, isNew := x, m.Codes, queries != nil
	if isNew {
		from, codes = queries, encoded
	}
	q, err := NewQueries(t.Context(), x, queries, rows, k, 3)
	testonly.Must(t, err)
	if !isNew && (len(q.Rows) != rows-1 || slices.Contains(q.Rows, 7)) || isNew && len(q.Rows) != queries.Len() {
		t.Fatalf("%d queries, the row of zeros among them: %v", len(q.Rows), slices.Contains(q.Rows, 7))
	}
	testonly.Must(t, Check(m, x))
	got, err := q.Measure(t.Context(), m, encoded, weights)
	testonly.Must(t, err)
	a, queryCodes := clitest.Matrix(m.Codes), clitest.Matrix(codes)
	var decoded, part [rows][]float64 // μ + aD, aD
	all := make([]int, rows)
	for i := range rows {
		all[i] = i
		part[i] = make([]float64, dim)
		for c, v := range a[i] {
			floats.AddScaled(part[i], v, encodetest.Widen(m.Dictionary.Atom(c)))
		}
		decoded[i] = floats.AddTo(make([]float64, dim), part[i], encodetest.Widen(m.Dictionary.Mean))
	}
	var want Recalls
	for n, row := range q.Rows {
		dense, byCodes, byProducts, byLargest := make([]float64, rows), make([]float64, rows), make([]float64, rows), make([]float64, rows)
		query, w := encodetest.Widen(from.Row(row)), make([]float64, atoms)
		for c := range w {
			w[c] = floats.Dot(query, encodetest.Widen(m.Dictionary.Atom(c)))
		}
		fewest := slices.Sorted(slices.Values(w))[atoms-weights]
		self := row
		if isNew {
			self = -1
		}
		var sharing []int
		for i := range rows {
			dense[i] = cosine(query, encodetest.Widen(x.Row(i)))
			byCodes[i] = cosine(queryCodes[row], a[i])
			if byCodes[i] > 0 {
				sharing = append(sharing, i)
			}
			norm := floats.Norm(decoded[i], 2)
			byProducts[i] = floats.Dot(query, part[i]) / norm
			for c, v := range a[i] {
				if w[c] >= max(fewest, 0) {
					byLargest[i] += w[c] * v / norm
				}
			}
		}
		neighbours := first(dense, k, self, all)
		if !slices.Equal(q.Neighbours[n], neighbours) {
			t.Fatalf("nearest to row %d: %v, want %v", row, q.Neighbours[n], neighbours)
		}
		share := func(found []int) (s float64) {
			for _, i := range found {
				if slices.Contains(neighbours, i) {
					s += 1 / float64(k) / float64(len(q.Rows))
				}
			}
			return s
		}
		candidates := first(byLargest, Candidates, self, all)
		want.Codes.Recall += share(first(byCodes, k, self, sharing))
		want.Products.Recall += share(first(byProducts, k, self, all))
		want.Largest.Recall += share(candidates[:k])
		want.Reranked.Recall += share(first(byProducts, k, self, candidates))
		want.Dense.Recall += share(first(dense, k, self, candidates))
	}
	const rounding = 1e-9
	seen := map[float64]bool{}
	for _, way := range []struct {
		name      string
		got, want Recall
	}{{"codes", got.Codes, want.Codes}, {"products", got.Products, want.Products}, {"largest", got.Largest, want.Largest},
		{"reranked", got.Reranked, want.Reranked}, {"dense", got.Dense, want.Dense}} {
		if math.Abs(way.got.Recall-way.want.Recall) > rounding {
			t.Errorf("by %s: %v, want %v", way.name, way.got.Recall, way.want.Recall)
		}
		if seen[way.got.Recall] {
			t.Errorf("%s finds the same as another search", way.name)
		}
		seen[way.got.Recall] = true
	}
}

func TestRecall(t *testing.T) {
	q := Queries{Rows: []int{0, 1, 2, 3}, Neighbours: [][]int{{1, 2}, {3, 4}, {5, 6}, {7, 8}}}
	found := [][]int{{2, 1}, {3, 9}, nil, {8, 7}}
	got, err := q.recall(t.Context(), func(row int) []int { return found[row] })
	// The shares are 1, ½, 0 and 1. Recall is their mean, and Stderr is s/√n with s² = Σ(x − mean)²/3.
	if want := math.Sqrt((2*0.375*0.375 + 0.125*0.125 + 0.625*0.625) / 3 / 4); got.Recall != 0.625 || math.Abs(got.Stderr-want) > 1e-15 || err != nil {
		t.Errorf("%+v, %v, want 0.625 and %v", got, err, want)
	}
}

func TestCancelled(t *testing.T) {
	x, m := sample(t)
	q, err := NewQueries(t.Context(), x, nil, 10, k, 1)
	testonly.Must(t, err)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewQueries(done, x, nil, 10, k, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if _, err := q.Measure(done, m, nil, 9); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
