package backend_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"gonum.org/v1/gonum/mat"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/testonly/encodetest"
)

// The step size is at least 1/(2.04·‖D‖₂²), from the largest singular value, and larger by less than 0.1 %.
func TestStepSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ atoms, dim int }{{1, 1}, {3, 1}, {1, 3}, {40, 8}, {8, 40}, {300, 30}} {
		d := &model.Dictionary{Dim: c.dim, Atoms: make([]float32, c.atoms*c.dim)}
		for i := range d.Atoms {
			d.Atoms[i] = float32(rng.NormFloat64())
		}
		var svd mat.SVD
		if !svd.Factorize(mat.NewDense(c.atoms, c.dim, encodetest.Widen(d.Atoms)), mat.SVDNone) {
			t.Fatal("no singular values")
		}
		norm := svd.Values(nil)[0]
		s, err := backend.StepSize(d)
		if want := 1 / (2.04 * norm * norm); err != nil || s < want*(1-1e-9) || s > want*1.001 {
			t.Errorf("%d×%d: step %v, want %v, error %v", c.atoms, c.dim, s, want, err)
		}
		for _, processors := range []int{1, 3, 5} {
			before := runtime.GOMAXPROCS(processors)
			again, err := backend.StepSize(d)
			runtime.GOMAXPROCS(before)
			if err != nil || again != s {
				t.Errorf("%d×%d, %d processors: step %v, want %v, error %v", c.atoms, c.dim, processors, again, s, err)
			}
		}
	}
	// For norms between 1e-20 and 1e19, twice the step size, 1/(1.02·‖D‖²), is a normal float32.
	for _, value := range []float32{0, 1e-20, 1e19, math.MaxFloat32, float32(math.NaN())} {
		if _, err := backend.StepSize(&model.Dictionary{Dim: 3, Atoms: []float32{value, 0, 0}}); !errors.Is(err, encode.ErrDictionary) {
			t.Errorf("a dictionary of norm %v: error %v", value, err)
		}
	}
	for _, value := range []float32{1e-19, 9e18} {
		s, err := backend.StepSize(&model.Dictionary{Dim: 3, Atoms: []float32{value, 0, 0}})
		if step := float32(2 * s); err != nil || step == 0 || math.IsInf(float64(step), 0) {
			t.Errorf("a dictionary of norm %v: step %v, error %v", value, step, err)
		}
	}
}

// The step size stays within the margin if the dictionary changes little, and if it changes completely.
func TestSpectrum(t *testing.T) {
	const atoms, dim = 300, 30
	rng := rand.New(rand.NewPCG(3, 4))
	d := &model.Dictionary{Dim: dim, Atoms: make([]float32, atoms*dim)}
	var spectrum backend.Spectrum
	for n := range 50 {
		much := 0.05
		if n%10 == 0 {
			much = 1
		}
		for i := range d.Atoms {
			d.Atoms[i] = float32((1-much)*float64(d.Atoms[i]) + much*rng.NormFloat64())
		}
		var svd mat.SVD
		if !svd.Factorize(mat.NewDense(atoms, dim, encodetest.Widen(d.Atoms)), mat.SVDNone) {
			t.Fatal("no singular values")
		}
		norm := svd.Values(nil)[0]
		s, err := spectrum.StepSize(d)
		if want := 1 / (2.04 * norm * norm); err != nil || s < want*(1-1e-9) || s > want*1.02 {
			t.Errorf("dictionary %d: step %v, want %v, error %v", n, s, want, err)
		}
	}
}

// Momenta by hand: q is 1, (1+√5)/2 = 1.618034, 2.193527, 2.749791. λ follows [encode.Shrinkage].
func TestFISTA(t *testing.T) {
	want := []float64{0, 0.281754, 0.434043}
	n := 0
	for lambda, momentum := range backend.FISTA(0.5, len(want)) {
		if math.Abs(momentum-want[n]) > 1e-6 || lambda != encode.Shrinkage(0.5, n, len(want)) {
			t.Errorf("step %d: λ = %v and a momentum of %v, want %v", n, lambda, momentum, want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d steps, want %d", n, len(want))
	}
}
