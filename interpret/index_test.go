package interpret

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"overcomplete/vectors"
)

// newCodes returns codes of numbered words, whose nonzeros are to be appended row by row.
func newCodes(rows, cols int) *vectors.Sparse {
	return &vectors.Sparse{Words: numberedWords(rows), CSR: vectors.CSR{Rows: rows, Cols: cols, Ptr: []int64{0}}}
}

// randomCodes has about density·cols nonzeros a row, some of them equal.
func randomCodes(seed uint64, rows, cols int, density float64) *vectors.Sparse {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := newCodes(rows, cols)
	for range rows {
		for k := range cols {
			if rng.Float64() < density {
				v := float32(rng.IntN(20)) - 9.5
				s.Index, s.Value = append(s.Index, int32(k)), append(s.Value, v)
			}
		}
		s.Ptr = append(s.Ptr, int64(len(s.Index)))
	}
	return s
}

// dense returns the matrix with its zeros.
func dense(s *vectors.Sparse) [][]float64 {
	rows := make([][]float64, s.Rows)
	for i := range rows {
		rows[i] = make([]float64, s.Cols)
		index, value := s.Row(i)
		for j, k := range index {
			rows[i][k] = float64(value[j])
		}
	}
	return rows
}

func numberedWords(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint("word", i)
	}
	return words
}

// Every answer against the dense matrix, sorted.
func TestIndex(t *testing.T) {
	const rows, cols = 300, 40
	s := randomCodes(1, rows, cols, .2)
	a := dense(s)
	for _, workers := range []int{1, 3, 400} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		x := NewIndex(s)
		for k := range cols {
			var top, bottom []Entry
			var at []int32
			for i := range rows {
				e := Entry{i, float32(a[i][k])}
				if e.Value > 0 {
					top = append(top, e)
				}
				if e.Value < 0 {
					bottom = append(bottom, e)
				}
				if e.Value != 0 {
					at = append(at, int32(i))
				}
			}
			slices.SortStableFunc(top, func(a, b Entry) int { return cmp.Compare(b.Value, a.Value) })
			slices.SortStableFunc(bottom, func(a, b Entry) int { return cmp.Compare(a.Value, b.Value) })
			for _, n := range []int{0, 1, 5, 1000} {
				if got := x.Top(k, n); !slices.Equal(got, top[:min(n, len(top))]) {
					t.Fatalf("top %d of %d: %v", n, k, got)
				}
				if got := x.Bottom(k, n); !slices.Equal(got, bottom[:min(n, len(bottom))]) {
					t.Fatalf("bottom %d of %d: %v", n, k, got)
				}
			}
			in, values := x.Dimension(k)
			if !slices.Equal(in, at) {
				t.Fatalf("words of %d: %v", k, in)
			}
			for j, i := range in {
				if float64(values[j]) != a[i][k] {
					t.Fatalf("value of word %d in %d: %v", i, k, values[j])
				}
			}
		}
		for i := range 20 {
			var want []Neighbour
			for j := range rows {
				if c := cosine(a[i], a[j]); j != i && c > 0 {
					want = append(want, Neighbour{j, c})
				}
			}
			slices.SortStableFunc(want, func(a, b Neighbour) int { return cmp.Compare(b.Cosine, a.Cosine) })
			for _, n := range []int{0, 7, 1000} {
				got := x.Nearest(i, n)
				if len(got) != min(n, len(want)) {
					t.Fatalf("nearest %d of %d: %v", n, i, got)
				}
				for j, g := range got {
					// Words as near as each other may come in any order but for rounding.
					if math.Abs(g.Cosine-want[j].Cosine) > 1e-12 || math.Abs(g.Cosine-cosine(a[i], a[g.Row])) > 1e-12 {
						t.Fatalf("nearest %d of %d: %v, want %v", j, i, g, want[j])
					}
				}
			}
			// A code of twice the values is as near to all words, its own included.
			index, value := s.Row(i)
			twice := slices.Clone(value)
			for j := range twice {
				twice[j] *= 2
			}
			got, own := x.NearestTo(index, twice, 1000), len(index) > 0
			at := slices.IndexFunc(got, func(n Neighbour) bool { return n.Row == i })
			if (at >= 0) != own || own && math.Abs(got[at].Cosine-1) > 1e-12 {
				t.Fatalf("nearest to the code of %d: %v", i, got)
			}
			if own {
				got = slices.Delete(got, at, at+1)
			}
			for j, n := range x.Nearest(i, 1000) {
				if len(got) != len(want) || math.Abs(n.Cosine-got[j].Cosine) > 1e-12 {
					t.Fatalf("nearest to the code of %d: %v, want %v", i, got, want)
				}
			}
			active := x.Active(i)
			for j, w := range active {
				if w.Value == 0 || float64(w.Value) != a[i][w.Dimension] {
					t.Fatalf("active in %d: %v", i, w)
				}
				if j > 0 && math.Abs(float64(w.Value)) > math.Abs(float64(active[j-1].Value)) {
					t.Fatalf("active in %d: %v after %v", i, w, active[j-1])
				}
			}
			if int64(len(active)) != s.Ptr[i+1]-s.Ptr[i] {
				t.Fatalf("%d dimensions active in %d", len(active), i)
			}
		}
		for k, got := range x.Variances() {
			mean, want := 0.0, 0.0
			for i := range rows {
				mean += a[i][k] / rows
			}
			for i := range rows {
				want += (a[i][k] - mean) * (a[i][k] - mean) / rows
			}
			if math.Abs(got-want) > 1e-12*want {
				t.Fatalf("variance of %d: %v, want %v", k, got, want)
			}
		}
	}
}

