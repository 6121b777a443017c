package explore

import (
	"math"
	"testing"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/interpret"
)

// The matches agree with the cosines of all pairs of dense columns over the words of both models.
func TestMatchValues(t *testing.T) {
	first, second := clitest.RandomCodes(3, 80, 15, 0.3), clitest.RandomCodes(4, 60, 9, 0.3)
	for i := range second.Words { // the second model has the last 25 words of the first, reversed, and others
		if i < 25 {
			second.Words[i] = first.Words[79-i]
		} else {
			second.Words[i] = "other " + second.Words[i]
		}
	}
	first.Words[60] = first.Words[79] // the first row of a repeated word counts
	a, b := interpret.NewIndex(first), interpret.NewIndex(second)
	x, y := clitest.Matrix(first), clitest.Matrix(second)
	for _, most := range []int{1000, 10} {
		var rows [][2]int
		for i, w := range first.Words {
			for j, v := range second.Words {
				if w == v && i != 79 && len(rows) < most {
					rows = append(rows, [2]int{i, j})
				}
			}
		}
		got := matchValues(a, b, most)
		if got.Words != len(rows) {
			t.Fatalf("%d words, want %d", got.Words, len(rows))
		}
		cosine := func(k, l int) float64 {
			var product, own, other float64
			for _, r := range rows {
				v, w := x[r[0]][k], y[r[1]][l]
				product, own, other = product+v*w, own+v*v, other+w*w
			}
			if product == 0 {
				return 0
			}
			return product / math.Sqrt(own*other)
		}
		check := func(k int, got interpret.Match, n int, cosine func(l int) float64) {
			t.Helper()
			best := 0.0
			for l := range n {
				best = max(best, math.Abs(cosine(l)))
			}
			if got.Dimension < 0 && best > 0 || got.Dimension >= 0 && (math.Abs(got.Cosine-cosine(got.Dimension)) > 1e-12 || math.Abs(math.Abs(got.Cosine)-best) > 1e-12) {
				t.Errorf("dimension %d: %+v, but the largest cosine is %v", k, got, best)
			}
		}
		for k, m := range got.First {
			check(k, m, 9, func(l int) float64 { return cosine(k, l) })
		}
		for l, m := range got.Other {
			check(l, m, 15, func(k int) float64 { return cosine(k, l) })
		}
	}
	for i := range second.Words {
		second.Words[i] += "!"
	}
	for k, m := range matchValues(a, interpret.NewIndex(second), 1000).First {
		if m.Dimension != -1 {
			t.Errorf("dimension %d, without words in both: %+v", k, m)
		}
	}
}
