package interpret

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Against the cosines of all pairs of dense rows.
func TestLikeness(t *testing.T) {
	s := randomCodes(5, 60, 12, .4)
	s.Value[3] = 0
	x, codes := NewIndex(s), dense(s)
	mean := func(rows []int, without int) float64 {
		sum, n := 0.0, 0.0
		for _, i := range rows {
			for _, j := range rows {
				if i == j {
					continue
				}
				n++
				var product, own, other float64
				for k := range s.Cols {
					if k != without {
						product, own, other = product+codes[i][k]*codes[j][k], own+codes[i][k]*codes[i][k], other+codes[j][k]*codes[j][k]
					}
				}
				if own > 0 && other > 0 {
					sum += product / math.Sqrt(own*other)
				}
			}
		}
		return sum / n
	}
	for k := range s.Cols {
		for _, negative := range []bool{false, true} {
			order := allRows(s.Rows)
			sign := 1.0
			if negative {
				sign = -1
			}
			order = slices.DeleteFunc(order, func(i int) bool { return sign*codes[i][k] <= 0 })
			slices.SortStableFunc(order, func(i, j int) int {
				return compareEntries(Entry{i, float32(sign * codes[i][k])}, Entry{j, float32(sign * codes[j][k])})
			})
			want := mean(order[:min(8, len(order))], k) - mean(allRows(s.Rows), -1)
			if got := x.Likeness(k, negative); math.Abs(got-want) > 1e-12 && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("dimension %d, negative %v: %v, want %v", k, negative, got, want)
			}
		}
	}
}

// The words of every even dimension share others, those of odd ones are drawn at random.
func TestLikenessTells(t *testing.T) {
	const dimensions, each = 40, 30
	s := newCodes(0, 3*dimensions)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range dimensions * each {
		k := i % dimensions
		own := dimensions + 2*k
		if k%2 == 1 {
			own = dimensions + 2*rng.IntN(dimensions)
		}
		s.Words = append(s.Words, string(rune('a'+i)))
		s.AppendRow([]int32{int32(k), int32(own), int32(own + 1)}, []float32{1, 1, 1})
	}
	x := NewIndex(s)
	for k := range dimensions {
		if got := x.Likeness(k, false); k%2 == 0 && got < .9 || k%2 == 1 && math.Abs(got) > .35 {
			t.Errorf("dimension %d: %v", k, got)
		}
	}
	for _, n := range []int{0, 1} {
		few := newCodes(n, 1)
		for range n {
			few.Ptr = append(few.Ptr, 0)
		}
		if got := NewIndex(few).Likeness(0, false); !math.IsNaN(got) {
			t.Errorf("of %d rows: %v", n, got)
		}
	}
}
