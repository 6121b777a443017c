package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/testonly/encodetest"
	"overcomplete/model"
)

// searchProblem is rows and a dictionary that are difficult for integers.
type searchProblem struct {
	name       string
	dim, atoms int
	o          encode.Options
	change     func(x []float32, d *model.Dictionary) // nil for none
}

var searchProblems = []searchProblem{
	{"plain", 50, 301, encode.Options{Lambda: 1, Steps: 16, Nonzeros: 30}, nil},
	{"nonnegative", 50, 301, encode.Options{Lambda: 1, Steps: 16, Nonzeros: 30, Nonnegative: true}, nil},
	{"several blocks of atoms", 21, 700, encode.Options{Lambda: 0.5, Steps: 16, Nonzeros: 40}, nil},
	{"λ = 0", 17, 400, encode.Options{Steps: 16, Nonzeros: 5}, nil},
	{"one step", 50, 301, encode.Options{Lambda: 1, Steps: 1, Nonzeros: 30}, nil},
	{"two steps", 50, 301, encode.Options{Lambda: 1, Steps: 2, Nonzeros: 30}, nil},
	{"40 steps", 50, 301, encode.Options{Lambda: 1, Steps: 40, Nonzeros: 400}, nil},
	{"one atom", 50, 1, encode.Options{Lambda: 1, Steps: 16, Nonzeros: 1}, nil},
	{"one dimension", 1, 40, encode.Options{Lambda: 0.1, Steps: 16, Nonzeros: 5}, nil},
	{"65,536 dimensions", 65536, 9, encode.Options{Lambda: 1, Steps: 3, Nonzeros: 5}, nil},
	{"norms from 1e-6 to 1e6", 50, 301, encode.Options{Lambda: 1e-6, Steps: 16, Nonzeros: 30}, func(x []float32, d *model.Dictionary) {
		for k := range d.Len() {
			scaleBy(d.Atom(k), math.Pow(10, -6+12*float64(k)/300))
		}
	}},
	{"an atom of zeros, and one of 1e-40", 50, 301, encode.Options{Lambda: 1, Steps: 16, Nonzeros: 30}, func(x []float32, d *model.Dictionary) {
		clear(d.Atom(5))
		scaleBy(d.Atom(6), 1e-40)
	}},
	{"an outlier coordinate", 50, 301, encode.Options{Lambda: 1, Steps: 16, Nonzeros: 30}, func(x []float32, d *model.Dictionary) {
		for _, m := range [][]float32{x, d.Atoms} {
			for i := 3; i < len(m); i += 50 {
				m[i] *= 1000
			}
		}
	}},
	{"large dictionary", 50, 301, encode.Options{Lambda: 1e12, Steps: 16, Nonzeros: 30}, func(x []float32, d *model.Dictionary) { scaleBy(d.Atoms, 1e12) }},
	{"small dictionary", 50, 301, encode.Options{Lambda: 1e-12, Steps: 16, Nonzeros: 30}, func(x []float32, d *model.Dictionary) { scaleBy(d.Atoms, 1e-12) }},
	{"equal atoms", 20, 60, encode.Options{Lambda: 0.5, Steps: 16, Nonzeros: 7}, func(x []float32, d *model.Dictionary) {
		copy(d.Atoms[len(d.Atoms)/2:], d.Atoms[:len(d.Atoms)/2])
	}},
	{"a mean", 50, 301, encode.Options{Lambda: 1, Steps: 16, Nonzeros: 30}, func(x []float32, d *model.Dictionary) { d.Mean = append([]float32(nil), x[:50]...) }},
}

func scaleBy(x []float32, factor float64) {
	for i := range x {
		x[i] = float32(float64(x[i]) * factor)
	}
}

// make returns 40 rows and the dictionary. The last rows are difficult.
func (p searchProblem) make() (x []float32, d *model.Dictionary) {
	const rows = 40
	x, d = encodetest.Problem(rows, p.dim, p.atoms)
	row := func(i int) []float32 { return x[(rows-i)*p.dim:][:p.dim] }
	clear(row(1))
	clear(row(2))
	row(2)[p.dim/2] = 1e-42
	scaleBy(row(3), 1e-42)
	scaleBy(row(4), 1e30)
	clear(row(5))
	row(5)[p.dim-1] = 3
	row(6)[0] = 1e6 // a spike
	scaleBy(row(7), 1e-4)
	copy(row(8), d.Atom(0))
	if p.change != nil {
		p.change(x, d)
	}
	return x, d
}

// The codes before the polish have the bits of the definition, on all levels.
func TestSearch(t *testing.T) {
	for _, p := range searchProblems {
		x, d := p.make()
		var want [][]float32
		eachLevel(t, func(t *testing.T) {
			e := newEncoder(t, d, p.o, 1)
			l, n := e.lanes[0], len(x)/p.dim
			l.y.Resize(n, p.dim)
			l.prepare(e, n, func(i int) []float32 { return x[i*p.dim:][:p.dim] })
			e.search(t.Context(), l, n, p.o.Steps)
			l.setCodes(e, n, e.k)
			nonzeros := 0
			for i := range n {
				if len(want) == i {
					want = append(want, encodetest.Search(l.y.Row(i), d, e.step, p.o))
				}
				got := make([]float32, p.atoms)
				for j, k := range l.codes.index[i] {
					got[k] = l.codes.value[i][j]
					nonzeros++
				}
				for k := range got {
					if got[k] != want[i][k] {
						t.Fatalf("%s: row %d: code %d is %v, want %v", p.name, i, k, got[k], want[i][k])
					}
				}
			}
			if nonzeros == 0 {
				t.Errorf("%s: all codes are zero", p.name)
			}
		})
	}
}

// The magnitude equals that of a sorted copy.
func TestKthLargest(t *testing.T) {
	var s searchLane
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		x := make([]float32, 1+rng.IntN(50))
		wide := make([]float64, len(x))
		for i := range x {
			x[i] = float32(rng.IntN(9)-4) * float32(math.Exp(float64(rng.IntN(3))))
			wide[i] = float64(x[i])
		}
		for k := 1; k <= len(x)+1; k++ {
			least, equal := s.kthLargest(x, k)
			kept := make([]bool, len(x))
			for i, v := range x {
				if m := max(v, -v); m > least || m == least && equal > 0 {
					if kept[i] = v != 0; m == least {
						equal--
					}
				}
			}
			if want := encodetest.Largest(wide, k); fmt.Sprint(kept) != fmt.Sprint(want) {
				t.Fatalf("of %v, %d largest are %v, want %v", x, k, kept, want)
			}
		}
	}
}
