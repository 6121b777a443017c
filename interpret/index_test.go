package interpret

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// An index agrees with the sorted columns of the dense matrix.
func TestIndex(t *testing.T) {
	const rows, cols = 300, 40
	s := clitest.RandomCodes(1, rows, cols, .2)
	a := clitest.Matrix(s)
	for _, workers := range []int{1, 3, 400} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		x := NewIndex(s)
		for k := range cols {
			checkDimension(t, x, a, k)
		}
		for i := range 20 {
			checkNearest(t, x, a, x.Code(i), a[i], i)
			weights := x.Code(i).Weights()
			for j, w := range weights {
				if w.Value == 0 || float64(w.Value) != a[i][w.Dimension] || j > 0 && math.Abs(float64(w.Value)) > math.Abs(float64(weights[j-1].Value)) {
					t.Fatalf("weights of %d: %v", i, weights)
				}
			}
		}
		for k, got := range x.Variances() {
			if want := stat.PopVariance(column(a, k), nil); math.Abs(got-want) > 1e-12*want {
				t.Fatalf("variance of %d: %v, want %v", k, got, want)
			}
		}
	}
}

// column returns the values of a dimension.
func column(a [][]float64, k int) (values []float64) {
	for _, row := range a {
		values = append(values, row[k])
	}
	return values
}

// ranked returns the rows of a pole in decreasing order of their magnitudes.
func ranked(a [][]float64, p Pole) (rows []int) {
	values := column(a, p.Dimension)
	if p.Negative {
		floats.Scale(-1, values)
	}
	for i, v := range values {
		if v > 0 {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(values[j], values[i]) })
	return rows
}

func checkDimension(t *testing.T, x *Index, a [][]float64, k int) {
	t.Helper()
	values := column(a, k)
	for _, p := range []Pole{{k, false}, {k, true}} {
		var want []Entry
		for _, i := range ranked(a, p) {
			want = append(want, Entry{i, float32(values[i])})
		}
		for _, n := range []int{0, 1, 5, 1000} {
			if got := x.Top(p, n); !slices.Equal(got, want[:min(n, len(want))]) {
				t.Fatalf("top %d of %v: %v, want %v", n, p, got, want)
			}
		}
	}
	if p := x.Poles(k); len(p) != 2 || p[0].Negative != (-floats.Min(values) > floats.Max(values)) || p[1].Negative == p[0].Negative {
		t.Fatalf("poles of %d: %v", k, p)
	}
	rows, nonzeros := x.Dimension(k)
	got := make([]float64, len(a))
	for j, i := range rows {
		got[i] = float64(nonzeros[j])
	}
	if !slices.Equal(got, values) || !slices.IsSorted(rows) || slices.Contains(nonzeros, 0) {
		t.Fatalf("dimension %d: rows %v have the values %v, want %v", k, rows, nonzeros, values)
	}
}

// cosine is NaN if one of the vectors is zero.
func cosine(a, b []float64) float64 { return floats.Dot(a, b) / floats.Norm(a, 2) / floats.Norm(b, 2) }

// checkNearest checks the neighbours of a code, which is given as a dense vector, too.
func checkNearest(t *testing.T, x *Index, a [][]float64, code Code, dense []float64, excluded ...int) {
	t.Helper()
	var want []float64
	for i, row := range a {
		if c := cosine(dense, row); c > 0 && !slices.Contains(excluded, i) {
			want = append(want, c)
		}
	}
	slices.SortFunc(want, func(a, b float64) int { return cmp.Compare(b, a) })
	for _, n := range []int{0, 7, 1000} {
		got := x.Nearest(code, n, excluded...)
		if len(got) != min(n, len(want)) {
			t.Fatalf("%d nearest to %v: %v, want %v", n, code, got, want)
		}
		for j, g := range got { // rounding may reorder equal cosines
			if math.Abs(g.Cosine-want[j]) > 1e-12 || math.Abs(g.Cosine-cosine(dense, a[g.Row])) > 1e-12 {
				t.Fatalf("neighbour %d of %v: %v, want %v", j, code, g, want[j])
			}
		}
	}
}

