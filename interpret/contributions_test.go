package interpret

import (
	"math"
	"slices"
	"testing"
)

func unit(row []float64) []float64 {
	length := 0.0
	for _, v := range row {
		length += v * v
	}
	u := make([]float64, len(row))
	for k, v := range row {
		if v != 0 {
			u[k] = v / math.Sqrt(length)
		}
	}
	return u
}

// ranked and complete: the largest first, none twice, and none left out but zeros.
func checkParts(t *testing.T, what string, got []Contribution, want []float64) {
	t.Helper()
	found := make([]float64, len(want))
	last := math.Inf(1)
	for _, c := range got {
		if found[c.Dimension] != 0 || math.Abs(c.Part) > last {
			t.Errorf("%s: dimension %d is there twice, or not in its place", what, c.Dimension)
		}
		found[c.Dimension], last = c.Part, math.Abs(c.Part)
	}
	for k := range want {
		if math.Abs(found[k]-want[k]) > 1e-12 {
			t.Errorf("%s: dimension %d has the part %v, want %v", what, k, found[k], want[k])
		}
	}
}

// Against the definition, over dense vectors: parts of dot products and of squared
// distances.
func TestCompare(t *testing.T) {
	s := randomCodes(8, 30, 20, .4)
	x := NewIndex(s)
	codes := dense(s)
	for _, rows := range [][]int{{0, 1}, {2, 3}, {4, 4}, {5, 6, 7}, {8, 9, 10, 11}} {
		shared, apart := make([]float64, s.Cols), make([]float64, s.Cols)
		cosine, pairs := 0.0, 0.0
		for i, a := range rows {
			for _, b := range rows[i+1:] {
				u, v := unit(codes[a]), unit(codes[b])
				pairs++
				for k := range u {
					shared[k] += u[k] * v[k]
					apart[k] += (u[k] - v[k]) * (u[k] - v[k]) / 2
					cosine += u[k] * v[k]
				}
			}
		}
		for k := range shared {
			shared[k] /= pairs
			apart[k] /= pairs
		}
		c := x.Compare(rows)
		if math.Abs(c.Cosine-cosine/pairs) > 1e-12 {
			t.Errorf("%v: cosine %v, want %v", rows, c.Cosine, cosine/pairs)
		}
		checkParts(t, "shared", c.Shared, shared)
		checkParts(t, "apart", c.Apart, apart)
		sum := 0.0
		for _, a := range c.Apart {
			sum += a.Part
		}
		if math.Abs(sum-(1-c.Cosine)) > 1e-12 {
			t.Errorf("%v: what tells apart adds up to %v, want 1 − %v", rows, sum, c.Cosine)
		}
		for _, d := range append(c.Shared, c.Apart...) {
			for w, row := range rows {
				if want := unit(codes[row])[d.Dimension]; math.Abs(d.Values[w]-want) > 1e-12 {
					t.Errorf("%v: value %v of dimension %d, want %v", rows, d.Values[w], d.Dimension, want)
				}
			}
		}
	}
}

// A sum of words, the words nearest to it, and why, against the same over dense vectors;
// with one word few dimensions are looked at, with many all.
func TestCombine(t *testing.T) {
	s := randomCodes(9, 200, 40, .1)
	x := NewIndex(s)
	codes := dense(s)
	text := []Term{{4, 3}}
	for row := 5; row < 40; row++ {
		text = append(text, Term{row, 1})
	}
	off := x.Active(0)[0].Dimension // the strongest
	for _, q := range []Question{{Terms: []Term{{0, 1}}}, {Terms: []Term{{0, 1}}, Without: []int{off}}, {Terms: []Term{{1, 1}, {2, -1}, {3, 1}}}, {Terms: text, Without: []int{off, 1}}} {
		terms := q.Terms
		sum := make([]float64, s.Cols)
		var without []int
		for _, term := range terms {
			for k, v := range unit(codes[term.Row]) {
				sum[k] += term.Weight * v
			}
			without = append(without, term.Row)
		}
		for _, k := range q.Without {
			sum[k] = 0
		}
		index, value := x.Combine(q)
		whole := make([]float64, s.Cols)
		for j, k := range index {
			whole[k] = float64(value[j])
		}
		for k := range sum {
			if math.Abs(whole[k]-sum[k]) > 1e-6 { // of float32
				t.Errorf("%v: dimension %d is %v, want %v", terms, k, whole[k], sum[k])
			}
		}
		var want []Neighbour
		for i, row := range codes {
			cosine := 0.0
			for k, v := range unit(row) {
				cosine += v * unit(sum)[k]
			}
			if cosine > 0 && !slices.Contains(without, i) {
				want = append(want, Neighbour{i, cosine})
			}
		}
		slices.SortFunc(want, func(a, b Neighbour) int {
			if a.Cosine > b.Cosine {
				return -1
			}
			return 1
		})
		got := x.NearestTo(index, value, 12, without...)
		if len(got) != min(12, len(want)) || len(got) < 5 {
			t.Fatalf("%v: %d neighbours", terms, len(got))
		}
		for i, n := range got {
			if n.Row != want[i].Row || math.Abs(n.Cosine-want[i].Cosine) > 1e-6 {
				t.Errorf("%v: neighbour %d is %v, want %v", terms, i, n, want[i])
			}
		}
		parts := make([]float64, s.Cols)
		for k, v := range unit(codes[got[0].Row]) {
			parts[k] = float64(v) * unit(whole)[k]
		}
		checkParts(t, "contributions", x.Contributions(index, value, got[0].Row), parts)
	}
	looked := func(terms []Term) (n int) {
		index, _ := x.Combine(Question{Terms: terms})
		for _, k := range index {
			n += len(x.Values(int(k)))
		}
		return n
	}
	if n := s.Nonzeros(); 4*looked([]Term{{0, 1}}) > 3*n || 4*looked(text) <= 3*n {
		t.Error("both ways to add up products are to be taken")
	}
	if got := x.NearestTo(nil, nil, 5); len(got) != 0 {
		t.Errorf("near to nothing: %v", got)
	}
}
