package train

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	gonum "gonum.org/v1/gonum/floats"

	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
	"overcomplete/model"
	"overcomplete/testonly"
)

func rowsOf(n, dim int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n*dim)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// For any number of processors, rowAtoms chooses the rows that a direct comparison of all pairs chooses: the first
// rows, in order, whose cosine to all rows chosen before is below the lowest limit that leaves K rows. Coordinates of
// unit rows are multiples of 1/4, so that cosines are exact. Some rows are repeated, also with another norm, and some
// equal the mean.
func TestRowAtoms(t *testing.T) {
	const n, dim = 2000, 16
	d := &model.Dictionary{Dim: dim, Mean: make([]float32, dim)}
	for _, atoms := range []int{20, 150, 1800} { // 1,800 exceeds the number of directions; its candidates are more than a group
		rng := rand.New(rand.NewPCG(uint64(atoms), 1))
		rows := make([][]float64, n) // of norm 1 after the mean is subtracted, or zero
		x := make([]float32, n*dim)
		for j := range d.Mean {
			d.Mean[j] = float32(rng.IntN(9))
		}
		for i := range rows {
			rows[i] = make([]float64, dim)
			switch kind := rng.IntN(10); {
			case kind == 0: // the mean
			case kind == 1 && i > 0: // a repetition
				copy(rows[i], rows[rng.IntN(i)])
			default:
				nonzeros := []int{1, 4, 16}[rng.IntN(3)]
				for _, j := range rng.Perm(dim)[:nonzeros] {
					rows[i][j] = float64(2*rng.IntN(2)-1) / math.Sqrt(float64(nonzeros))
				}
			}
			length := float64(int(4) << rng.IntN(3))
			for j, v := range rows[i] {
				x[i*dim+j] = float32(length*v) + d.Mean[j]
			}
		}

		const seed, norm = 5, 2
		order := rng.Perm(n)
		var chosen [][]float64
		for _, limit := range []float64{0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99999} {
			chosen = nil
			for _, i := range order[:min(n, 8*atoms)] {
				near := slices.ContainsFunc(chosen, func(c []float64) bool { return gonum.Dot(c, rows[i]) >= limit })
				if !near && gonum.Norm(rows[i], 2) > 0 && len(chosen) < atoms {
					chosen = append(chosen, rows[i])
				}
			}
			if len(chosen) == atoms {
				break
			}
		}
		var want []float32
		for _, c := range chosen {
			for _, v := range c {
				want = append(want, float32(norm*v))
			}
		}
		if (len(chosen) == atoms) != (atoms < 1800) {
			t.Fatalf("%d of %d atoms: a poor test", len(chosen), atoms)
		}
		for _, processors := range []int{1, 2, 5} {
			before := runtime.GOMAXPROCS(processors)
			s := initialiser{x: x, mean: d, atoms: atoms, seed: seed}
			got, words, err := s.rowAtoms(t.Context(), norm, order)
			runtime.GOMAXPROCS(before)
			if err != nil || words != len(chosen) || !slices.Equal(got[:words*dim], want) {
				t.Errorf("%d processors, %d atoms: other rows, or %d of them, want %d, error %v", processors, atoms, words, len(chosen), err)
			}
		}
	}
}

// Rows are ordered by their FNV-1a hashes. Equal rows keep their order.
func TestCandidateOrderIsByHash(t *testing.T) {
	const dim = 7
	for n := range 40 {
		x := rowsOf(n, dim, uint64(n))
		if n > 5 {
			copy(x[(n-2)*dim:], x[dim:2*dim])
		}
		sums := make([]uint64, n)
		for i := range sums {
			hash := fnv.New64a()
			testonly.Must(t, binary.Write(hash, binary.LittleEndian, x[i*dim:][:dim]))
			sums[i] = hash.Sum64()
		}
		want := candidateOrder(x, dim, true)
		slices.SortStableFunc(want, func(i, j int) int { return cmp.Compare(sums[i], sums[j]) })
		if got := candidateOrder(x, dim, false); !slices.Equal(got, want) {
			t.Errorf("%d rows: order %v, want %v", n, got, want)
		}
	}
}

// If too few rows differ in direction, the other atoms are distinct random directions.
func TestRowAtomsOfFewRows(t *testing.T) {
	const dim, atoms, norm = 5, 12, 2.
	x := rowsOf(4, dim, 2)
	x = append(x, x[:2*dim]...) // 4 of 6 differ
	s := initialiser{x: x, mean: &model.Dictionary{Dim: dim}, atoms: atoms, seed: 1}
	got, words, err := s.rowAtoms(t.Context(), norm, candidateOrder(x, dim, true))
	if err != nil || words != 4 || len(got) != atoms*dim {
		t.Fatalf("%d words in %d numbers", words, len(got))
	}
	for k := range atoms {
		if length := math.Sqrt(float32s.Squares(got[k*dim:][:dim])); math.Abs(length-norm) > 1e-6 {
			t.Errorf("atom %d has norm %v", k, length)
		}
		for other := range k {
			if slices.Equal(got[k*dim:][:dim], got[other*dim:][:dim]) {
				t.Errorf("atoms %d and %d are the same", other, k)
			}
		}
	}
	// Only the first eight rows per atom are candidates.
	for n, want := range map[int]int{8: 1, 9: 0} {
		x := make([]float32, n*dim)
		x[(n-1)*dim] = 1
		s := initialiser{x: x, mean: &model.Dictionary{Dim: dim}, atoms: 1}
		if _, words, err := s.rowAtoms(t.Context(), norm, candidateOrder(x, dim, true)); err != nil || words != want {
			t.Errorf("%d of %d rows are chosen, want %d", words, n, want)
		}
	}
}

// If memory can't hold the atoms, a copy for the device and two in the searchers, choose returns ErrMemory before other
// errors.
func TestChooseTooManyAtoms(t *testing.T) {
	const dim = 5
	limit, ok := memory.Limit()
	if !ok {
		t.Skip("the memory limit is unknown")
	}
	x := rowsOf(4, dim, 1)
	for i := range x {
		x[i] *= 1e-18 // too small for a training
	}
	copies := func(n float64) int { return int(float64(limit) / (4 * dim * n)) } // K for n copies in memory
	for atoms, want := range map[int]bool{copies(3.9): true, copies(4.1): false} {
		s := initialiser{x: x, mean: &model.Dictionary{Dim: dim}, atoms: atoms}
		if _, _, err := s.choose(t.Context(), Options{}); err == nil || errors.Is(err, ErrMemory) != want {
			t.Errorf("%d atoms: error %v, want one of memory: %v", atoms, err, want)
		}
	}
}

// Rows are identical if they differ from their mean by its rounding only.
func TestMeanSquareOfEqualRows(t *testing.T) {
	mean := []float32{0.1, 10}
	rounded := &model.Dictionary{Dim: 2, Mean: []float32{math.Nextafter32(0.1, 1), 10}}
	if square, err := meanSquare(slices.Concat(mean, mean, mean), rounded); !errors.Is(err, ErrIdenticalRows) {
		t.Errorf("%g, %v", square, err)
	}
	if square, err := meanSquare([]float32{0.1, 10, 0.1, 10.01}, rounded); err != nil || math.Abs(square-5e-5) > 1e-7 {
		t.Errorf("%g, %v", square, err)
	}
}
