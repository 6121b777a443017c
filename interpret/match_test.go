package interpret

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/combin"

	"overcomplete/internal/memory"
	"overcomplete/testonly/encodetest"
)

// MatchAtoms finds the best permutation of few atoms, also if the dictionaries differ in size.
func TestMatchAtoms(t *testing.T) {
	const dim = 3
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][2]int{{1, 1}, {5, 5}, {6, 6}, {4, 6}, {6, 4}, {0, 3}, {3, 0}} {
		a, b := make([]float32, size[0]*dim), make([]float32, size[1]*dim)
		for range 20 {
			for _, x := range [][]float32{a, b} {
				for i := range x {
					x[i] = float32(rng.NormFloat64()) * float32(1+i/dim) // norms do not matter
				}
			}
			matches, err := MatchAtoms(t.Context(), a, b, dim)
			if err != nil || len(matches) != size[0] {
				t.Fatalf("%d matches, error %v", len(matches), err)
			}
			cosine := func(i, j int) float64 {
				return cosine(encodetest.Widen(a[i*dim:][:dim]), encodetest.Widen(b[j*dim:][:dim]))
			}
			var sum float64
			matched := make([]bool, size[1])
			for i, m := range matches {
				if m.Dimension < 0 {
					continue
				}
				if matched[m.Dimension] || math.Abs(m.Cosine-cosine(i, m.Dimension)) > 1e-6 {
					t.Fatalf("atom %d is matched with %+v, whose cosine is %v", i, m, cosine(i, m.Dimension))
				}
				matched[m.Dimension] = true
				sum += m.Cosine
			}
			want := math.Inf(-1)
			for _, chosen := range combin.Permutations(max(size[0], size[1]), min(size[0], size[1])) { // of the larger dictionary
				all := 0.0
				for i, j := range chosen {
					if size[0] > size[1] {
						i, j = j, i
					}
					all += cosine(i, j)
				}
				want = max(want, all)
			}
			if math.Abs(sum-want) > 1e-5 {
				t.Fatalf("%d and %d atoms: cosines add up to %v, want %v", size[0], size[1], sum, want)
			}
		}
	}
	if _, err := MatchAtoms(t.Context(), make([]float32, 4), make([]float32, 6), 3); err == nil {
		t.Error("no error for atoms of other lengths")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MatchAtoms(ctx, make([]float32, 6), make([]float32, 6), 3); err != context.Canceled {
		t.Errorf("cancelled: error %v", err)
	}
	if matches, err := MatchAtoms(t.Context(), make([]float32, 3), []float32{1, 2, 3}, 3); err != nil || matches[0] != (Match{0, 0}) {
		t.Errorf("an atom of zeros is matched with %v, error %v", matches, err)
	}
}

// A model of many atoms of one number is a small file.
// An atom that isn't a number doesn't disturb the others.
func TestMatchAtomsNaN(t *testing.T) {
	nan := float32(math.NaN())
	for _, a := range [][]float32{{1, 0, 0, 1, nan, 1}, {nan, 1, 1, 0, 0, 1}} {
		if matches, err := MatchAtoms(t.Context(), a, []float32{1, 0, 0, 1}, 2); err != nil || len(matches) != 3 {
			t.Errorf("%v: %v, %v", a, matches, err)
		}
	}
}

func TestMatchAtomsChecksMemory(t *testing.T) {
	if _, ok := memory.Total(); !ok {
		t.Skip("the memory of this machine is unknown")
	}
	many := make([]float32, 1<<22)
	if _, err := MatchAtoms(t.Context(), many, many, 1); !errors.Is(err, memory.ErrTooLarge) {
		t.Error(err)
	}
}
