package intrusion

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"overcomplete/interpret"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

func newCodes(rows, cols int) *vectors.Sparse {
	s := &vectors.Sparse{CSR: vectors.CSR{Rows: rows, Cols: cols, Ptr: []int64{0}}}
	for i := range rows {
		s.IDs = append(s.IDs, fmt.Sprint("word", i))
	}
	return s
}

// recipe applies the definition of the paper (§4.1) to the dense matrix, word by word.
type recipe struct {
	top       [][]int        // by dimension: four rows or fewer
	intruders []map[int]bool // by dimension
}

func newRecipe(a [][]float64) *recipe {
	n, dimensions := len(a), len(a[0])
	median, tenth := make([]float64, dimensions), make([]float64, dimensions)
	r := &recipe{make([][]int, dimensions), make([]map[int]bool, dimensions)}
	for k := range dimensions {
		rows := make([]int, n)
		for i := range rows {
			rows[i] = i
		}
		slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(a[j][k], a[i][k]) })
		median[k], tenth[k] = a[rows[n/2]][k], a[rows[n/10-1]][k]
		for _, i := range rows[:4] {
			if a[i][k] > 0 {
				r.top[k] = append(r.top[k], i)
			}
		}
	}
	for k := range dimensions {
		r.intruders[k] = make(map[int]bool)
		for i := range a {
			prominent := false
			for other, v := range a[i] {
				prominent = prominent || other != k && v != 0 && v > median[other] && v >= tenth[other]
			}
			if a[i][k] <= median[k] && prominent && !slices.Contains(r.top[k], i) {
				r.intruders[k][i] = true
			}
		}
	}
	return r
}

func TestQuestionsFollowRecipe(t *testing.T) {
	ties := clitest.RandomCodes(4, 60, 6, .7) // ties at the median and at the top
	for j, k := range ties.Index {
		if k%2 == 0 {
			ties.Value[j] = 1
		}
	}
	mostlyNegative := clitest.RandomCodes(5, 60, 5, .9)
	for i, v := range mostlyNegative.Value {
		mostlyNegative.Value[i] = min(v, float32(i%11))
		if mostlyNegative.Value[i] == 0 {
			mostlyNegative.Value[i] = -1
		}
	}
	for name, s := range map[string]*vectors.Sparse{
		"sparse": clitest.RandomCodes(1, 300, 30, .08), "sparser": clitest.RandomCodes(2, 200, 40, .02), "dense": clitest.RandomCodes(3, 100, 10, 1),
		"ties": ties, "negative": mostlyNegative,
	} {
		t.Run(name, func(t *testing.T) {
			x := interpret.NewIndex(s)
			want := newRecipe(clitest.Matrix(s))
			in := newSampler(x)
			live := in.live()
			variances := x.Variances()
			for d := 1; d < len(live); d++ {
				if variances[live[d]] > variances[live[d-1]] {
					t.Errorf("dimension %d of variance %v after %d of %v", live[d], variances[live[d]], live[d-1], variances[live[d-1]])
				}
			}
			places := make([]int, 5)
			for k := range s.Cols {
				isLive := len(want.top[k]) == 4 && len(want.intruders[k]) > 0
				if slices.Contains(live, k) != isLive {
					t.Fatalf("dimension %d is live: %t", k, !isLive)
				}
				if !isLive {
					continue
				}
				p, rng := in.pool(k), rand.New(rand.NewPCG(1, uint64(k)))
				drawn := make(map[int]int)
				draws := 60 * len(want.intruders[k])
				for range draws {
					it := p.draw(rng)
					places[it.intruder]++
					drawn[it.rows[it.intruder]]++
					rest := slices.Delete(slices.Clone(it.rows[:]), it.intruder, it.intruder+1)
					slices.Sort(rest)
					top := slices.Clone(want.top[k])
					slices.Sort(top)
					if !slices.Equal(rest, top) {
						t.Fatalf("dimension %d: %v, want the words %v", k, it, top)
					}
				}
				// With 60 draws per intruder, each is drawn (except with probability e^-60).
				for i := range want.intruders[k] {
					if drawn[i] == 0 {
						t.Errorf("dimension %d: %d was never drawn", k, i)
					}
				}
				if len(drawn) != len(want.intruders[k]) {
					t.Errorf("dimension %d: intruders %v, want %v", k, drawn, want.intruders[k])
				}
			}
			total := 0
			for _, n := range places {
				total += n
			}
			for place, n := range places {
				// Five standard deviations of a binomial distribution.
				if p := float64(n) / float64(total); math.Abs(p-.2) > 5*math.Sqrt(.16/float64(total)) {
					t.Errorf("the intruder is at place %d in %v of %d instances", place, p, total)
				}
			}
		})
	}
}

func TestMatchedIntruders(t *testing.T) {
	s := clitest.RandomCodes(6, 1000, 20, .1)
	in := newSampler(interpret.NewIndex(s))
	rng := rand.New(rand.NewPCG(1, 1))
	for k := range s.Cols {
		p := in.pool(k)
		for range 100 {
			it := p.drawMatched(rng)
			intruder := it.rows[it.intruder]
			near := false
			for place, row := range it.rows {
				between := 0
				for _, i := range p.intruders {
					if min(row, intruder) <= int(i) && int(i) <= max(row, intruder) {
						between++
					}
				}
				near = near || place != it.intruder && between <= 10
			}
			if !near {
				t.Fatalf("dimension %d: intruder %d is near none of %v", k, intruder, it.rows)
			}
		}
	}
}
