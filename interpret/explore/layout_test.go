package explore

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Atoms drawn around a few directions: on the map, those next to an atom are of
// its own direction.
func TestPlaceKeepsGroups(t *testing.T) {
	const groups, members, dim = 8, 25, 20
	rng := rand.New(rand.NewPCG(3, 4))
	var atoms []float32
	for range groups {
		centre := make([]float64, dim)
		for c := range centre {
			centre[c] = rng.NormFloat64()
		}
		for range members {
			scale := 1 + 9*rng.Float64() // which does not matter
			for c := range centre {
				atoms = append(atoms, float32(scale*(centre[c]+.3*rng.NormFloat64())))
			}
		}
	}
	at := place(atoms, groups*members, dim)
	right := 0
	for i := range at {
		order := make([]int, 0, len(at))
		for j := range at {
			if j != i {
				order = append(order, j)
			}
		}
		slices.SortFunc(order, func(a, b int) int {
			if distance2(at[i], at[a]) < distance2(at[i], at[b]) {
				return -1
			}
			return 1
		})
		for _, j := range order[:5] {
			if j/members == i/members {
				right++
			}
		}
	}
	// By chance it would be 12 %.
	if share := float64(right) / float64(5*len(at)); share < .98 {
		t.Errorf("of the nearest five, %.3f are of the same group", share)
	}
	if again := place(atoms, groups*members, dim); !slices.Equal(at, again) {
		t.Error("another map of the same atoms")
	}
}

// Whatever the atoms are, places are in the unit square, and equal atoms have
// different ones.
func TestPlaceOddAtoms(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n, dim int
		atom   func(i, c int) float32
	}{
		{"none", 0, 3, nil},
		{"one", 1, 3, func(i, c int) float32 { return 1 }},
		{"two", 2, 3, func(i, c int) float32 { return float32(i) }},
		{"three", 3, 3, func(i, c int) float32 { return float32(i + c) }},
		{"zeros", 30, 3, func(i, c int) float32 { return 0 }},
		{"equal", 30, 3, func(i, c int) float32 { return float32(c) }},
		{"one dimension", 30, 1, func(i, c int) float32 { return float32(i - 15) }},
		{"largest", 30, 3, func(i, c int) float32 { return float32(i-15) * 2e37 }},
	} {
		var atoms []float32
		for i := range tt.n {
			for c := range tt.dim {
				atoms = append(atoms, tt.atom(i, c))
			}
		}
		at := place(atoms, tt.n, tt.dim)
		seen := make(map[[2]float64]bool)
		for i, p := range at {
			if !(p[0] >= 0 && p[0] <= 1 && p[1] >= 0 && p[1] <= 1) || seen[p] {
				t.Errorf("%s: atom %d is at %v", tt.name, i, p)
			}
			seen[p] = true
		}
	}
}

func TestLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		values := make([]float64, 20)
		for i := range values {
			values[i] = float64(rng.IntN(8)) // with ties
		}
		want := []int{}
		for i := range values {
			if i != 3 {
				want = append(want, i)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int { return int(values[b] - values[a]) })
		if got := largest(values, 3, 5); !slices.Equal(got, want[:5]) {
			t.Fatalf("the largest of %v are %v, want %v", values, got, want[:5])
		}
	}
}
