package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
	"overcomplete/vectors"
	_ "overcomplete/vectors/columnar"
)

// searchProblem describes rows and a dictionary that are difficult to search in integers.
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

// Before the polish, the codes have the bits of the definition with each instruction set.
func TestSearch(t *testing.T) {
	for _, p := range searchProblems {
		x, d := p.make()
		var want [][]float32
		eachLevel(t, func(t *testing.T) {
			e := newEncoder(t, d, p.o, 1)
			l, n := e.lanes[0], len(x)/p.dim
			l.y.Resize(n, p.dim)
			l.prepare(e, make([]float64, n), func(i int) []float32 { return x[i*p.dim:][:p.dim] })
			e.search(t.Context(), l, n, p.o.Steps)
			l.setCodes(e, n, e.k)
			nonzeros := 0
			for i := range n {
				if len(want) == i {
					want = append(want, encodetest.Search(l.y.Row(i), d, e.step, p.o, e.capacity))
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

// sampleRows returns n random rows of a file, a dictionary of random rows, centred and scaled to the root-mean-square
// norm, and the mean squared norm.
func sampleRows(t *testing.T, file string, n, atoms int, seed uint64) (x []float32, d *model.Dictionary, square float64) {
	t.Helper()
	all, _, err := vectors.Read(t.Context(), []string{file}, vectors.ReadOptions{})
	testonly.Must(t, err)
	d = &model.Dictionary{Dim: all.Dim, Atoms: make([]float32, atoms*all.Dim), Mean: make([]float32, all.Dim)}
	for j := range all.Dim {
		var sum float64
		for i := range all.Len() {
			sum += float64(all.Row(i)[j])
		}
		d.Mean[j] = float32(sum / float64(all.Len()))
	}
	square = d.Squares(all.Data) / float64(all.Len())
	order := rand.New(rand.NewPCG(seed, 1)).Perm(all.Len())
	for k := range atoms {
		d.Center(d.Atom(k), all.Row(order[k]))
		wide := encodetest.Widen(d.Atom(k))
		scaleBy(d.Atom(k), math.Sqrt(square/dot(wide, wide)))
	}
	for _, i := range order[len(order)-n:] {
		x = append(x, all.Row(i)...)
	}
	return x, d, square
}

// The objective of the codes is within half a percent of the objective of the search in floats, which encodetest
// compares with the graph.
func TestSearchObjective(t *testing.T) {
	for _, c := range []struct {
		file           string
		rows, atoms, k int
		seeds          uint64
	}{
		{"../testdata/godoc.50d.txt.gz", 200, 250, 15, 3},
		{"../testdata/godoc.50d.txt.gz", 200, 250, 5, 3},
		{"vectors/glove.6B.50d.9163.txt.gz", 200, 500, 15, 3},
		{"vectors/googlenews.300d.8000.txt.gz", 20, 1000, 60, 3},
		{"vectors/minilm.sentences.384d.15565.parquet", 20, 1000, 80, 3},
	} {
		sample := strings.HasPrefix(c.file, "..")
		if !sample && !testonly.Full {
			continue
		}
		t.Run(path.Base(c.file), func(t *testing.T) {
			if !sample {
				c.file = testonly.Data(t, c.file)
			}
			for seed := range c.seeds {
				x, d, square := sampleRows(t, c.file, c.rows, c.atoms, seed)
				o := encode.Options{Lambda: 0.04 * square, Steps: encode.DefaultSteps, Nonzeros: c.k, Nonnegative: seed == 1}
				codes, atoms := encodetest.Encode(t, newEncoder(t, d, o, 2), x), encodetest.Widen(d.Atoms)
				var got, want float64
				for i := range codes.Rows {
					y := make([]float32, d.Dim)
					d.Center(y, x[i*d.Dim:][:d.Dim])
					wide := encodetest.Widen(y)
					objective, _ := encodetest.Objective(wide, atoms, encodetest.FloatCode(wide, atoms, o), o.Lambda, o.Nonnegative)
					want += objective
					objective, _ = encodetest.Objective(wide, atoms, encodetest.Row(codes, i), o.Lambda, o.Nonnegative)
					got += objective
				}
				t.Logf("seed %d: objective %.5f, %+.2f %%", seed, got/float64(codes.Rows), 100*(got/want-1))
				if got > 1.005*want {
					t.Errorf("seed %d: objective %v, of the search in floats %v", seed, got, want)
				}
			}
		})
	}
}

// The codes of an orthonormal dictionary are the products of at least λ/2. The first of the polish's five steps leaves
// 2 % of the distance to them.
func TestSearchOrthonormal(t *testing.T) {
	d := &model.Dictionary{Dim: 2, Atoms: []float32{0.6, 0.8, -0.8, 0.6}}
	for _, o := range []encode.Options{{Lambda: 1, Steps: 16, Nonzeros: 2}, {Lambda: 1, Steps: 16, Nonzeros: 2, Nonnegative: true}, {Lambda: 1, Steps: 16, Nonzeros: 1}} {
		codes := encodetest.Row(encodetest.Encode(t, newEncoder(t, d, o, 1), []float32{3, 1}), 0)
		want := []float64{2.6, -1.8}
		if o.Nonnegative || o.Nonzeros == 1 {
			want[1] = 0
		}
		testonly.Near(t, fmt.Sprint(o), codes, want, 1e-3)
	}
}

// Codes don't depend on the number of workers or on the other rows of a call, not even if rows are difficult.
func TestSearchKeepsBits(t *testing.T) {
	for _, p := range searchProblems {
		if p.dim > 1000 {
			continue
		}
		x, d := p.make()
		bits := func(e *encoder, size int) (rows [][]uint32) {
			for x := range slices.Chunk(x, size*p.dim) {
				codes, err := encode.Rows(t.Context(), e, x)
				testonly.Must(t, err)
				rows = append(rows, bitsOf(codes)...)
			}
			return rows
		}
		want := bits(newEncoder(t, d, p.o, 1), len(x)/p.dim)
		several := newEncoder(t, d, p.o, 16)
		for _, size := range []int{1, 7, len(x) / p.dim} {
			if !reflect.DeepEqual(bits(several, size), want) {
				t.Errorf("%s: 16 workers give other codes than one, in calls of %d rows", p.name, size)
			}
		}
	}
}

// bitsOf returns the columns, values and loss of each row.
func bitsOf(c *encode.Codes) (rows [][]uint32) {
	for i := range c.Rows {
		index, value := c.Row(i)
		loss := math.Float64bits(c.Loss[i])
		row := []uint32{uint32(loss), uint32(loss >> 32)}
		for n, k := range index {
			row = append(row, uint32(k), math.Float32bits(value[n]))
		}
		rows = append(rows, row)
	}
	return rows
}

// Rows with numbers that are not finite have codes of zeros, and a loss that is not finite.
func TestSearchNotFinite(t *testing.T) {
	x, d := encodetest.Problem(4, 50, 301)
	x[0], x[50] = float32(math.NaN()), float32(math.Inf(1))
	codes := encodetest.Encode(t, newEncoder(t, d, encode.Options{Lambda: 1, Steps: 16, Nonzeros: 30}, 1), x)
	for i, loss := range codes.Loss {
		if index, _ := codes.Row(i); (loss-loss == 0) != (i > 1) || (len(index) > 0) != (i > 1) {
			t.Errorf("row %d: loss %v, codes of %v", i, loss, index)
		}
	}
}

// The choice equals the choice from a sorted copy.
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
