package cpu

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"overcomplete/cpu/simd"
	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/train"
	"overcomplete/train/backendtest"
)

// eachLevel runs a test for every level that this processor has, forced.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	for _, k := range simd.Levels() {
		t.Run(k.Name, func(t *testing.T) {
			t.Setenv(simd.Variable, k.Name)
			f(t)
		})
	}
}

func TestBackend(t *testing.T) {
	eachLevel(t, func(t *testing.T) { backendtest.Run(t, backendtest.Float32, newBackend) })
}

// float16 is for sums that were rounded to 2⁻¹², 2.4e-4, in each of two epochs
// before the last.
const float16 = 2e-3

func TestBackendFloat16(t *testing.T) {
	if testing.Short() {
		t.Skip("float16 sums differ in one kernel; left out by -short")
	}
	eachLevel(t, func(t *testing.T) {
		backendtest.Run(t, float16, func(spec graph.Spec, x []float32, seed uint64, workers int) (*Backend, error) {
			return New(spec, x, Options{Seed: seed, Workers: workers, Float16: true})
		})
	})
}

// At the best level only: TestBackendFloat16 has all kernels that float16 has.
func TestAuthorsBackendFloat16(t *testing.T) {
	if testing.Short() {
		t.Skip("float16 sums differ in one kernel; left out by -short")
	}
	backendtest.RunAuthors(t, float16, func(spec graph.Spec, x []float32, seed uint64, workers int) (*AuthorsBackend, error) {
		return NewAuthors(spec, x, Options{Seed: seed, Workers: workers, Float16: true})
	})
}

func newBackend(spec graph.Spec, x []float32, seed uint64, workers int) (*Backend, error) {
	return New(spec, x, Options{Seed: seed, Workers: workers})
}

func TestAuthorsBackend(t *testing.T) {
	eachLevel(t, func(t *testing.T) { backendtest.RunAuthors(t, backendtest.Float32, newAuthors) })
}

func newAuthors(spec graph.Spec, x []float32, seed uint64, workers int) (*AuthorsBackend, error) {
	return NewAuthors(spec, x, Options{Seed: seed, Workers: workers})
}

// The whole dictionary update must be one step with and without τ, for losses
// that lead to the same program.
func TestUpdateIsFused(t *testing.T) {
	for name, change := range map[string]func(*graph.Spec){
		"squared": func(*graph.Spec) {},
		"tau":     func(s *graph.Spec) { s.Tau = 1e-5 },
		"huber":   func(s *graph.Spec) { s.Tau, s.Loss = 1e-5, graph.Huber(0.4) },
	} {
		spec := small
		change(&spec)
		b, err := New(spec, make([]float32, 20), Options{})
		if err != nil {
			t.Fatal(err)
		}
		fused := 0
		for _, s := range b.dictionaryStep.steps {
			if s.update != nil {
				fused++
			}
		}
		if fused != 1 {
			t.Errorf("%s: %d steps of the dictionary program are fused", name, fused)
		}
	}
}