func cosine(a, b []float64) float64 {
	ab, aa, bb := 0.0, 0.0, 0.0
	for k := range a {
		ab, aa, bb = ab+a[k]*b[k], aa+a[k]*a[k], bb+b[k]*b[k]
	}
	return ab / math.Sqrt(aa*bb)
}

// More rows and columns than are put in place at a time, and than are in a block.
func TestColumnsOfLargeIndex(t *testing.T) {
	s := randomCodes(7, 2*blockRows+1000, 600, .01)
	x := NewIndex(s)
	rows, values := make([][]int32, s.Cols), make([][]float32, s.Cols)
	for i := range s.Rows {
		index, value := s.Row(i)
		for j, k := range index {
			rows[k], values[k] = append(rows[k], int32(i)), append(values[k], value[j])
		}
		// A row is as near to itself as can be, by the norm that the index has of it.
		if i%97 != 0 {
			continue
		}
		if own := x.NearestTo(index, value, 1); len(index) > 0 && math.Abs(own[0].Cosine-1) > 1e-12 {
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
	for _, s := range []*vectors.Sparse{newCodes(0, 0), randomCodes(1, 2, 3, 0)} {
		x := NewIndex(s)
		for k := range s.Cols {
			if len(x.Top(k, 5)) != 0 || x.Variances()[k] != 0 {
				t.Error("a dimension of no words has some")
			}
		}
		for i := range s.Rows {
			if len(x.Nearest(i, 5)) != 0 || len(x.Active(i)) != 0 {
				t.Error("a word of zeros is near to others")
			}
		}
	}
}

func TestLookup(t *testing.T) {
	words := []string{"the", "Paris", "paris", "The", "Zürich", "part", "Ångström", "the", "İstanbul"}
	x := NewIndex(&vectors.Sparse{Words: words, CSR: vectors.CSR{Rows: len(words), Ptr: make([]int64, len(words)+1)}})
	for word, want := range map[string]int{"the": 0, "The": 3, "THE": 0, "Paris": 1, "PARIS": 2, "zürich": -1, "": -1} {
		if row, ok := x.Row(word); ok != (want >= 0) || ok && row != want {
			t.Errorf("%q: row %d, %t", word, row, ok)
		}
	}
	for _, tt := range []struct {
		prefix string
		n      int
		want   string
	}{
		{"pa", 9, "Paris paris part"}, {"PA", 2, "Paris paris"}, {"zü", 9, "Zürich"},
		{"", 2, "the Paris"}, {"parisian", 9, ""}, {"pa", 0, ""}, {"pa", -1, ""},
	} {
		if got := strings.Join(x.Complete(tt.prefix, tt.n), " "); got != tt.want {
			t.Errorf("%q: %s", tt.prefix, got)
		}
	}
	for _, tt := range []struct{ word, want string }{
		{"pariss", "Paris paris"}, {"zuerich", "Zürich"}, {"thee", "the The the"}, {"angstrom", "Ångström"}, {"qqqqqq", ""}, {"", ""},
	} {
		if got := strings.Join(x.Closest(tt.word, 3), " "); got != tt.want {
			t.Errorf("closest to %q: %s", tt.word, got)
		}
	}
}

// The banded table against the whole one.
func TestEditDistance(t *testing.T) {
	whole := func(a, b []rune) int {
		above := make([]int, len(b)+1)
		for j := range above {
			above[j] = j
		}
		for i, r := range a {
			row := []int{i + 1}
			for j, q := range b {
				d := above[j]
				if r != q {
					d = min(d, row[j], above[j+1]) + 1
				}
				row = append(row, d)
			}
			above = row
		}
		return above[len(b)]
	}
	rng := rand.New(rand.NewPCG(2, 2))
	word := func() []rune {
		w := make([]rune, rng.IntN(9))
		for i := range w {
			w[i] = 'a' + rune(rng.IntN(3))
		}
		return w
	}
	var memory []int
	for range 20000 {
		a, b, limit := word(), word(), rng.IntN(6)
		var got int
		got, memory = editDistance(a, b, limit, memory)
		if want := min(whole(a, b), limit+1); got != want {
			t.Fatalf("%q to %q, at most %d: %d, want %d", string(a), string(b), limit, got, want)
		}
	}
}

// A large vocabulary: 400,000 words × 3,000 dimensions, 8 % of them active.
func largeCodes() *vectors.Sparse {
	const rows, cols = 400_000, 3000
	s := newCodes(rows, cols)
	s.Index, s.Value = make([]int32, 0, rows*250), make([]float32, 0, rows*250)
	rng := rand.New(rand.NewPCG(3, 3))
	for range rows {
		for k := rng.IntN(24); k < cols; k += 1 + rng.IntN(24) {
			s.Index, s.Value = append(s.Index, int32(k)), append(s.Value, rng.Float32()-.3)
		}
		s.Ptr = append(s.Ptr, int64(len(s.Index)))
	}
	return s
}

func BenchmarkIndex(b *testing.B) {
	s := largeCodes()
	b.Logf("%d nonzeros", s.Nonzeros())
	b.Run("NewIndex", func(b *testing.B) {
		for b.Loop() {
			NewIndex(s)
		}
	})
	x := NewIndex(s)
	i := 0
	next := func(n int) int { i = (i + 7919) % n; return i }
	for _, bm := range []struct {
		name string
		call func()
	}{
		{"Nearest", func() { x.Nearest(next(s.Rows), 10) }},
		{"Top", func() { x.Top(next(s.Cols), 10) }},
		{"Active", func() { x.Active(next(s.Rows)) }},
		{"Closest", func() { x.Closest("wrod123456", 5) }},
		{"Complete", func() { x.Complete("none", 5) }},
		{"Variances", func() { x.Variances() }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				bm.call()
			}
		})
	}
}

