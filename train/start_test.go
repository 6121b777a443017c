package train

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"overcomplete/model"
)

func rowsOf(n, dim int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n*dim)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// Atoms to start from are, after the first, each the row that is farthest from all
// before: computed here from all pairs.
func TestWordAtomsAreFarthest(t *testing.T) {
	const n, dim, atoms, norm = 300, 7, 90, 3.
	x := rowsOf(n, dim, 1)
	copy(x[10*dim:], x[20*dim:21*dim]) // a repetition
	for j := range dim {
		x[30*dim+j], x[40*dim+j] = 0, 2*x[50*dim+j] // nothing, and the same direction
	}
	d := &model.Dictionary{Dim: dim}
	got, words := wordAtoms(t.Context(), x, d, norm, atoms, 5, 0)
	if words != atoms || len(got) != atoms*dim {
		t.Fatalf("%d words in %d numbers", words, len(got))
	}
	unit := func(v []float32) []float64 {
		u := make([]float64, dim)
		for j := range u {
			u[j] = float64(v[j]) / math.Sqrt(squares(v))
		}
		return u
	}
	distance := func(a, b []float64) float64 {
		dot := 0.
		for j := range a {
			dot += a[j] * b[j]
		}
		return 1 - dot
	}
	var rows, chosen [][]float64
	for i := range n {
		if squares(x[i*dim:][:dim]) > 0 {
			rows = append(rows, unit(x[i*dim:][:dim]))
		}
	}
	nearest := func(a []float64) float64 {
		least := 2.
		for _, c := range chosen {
			least = min(least, distance(a, c))
		}
		return least
	}
	for k := range atoms {
		atom := got[k*dim:][:dim]
		if length := math.Sqrt(squares(atom)); math.Abs(length-norm) > 1e-6 {
			t.Errorf("atom %d has norm %v", k, length)
		}
		a, farthest, isRow := unit(atom), 0., false
		for _, r := range rows {
			farthest = max(farthest, nearest(r))
			isRow = isRow || distance(r, a) < 1e-6
		}
		// Cosines are computed in single precision.
		if got := nearest(a); !isRow || got < farthest-1e-5 {
			t.Fatalf("atom %d is a row: %t; at %v from those before, where one is at %v", k, isRow, got, farthest)
		}
		chosen = append(chosen, a)
	}
}

// However many workers there are, they choose as one does that looks at all pairs: the
// row that is farthest from all before, of several the first. Here rows of norm 1 are
// multiples of 1/4 so that cosines are exact, and most distances those of many rows; they
// are repeated, at other lengths too, and some are the mean.
func TestWordAtomsWorkers(t *testing.T) {
	const n, dim = 900, 16
	d := &model.Dictionary{Dim: dim, Mean: make([]float32, dim)}
	for _, atoms := range []int{150, 800} { // a sample to choose from; and more than there are directions
		rng := rand.New(rand.NewPCG(uint64(atoms), 1))
		rows := make([][]float64, n) // less the mean, of norm 1, or zero
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

		dot := func(a, b []float64) (sum float64) {
			for j := range a {
				sum += a[j] * b[j]
			}
			return sum
		}
		const seed, norm = 5, 2
		order := rand.New(rand.NewPCG(seed, wordStream)).Perm(n)
		order = order[:min(n, startRows*atoms)]
		distance := make([]float64, n)
		for i, r := range rows {
			distance[i] = 2 * dot(r, r) // 0 for the mean
		}
		var want []float32
		for range atoms {
			farthest := slices.MaxFunc(order, func(a, b int) int { return cmp.Compare(distance[a], distance[b]) }) // of several the first
			if distance[farthest] == 0 {
				break
			}
			for i, r := range rows {
				distance[i] = min(distance[i], 1-dot(r, rows[farthest]))
			}
			for _, v := range rows[farthest] {
				want = append(want, float32(norm*v))
			}
		}

		for _, workers := range []int{1, 2, 5} {
			got, words := wordAtoms(t.Context(), x, d, norm, atoms, seed, workers)
			if words != len(want)/dim || !slices.Equal(got[:words*dim], want) {
				t.Errorf("%d workers choose other words for %d atoms, or not as many: %d, want %d", workers, atoms, words, len(want)/dim)
			}
		}
	}
}

// Where rows do not differ enough, atoms are random directions, different ones.
func TestWordAtomsOfFewRows(t *testing.T) {
	const dim, atoms, norm = 5, 12, 2.
	x := rowsOf(4, dim, 2)
	x = append(x, x[:2*dim]...) // 4 of 6 differ
	got, words := wordAtoms(t.Context(), x, &model.Dictionary{Dim: dim}, norm, atoms, 1, 0)
	if words != 4 || len(got) != atoms*dim {
		t.Fatalf("%d words in %d numbers", words, len(got))
	}
	for k := range atoms {
		if length := math.Sqrt(squares(got[k*dim:][:dim])); math.Abs(length-norm) > 1e-6 {
			t.Errorf("atom %d has norm %v", k, length)
		}
		for other := range k {
			if slices.Equal(got[k*dim:][:dim], got[other*dim:][:dim]) {
				t.Errorf("atoms %d and %d are the same", other, k)
			}
		}
	}
	// Less their mean, rows that are all the same are nothing.
	same := &model.Dictionary{Dim: dim, Mean: x[:dim]}
	if _, err := meanSquare(slices.Repeat(x[:dim], 3), same); err != ErrAllSame {
		t.Errorf("error %v", err)
	}
	if square, err := meanSquare([]float32{3, 4, 0, 5}, &model.Dictionary{Dim: 2}); square != 25 || err != nil {
		t.Errorf("mean square %v, error %v, want 25", square, err)
	}
}

// The search for a λ finds it on curves like those of word vectors, in few trainings.
func TestNextLambda(t *testing.T) {
	for _, slope := range []float64{0.8, 1.5} {
		for _, half := range []float64{0.01, 0.3, 20} { // the λ of half zeros
			for _, wanted := range []float64{0.3, 0.9, 0.97} {
				var tried []Tried
				share := -1.
				for len(tried) < MostTrainings && math.Abs(share-wanted) > SparsityTolerance {
					lambda := NextLambda(tried, wanted, 0.5)
					share = 1 / (1 + math.Exp(-slope*math.Log(lambda/half)))
					tried = append([]Tried{{lambda, share}}, tried...) // any order
				}
				if math.Abs(share-wanted) > SparsityTolerance {
					t.Errorf("slope %v around λ = %v: %v zeros, want %v", slope, half, share, wanted)
				}
			}
		}
	}
}