// The dictionary update goes other ways for small batches and large ones, with
// dense codes and sparse ones, and results are the same bits for any number of
// workers in all of them.
func TestUpdateKeepsBits(t *testing.T) {
	const words, dim, seed = 700, 200, 3
	x := train.InitialDictionary(seed, words, dim) // any numbers
	for i := range x {
		x[i] *= 40
	}
	eachLevel(t, func(t *testing.T) {
		for _, batch := range []int{60, 350} {
			for _, lambda := range []float64{0.02, 3} {
				spec := graph.Spec{Atoms: 150, Dim: dim, Lambda: lambda, Tau: 1e-3, Rate: 0.05}
				var want []float32
				for _, workers := range []int{1, 2, 5} {
					b, err := New(spec, x, Options{Seed: seed, Workers: workers})
					if err != nil {
						t.Fatal(err)
					}
					var pass train.CodePass
					for epoch := 1; epoch <= 2; epoch++ {
						if _, err = b.DictionaryPass(t.Context(), batch); err == nil {
							pass, err = b.CodePass(t.Context(), epoch)
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					if _, err := b.DictionaryPass(t.Context(), batch); err != nil {
						t.Fatal(err)
					}
					got, err := b.Dictionary()
					if err != nil {
						t.Fatal(err)
					}
					if want == nil {
						want = got
					} else if !slices.Equal(got, want) {
						t.Errorf("batches of %d, λ = %v: %d workers do not compute what one does", batch, lambda, workers)
					}
					share := float64(pass.Nonzeros) / float64(words*spec.Atoms)
					if large, sparse := 4*batch*b.dictionary.Pitch > batchBytes, share < denseShare; large != (batch == 350) || sparse != (lambda == 3) || share == 0 {
						t.Fatalf("batches of %d are large: %v; %.2f of the codes at λ = %v are not zero", batch, large, share, lambda)
					}
				}
			}
		}
	})
}

// The first epoch's codes, dense and random, take room that no later one needs.
func TestDrawnCodesAreDropped(t *testing.T) {
	const words, atoms = 10_000, 200
	spec := small
	spec.Atoms = atoms
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	b, err := New(spec, make([]float32, words*spec.Dim), Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	before := used()
	var during uint64
	b.progress = func(int) { during = used() }
	if _, err := b.DictionaryPass(t.Context(), words); err != nil {
		t.Fatal(err)
	}
	after := used()
	// Drawn codes are float32. What else a pass keeps is small beside them.
	if drawn := uint64(4 * words * atoms); during < before+drawn || after > before+drawn/2 {
		t.Errorf("%d bytes before the pass, %d when codes are drawn, %d after it", before, during, after)
	}
	runtime.KeepAlive(b)
}

var small = graph.Spec{Atoms: 10, Dim: 2, Lambda: 0.1, Rate: 0.05}

// Passes stop where they are when the context is cancelled under them.
func TestCancelledMidway(t *testing.T) {
	const words = 1000
	x := make([]float32, words*small.Dim)
	for name, pass := range map[string]func(ctx context.Context, o Options) error{
		"dictionary": func(ctx context.Context, o Options) error {
			b, err := New(small, x, o)
			if err == nil {
				_, err = b.DictionaryPass(ctx, 100)
			}
			return err
		},
		"code": func(ctx context.Context, o Options) error {
			b, err := New(small, x, o)
			if err == nil {
				_, err = b.CodePass(ctx, 1)
			}
			return err
		},
		"authors'": func(ctx context.Context, o Options) error {
			b, err := NewAuthors(small, x, o)
			if err == nil {
				_, _, err = b.AuthorsPass(ctx, 1)
			}
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := 0
		err := pass(ctx, Options{Workers: 1, Progress: func(n int) {
			if done += n; done >= 300 {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) || done < 300 || done >= 400 {
			t.Errorf("%s pass: error %v after %d words", name, err, done)
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*graph.Spec)
		x      []float32
		want   string
	}{
		{func(*graph.Spec) {}, nil, "0 numbers are no vectors of length 2"},
		{func(*graph.Spec) {}, make([]float32, 3), "3 numbers are no vectors of length 2"},
		{func(s *graph.Spec) { s.Atoms = 0 }, make([]float32, 4), "number of atoms is 0"},
		{func(s *graph.Spec) { s.Dim = 0 }, make([]float32, 4), "vector length is 0"},
		{func(s *graph.Spec) { s.Atoms = math.MaxInt }, make([]float32, 4), "not enough memory: 2 words × "},
		{func(s *graph.Spec) { s.Loss = gorgonia.Softplus }, make([]float32, 4), `operation "softplus" has no lowering`},
	} {
		spec := small
		c.change(&spec)
		if _, err := New(spec, c.x, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		if _, err := NewAuthors(spec, c.x, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("authors: error %v, want %q", err, c.want)
		}
	}
}

// An instruction set that is asked for and not there is an error of whatever needs
// kernels.
func TestUnknownLevel(t *testing.T) {
	t.Setenv(simd.Variable, "mmx")
	for name, f := range map[string]func() error{
		"Level":      func() error { _, _, err := Level(); return err },
		"New":        func() error { _, err := New(small, make([]float32, 4), Options{}); return err },
		"NewAuthors": func() error { _, err := NewAuthors(small, make([]float32, 4), Options{}); return err },
		"NewEncoder": func() error {
			_, err := NewEncoder([]float32{1}, 1, nil, encode.Options{Lambda: 1, Steps: 1, Most: 1}, 1)
			return err
		},
	} {
		if err := f(); !errors.Is(err, ErrLevel) {
			t.Errorf("%s: error %v, want %v", name, err, ErrLevel)
		}
	}
}