// Known words come before others, if their values are at least half of the largest.
func TestKnownFirst(t *testing.T) {
	codes := &vectors.Sparse{
		Words: []string{"bank", "weak", "banks", "dresdner", "sanwa"},
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
		{3, 5, []int{2, 0, 3, 4, 1}}, // weak is not strong enough
		{3, 3, []int{2, 0, 3}},
		{3, 1, []int{2}},
		{3, 0, nil},
		{5, 2, []int{3, 2}},
	} {
		x := NewIndex(codes)
		x.Known = tt.known
		for name, got := range map[string][]Entry{"top": x.Top(0, tt.n), "bottom": x.Bottom(1, tt.n)} {
			if !slices.Equal(rowsOf(got), tt.want) {
				t.Errorf("%d known: %s %d are %v, want %v", tt.known, name, tt.n, rowsOf(got), tt.want)
			}
		}
	}
	x := NewIndex(codes)
	if label := x.Label(0, false); label[0] != "dresdner" {
		t.Errorf("the label of all is %v", label)
	}
	x.Known = 3
	label := x.Label(0, false)
	if nearest := x.Nearest(3, 2); nearest[0].Row != 0 || nearest[1].Row != 1 || label[0] != "banks" {
		t.Errorf("nearest are %v, and the label is %v", nearest, label)
	}
}
