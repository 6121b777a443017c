package interpret

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

func unit(row []float64) []float64 {
	return floats.ScaleTo(make([]float64, len(row)), 1/cmp.Or(floats.Norm(row, 2), 1), row)
}

// checkParts checks that contributions are in decreasing order, and that they are the nonzeros of want, each once.
func checkParts(t *testing.T, what string, got []Contribution, want []float64) {
	t.Helper()
	found := make([]float64, len(want))
	last := math.Inf(1)
	for _, c := range got {
		if found[c.Dimension] != 0 || math.Abs(c.Part) > last {
			t.Errorf("%s: dimension %d is repeated or out of order", what, c.Dimension)
		}
		found[c.Dimension], last = c.Part, math.Abs(c.Part)
	}
	testonly.Near(t, what, found, want, 1e-12)
}

// Compare agrees with the definition on dense vectors.
func TestCompare(t *testing.T) {
	s := clitest.RandomCodes(8, 30, 20, .4)
	x := NewIndex(s)
	codes := clitest.Matrix(s)
	for _, rows := range [][]int{{0, 1}, {2, 3}, {4, 4}, {5, 6, 7}, {8, 9, 10, 11}} {
		shared, apart := make([]float64, s.Cols), make([]float64, s.Cols)
		pairs := 0.0
		for i, a := range rows {
			for _, b := range rows[i+1:] {
				u, v := unit(codes[a]), unit(codes[b])
				pairs++
				for k := range u {
					shared[k] += u[k] * v[k]
					apart[k] += (u[k] - v[k]) * (u[k] - v[k]) / 2
				}
			}
		}
		floats.Scale(1/pairs, shared)
		floats.Scale(1/pairs, apart)
		var compared []Code
		for _, row := range rows {
			compared = append(compared, x.Code(row))
		}
		gotShared, gotApart := Compare(compared...)
		checkParts(t, "shared", gotShared, shared)
		checkParts(t, "apart", gotApart, apart)
		sum := 0.0
		for _, p := range append(slices.Clone(gotShared), gotApart...) {
			sum += p.Part
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%v: shared and apart add up to %v, want 1", rows, sum)
		}
		for _, d := range append(gotShared, gotApart...) {
			for w, row := range rows {
				if want := unit(codes[row])[d.Dimension]; math.Abs(d.Values[w]-want) > 1e-12 {
					t.Errorf("%v: value %v of dimension %d, want %v", rows, d.Values[w], d.Dimension, want)
				}
			}
		}
	}
}

// A sum of words, its nearest words, and the parts of cosines agree with dense vectors.
func TestSum(t *testing.T) {
	s := clitest.RandomCodes(9, 200, 40, .1)
	x := NewIndex(s)
	codes := clitest.Matrix(s)
	text := []Term{{4, 3}}
	for row := 5; row < 40; row++ {
		text = append(text, Term{row, 1})
	}
	off := x.Code(0).Weights()[0].Dimension
	for _, q := range []Query{{Terms: []Term{{0, 1}}}, {Terms: []Term{{0, 1}}, Without: []int{off}}, {Terms: []Term{{1, 1}, {2, -1}, {3, 1}}}, {Terms: text, Without: []int{off, 1}}} {
		terms := q.Terms
		sum := make([]float64, s.Cols)
		var without []int
		for _, term := range terms {
			floats.AddScaled(sum, term.Weight, unit(codes[term.Row]))
			without = append(without, term.Row)
		}
		for _, k := range q.Without {
			sum[k] = 0
		}
		code := x.Sum(q)
		whole := make([]float64, s.Cols)
		for j, k := range code.Index {
			whole[k] = float64(code.Value[j])
		}
		testonly.Near(t, fmt.Sprint(q), whole, sum, 1e-7) // rounding of float32
		checkNearest(t, x, codes, code, whole, without...)
		nearest := x.Nearest(code, 1, without...)[0].Row
		shared, _ := Compare(code, x.Code(nearest))
		checkParts(t, "the cosine", shared, floats.MulTo(make([]float64, s.Cols), unit(codes[nearest]), unit(whole)))
	}
	if got := x.Nearest(Code{}, 5); len(got) != 0 {
		t.Errorf("nearest to a code of zeros: %v", got)
	}
}

// A steered score is the cosine plus a part for each steered dimension. Nearest ranks rows by it.
func TestSteer(t *testing.T) {
	s := clitest.RandomCodes(5, 40, 12, .3)
	s.Cols++ // a dimension of zeros
	s.AppendRow(nil, nil)
	s.IDs = append(s.IDs, "zero")
	x := NewIndex(s)
	codes := clitest.Matrix(s)
	for _, row := range []int{0, 1, 2, 40} {
		weights := []Weight{{3, .5}, {7, -2}, {12, 1}, {3, .25}}
		scores := make([]float64, len(codes))
		for i := range scores {
			u, v := unit(codes[row]), unit(codes[i])
			scores[i] = floats.Dot(u, v) + .75*v[3] - 2*v[7] + v[12]
		}
		steered := x.Code(row).Steer(weights...)
		found := x.Nearest(steered, len(codes))
		for i, n := range found {
			if got := n.Cosine * steered.Norm(); math.Abs(got-scores[n.Row]) > 1e-6 || i > 0 && got > found[i-1].Cosine*steered.Norm() {
				t.Errorf("row %d: score %v of row %d, want %v", row, got, n.Row, scores[n.Row])
			}
			scores[n.Row] = 0
		}
		if slices.Max(scores) > 1e-6 {
			t.Errorf("row %d: positive scores are missing: %v", row, scores)
		}
	}
}

func TestFromDense(t *testing.T) {
	x := &vectors.Dense{IDs: []string{"a", "b", "c"}, Dim: 2, Data: []float32{1, 0, 0, 0, -2, 3}}
	got := FromDense(x)
	want := &vectors.Sparse{IDs: x.IDs, CSR: vectors.CSR{Rows: 3, Cols: 2, Ptr: []int64{0, 1, 1, 3}, Index: []int32{0, 0, 1}, Value: []float32{1, -2, 3}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want = &vectors.Sparse{IDs: []string{"c", "a"}, CSR: vectors.CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 2, 3}, Index: []int32{0, 1, 0}, Value: []float32{-2, 3, 1}}}
	if got := SelectRows(got, []int{2, 0}); !reflect.DeepEqual(got, want) {
		t.Errorf("rows 2 and 0: %v", got)
	}
}
