package intrusion

import (
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/testonly/encodetest"
	"overcomplete/train"
	"overcomplete/vectors"
)

// The codes of controls equal the codes by the definition in float64. These are on the scale of the input, with atoms of
// norm ρ = √(mean ‖y‖²) and λ = 0.04ρ².
func TestControls(t *testing.T) {
	const dim, atoms, most = 8, 30, 4
	x := clitest.Vectors(40, dim)
	for i := range x.Data {
		x.Data[i] = 100 * (x.Data[i] + 7)
	}
	y := make([]float64, len(x.Data))
	squares := 0.0
	for j := range dim {
		mean := 0.0
		for i := range x.Len() {
			mean += float64(x.Row(i)[j]) / 40
		}
		for i := range x.Len() {
			y[i*dim+j] = float64(x.Row(i)[j]) - mean
			squares += y[i*dim+j] * y[i*dim+j] / 40
		}
	}
	scale := math.Sqrt(squares)
	// Two of the twenty words have the mean vector, which can't be an atom.
	few := clitest.Vectors(20, dim)
	few.Data = append(few.Data[:9*dim], make([]float32, 11*dim)...)
	for i := range 9 {
		for j, v := range few.Row(i) {
			few.Row(i + 9)[j] = -v
		}
	}
	spread, _, err := standardise(few, atoms)
	testonly.Must(t, err)
	if d := rowAtoms(spread, atoms, 1); d.Len() != 18 {
		t.Errorf("%d atoms of 18 words", d.Len())
	}

	unit, norm, err := standardise(x, atoms)
	if err != nil || math.Abs(norm-scale) > 1e-9*scale {
		t.Fatalf("the norm is %v, want %v: %v", norm, scale, err)
	}
	for _, method := range []model.Method{model.Signed, model.Nonnegative} {
		for name, d := range map[Control]model.Dictionary{WordRows: rowAtoms(unit, atoms, 1), RandomDictionary: randomAtoms(atoms, dim, 1)} {
			got, err := Encode(t.Context(), x, name, atoms, most, method, 1, cpu.Device{})
			testonly.Must(t, err)
			drawn := map[int]bool{}
			wide := encodetest.Widen(d.Atoms)
			for k := range atoms {
				atom := wide[k*dim:][:dim]
				if norm := floats.Norm(atom, 2); math.Abs(norm-1) > 1e-6 {
					t.Errorf("%s: atom %d has norm %v", name, k, norm)
				}
				for i := range x.Len() {
					if row := y[i*dim:][:dim]; floats.Dot(atom, row) > (1-1e-6)*floats.Norm(row, 2) {
						drawn[i] = true
					}
				}
			}
			if want := map[Control]int{WordRows: atoms}[name]; len(drawn) != want {
				t.Errorf("%s: %d atoms are words, want %d", name, len(drawn), want)
			}
			o := encode.Options{Lambda: .04, Nonnegative: method == "B", Steps: encode.DefaultSteps, Nonzeros: most}
			squaredError := 0.0
			scaled := make([]float64, atoms*dim)
			floats.ScaleTo(scaled, scale, wide)
			for i, code := range clitest.Matrix(got.Codes) {
				residual := encodetest.Residual(y[i*dim:][:dim], scaled, code)
				squaredError += floats.Dot(residual, residual)
				want := encodetest.Code(encodetest.Widen(unit.Row(i)), wide, o)
				if off := floats.Distance(code, want, math.Inf(1)); off > 1e-4 { // values are about 1, in float32
					t.Errorf("%s, %s: row %d is off by %v", method, name, i, off)
				}
			}
			if e := got.Info.Encoding.Error; math.Abs(e-squaredError/40) > 1e-4*squares {
				t.Errorf("%s, %s: error %v, want %v", method, name, e, squaredError/40)
			}
		}
	}
	// Only the 20 most frequent words per atom are used.
	many := clitest.Vectors(60, dim)
	for i := range many.IDs { // names that aren't in alphabetical order
		many.IDs[i] = string([]byte{'a' + byte(37*i%60/10), 'a' + byte(37*i%10)})
	}
	for i := 40; i < 60; i++ {
		for j := range many.Row(i) {
			many.Row(i)[j] += 1000
		}
	}
	centred, _, err := standardise(many, 2)
	testonly.Must(t, err)
	for j, v := range (&vectors.Dense{IDs: many.IDs[:40], Dim: dim, Data: centred.Data[:40*dim]}).Mean() {
		if math.Abs(float64(v)) > 1e-6 {
			t.Errorf("the frequent words' mean is %v in dimension %d", v, j)
		}
	}
	for seed := range uint64(20) { // the other words would give nearly equal atoms
		d := rowAtoms(centred, 2, seed)
		if floats.Dot(encodetest.Widen(d.Atom(0)), encodetest.Widen(d.Atom(1))) > 0.999 {
			t.Errorf("seed %d: atoms of rare words", seed)
		}
	}
	for i := range 40 {
		copy(many.Row(i), many.Row(0))
	}
	if _, _, err := standardise(many, 2); !errors.Is(err, train.ErrIdenticalRows) {
		t.Error("frequent words that are equal can be told apart")
	}
	if a, b := randomAtoms(5, 3, 1), randomAtoms(5, 3, 2); slices.Equal(a.Atoms, b.Atoms) {
		t.Error("the same random atoms with another seed")
	}
	if a, b := rowAtoms(unit, 5, 1), rowAtoms(unit, 5, 2); slices.Equal(a.Atoms, b.Atoms) {
		t.Error("the same words with another seed")
	}
	for _, n := range []int{2, 49, 98, 103} { // for some n, 1/n times the sum of n equal vectors is rounded to another vector
		equal := &vectors.Dense{IDs: make([]string, n), Dim: 2, Data: slices.Repeat([]float32{.1, 2}, n)}
		if _, _, err := standardise(equal, 5); !errors.Is(err, train.ErrIdenticalRows) {
			t.Errorf("%d equal vectors can be told apart", n)
		}
	}
}
