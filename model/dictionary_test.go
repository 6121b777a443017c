package model

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"
)

func TestDictionaryValidate(t *testing.T) {
	for name, d := range map[string]*Dictionary{
		"nothing":             {},
		"no dimensions":       {Atoms: []float32{1, 2}},
		"fewer than none":     {Dim: -2, Atoms: []float32{1, 2}},
		"no atoms":            {Dim: 2, Mean: []float32{1, 2}},
		"part of an atom":     {Dim: 2, Atoms: []float32{1, 2, 3}},
		"a mean too short":    {Dim: 2, Atoms: []float32{1, 2}, Mean: []float32{1}},
		"a mean too long":     {Dim: 2, Atoms: []float32{1, 2}, Mean: []float32{1, 2, 3}},
		"a mean of no length": {Dim: 2, Atoms: []float32{1, 2}, Mean: []float32{}},
	} {
		if d.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCenter(t *testing.T) {
	x := []float32{1, 2, 3, 4}
	for _, tt := range []struct{ mean, want []float32 }{
		{[]float32{1, -0.5}, []float32{0, 2.5, 2, 4.5}},
		{nil, x},
	} {
		d := &Dictionary{Dim: 2, Atoms: []float32{1, 0}, Mean: tt.mean}
		dst, place := make([]float32, len(x)), slices.Clone(x)
		d.Center(dst, x)
		d.Center(place, place)
		if !slices.Equal(dst, tt.want) || !slices.Equal(place, tt.want) {
			t.Errorf("mean %v: %v, and %v in place, want %v", tt.mean, dst, place, tt.want)
		}
	}
	if !slices.Equal(x, []float32{1, 2, 3, 4}) {
		t.Errorf("x became %v", x)
	}
}

// normal returns n random numbers.
func normal(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// Squares returns the same bits as a sequential sum over rows, for any number of processors.
func TestSquares(t *testing.T) {
	const rows, dim = 1000, 3
	x := normal(rand.New(rand.NewPCG(1, 2)), rows*dim)
	for _, mean := range [][]float32{nil, {1, -0.5, 0.1}} {
		want := 0.0
		for i := range rows {
			row := 0.0
			for j, v := range x[i*dim:][:dim] {
				if mean != nil {
					v -= mean[j]
				}
				row += float64(v) * float64(v)
			}
			want += row
		}
		for processors := range 3 {
			before := runtime.GOMAXPROCS(1 + processors)
			if got := (&Dictionary{Dim: dim, Mean: mean}).Squares(x); got != want {
				t.Errorf("mean %v: %v, want %v", mean, got, want)
			}
			runtime.GOMAXPROCS(before)
		}
	}
}

// The oracle sorts all weights.
func TestQuery(t *testing.T) {
	const atoms, dim = 50, 7
	rng := rand.New(rand.NewPCG(3, 4))
	d := &Dictionary{Dim: dim, Atoms: normal(rng, atoms*dim)}
	x := normal(rng, dim)
	steering := map[int]float64{3: 0.5, 4: -0.5, 49: 10}
	norm := math.Sqrt(blas32.DDot(blas32.Vector{N: dim, Inc: 1, Data: x}, blas32.Vector{N: dim, Inc: 1, Data: x}))
	for _, signed := range []bool{false, true} {
		want := map[int32]float64{}
		var keys []float64
		for k := range int32(atoms) {
			w := blas32.DDot(blas32.Vector{N: dim, Inc: 1, Data: d.Atom(int(k))}, blas32.Vector{N: dim, Inc: 1, Data: x})/norm + steering[int(k)]
			key := w
			if signed {
				key = math.Abs(w)
			}
			want[k], keys = w, append(keys, key)
		}
		slices.Sort(keys)
		index, weights := d.Query(x, 9, signed, steering)
		if len(index) != 9 || !slices.IsSorted(index) || slices.Contains(weights, 0) {
			t.Fatalf("signed %v: dimensions %v, weights %v", signed, index, weights)
		}
		for i, k := range index {
			if math.Abs(float64(weights[i])-want[k]) > 1e-6 || max(want[k], -want[k]) < keys[atoms-9]-1e-6 || !signed && want[k] < 0 { // rounding of float32
				t.Errorf("signed %v: weight %v of dimension %d, want %v among the nine above %v", signed, weights[i], k, want[k], keys[atoms-9])
			}
		}
	}
	if index, _ := d.Query(x, atoms, false, nil); len(index) == 0 || len(index) == atoms {
		t.Errorf("%d of %d weights are positive", len(index), atoms)
	}
	if index, weights := d.Query(make([]float32, dim), 9, true, map[int]float64{5: -2}); !slices.Equal(index, []int32{5}) || weights[0] != -2 {
		t.Errorf("a vector of zeros has the weights %v in %v", weights, index)
	}
}