// An index of more rows and columns than a tile or a block is complete.
func TestColumnsOfLargeIndex(t *testing.T) {
	s := clitest.RandomCodes(7, 2*blockRows+1000, 600, .01)
	x := NewIndex(s)
	rows, values := make([][]int32, s.Cols), make([][]float32, s.Cols)
	for i := range s.Rows {
		index, value := s.Row(i)
		for j, k := range index {
			rows[k], values[k] = append(rows[k], int32(i)), append(values[k], value[j])
		}
		// A row has the cosine 1 with itself if its norm is right.
		if i%97 != 0 {
			continue
		}
		if own := x.Nearest(x.Code(i), 1); len(index) > 0 && math.Abs(own[0].Cosine-1) > 1e-12 {
			t.Fatalf("nearest to the code of %d: %v", i, own)
		}
	}
	for k := range s.Cols {
		if got, value := x.Dimension(k); !slices.Equal(got, rows[k]) || !slices.Equal(value, values[k]) {
			t.Fatalf("dimension %d: %v, %v; want %v, %v", k, got, value, rows[k], values[k])
		}
	}
}

func TestIndexOfNothing(t *testing.T) {
	for _, s := range []*vectors.Sparse{clitest.RandomCodes(1, 0, 0, 0), clitest.RandomCodes(1, 2, 3, 0)} {
		x := NewIndex(s)
		for k := range s.Cols {
			if len(x.Top(Pole{Dimension: k}, 5)) != 0 || len(x.Poles(k)) != 0 || x.Variances()[k] != 0 {
				t.Error("an empty dimension has words")
			}
		}
		for i := range s.Rows {
			if len(x.Nearest(x.Code(i), 5)) != 0 {
				t.Error("a word of zeros has neighbours")
			}
		}
	}
}

func TestLookup(t *testing.T) {
	words := []string{"the", "Paris", "paris", "The", "Zürich", "part", "Ångström", "the", "İstanbul"}
	x := NewIndex(&vectors.Sparse{IDs: words, CSR: vectors.CSR{Rows: len(words), Ptr: make([]int64, len(words)+1)}})
	for word, want := range map[string]int{"the": 0, "The": 3, "THE": 0, "Paris": 1, "PARIS": 2, "zürich": -1, "": -1} {
		if row, ok := x.Row(word); ok != (want >= 0) || ok && row != want {
			t.Errorf("%q: row %d, %t", word, row, ok)
		}
	}
}

// Known words precede others if their values are at least half of the largest.
func TestKnownFirst(t *testing.T) {
	codes := &vectors.Sparse{
		IDs: []string{"bank", "weak", "banks", "dresdner", "sanwa"},
		CSR: vectors.CSR{Rows: 5, Cols: 2, Ptr: []int64{0, 2, 4, 6, 8, 10}, Index: []int32{0, 1, 0, 1, 0, 1, 0, 1, 0, 1},
			Value: []float32{3, -3, 1, -1, 4, -4, 5, -5, 2, -2}},
	}
	rowsOf := func(entries []Entry) (rows []int) {
		for _, e := range entries {
			rows = append(rows, e.Row)
		}
		return rows
	}
	for _, tt := range []struct {
		known, n int
		want     []int
	}{
		{0, 5, []int{3, 2, 0, 4, 1}},
		{3, 5, []int{2, 0, 3, 4, 1}}, // the value of "weak" is below half of the largest
		{3, 3, []int{2, 0, 3}},
		{3, 1, []int{2}},
		{3, 0, nil},
		{5, 2, []int{3, 2}},
	} {
		x := NewIndex(codes)
		x.Known = tt.known
		for name, got := range map[string][]Entry{"top": x.Top(Pole{0, false}, tt.n), "bottom": x.Top(Pole{1, true}, tt.n)} {
			if !slices.Equal(rowsOf(got), tt.want) {
				t.Errorf("%d known: %s %d are %v, want %v", tt.known, name, tt.n, rowsOf(got), tt.want)
			}
		}
	}
	x := NewIndex(codes)
	if label := x.Label(Pole{}); label[0] != "dresdner" {
		t.Errorf("the label of all is %v", label)
	}
	x.Known = 3
	label := x.Label(Pole{})
	if nearest := x.Nearest(x.Code(3), 2, 3); nearest[0].Row != 0 || nearest[1].Row != 1 || label[0] != "banks" {
		t.Errorf("nearest are %v, and the label is %v", nearest, label)
	}
}
