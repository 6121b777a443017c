package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/program"
	"overcomplete/internal/simd"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/backendtest"
	"overcomplete/train"
)

// eachLevel runs a test with each instruction set that this processor has.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	for _, k := range simd.Levels() {
		t.Run(k.Name, func(t *testing.T) {
			t.Setenv(simd.Variable, k.Name)
			f(t)
		})
	}
}

// newTrainer returns a trainer with a number of workers.
func newTrainer(p backend.Problem, workers int) (backend.Trainer, error) {
	return Device{Workers: workers}.Trainer(p)
}

func TestTrainer(t *testing.T) {
	eachLevel(t, func(t *testing.T) { backendtest.Run(t, false, backendtest.Float32, newTrainer) })
}

func TestAuthors(t *testing.T) {
	run := func(t *testing.T) { backendtest.Run(t, true, backendtest.Float32, newTrainer) }
	if !testonly.Full { // the kernels have tests of their own, and the race detector observes only plain Go
		t.Setenv(simd.Variable, "generic")
		run(t)
		return
	}
	eachLevel(t, run)
}

// trainerOf returns a trainer as its concrete type.
func trainerOf(t testing.TB, p backend.Problem, workers int) *trainer {
	t.Helper()
	b, err := newTrainer(p, workers)
	testonly.Must(t, err)
	return b.(*trainer)
}

// The dictionary update has different loops for small and large batches and for dense and sparse codes. In
// all of them, results have the same bits for any number of workers.
func TestUpdateKeepsBits(t *testing.T) {
	const rows, dim, seed = 700, 200, 3
	x := backend.Problem{Dim: dim, Hyperparameters: model.Paper{Common: model.Common{Seed: seed, Atoms: rows}}}.InitialDictionary() // random numbers
	for i := range x {
		x[i] *= 40
	}
	eachLevel(t, func(t *testing.T) {
		for _, batch := range []int{60, 350} {
			for _, lambda := range []float64{0.02, 3} {
				h := train.Paper()
				h.Atoms, h.Lambda, h.Tau, h.Seed = 150, lambda, 1e-3, seed
				p := backend.Problem{X: x, Dim: dim, Hyperparameters: h}
				var want []float32
				for _, workers := range []int{1, 5} {
					b := trainerOf(t, p, workers)
					sums, err := b.Epoch(t.Context(), 1, batch)
					testonly.Must(t, err)
					testonly.Must(t, b.firstPass(t.Context(), 1, batch, new(backend.Sums)))
					got, err := b.Dictionary()
					testonly.Must(t, err)
					if want == nil {
						want = got
					} else if !slices.Equal(got, want) {
						t.Errorf("batches of %d, λ = %v: %d workers do not compute what one does", batch, lambda, workers)
					}
					share := float64(sums.Nonzeros) / float64(rows*b.atoms)
					if large, sparse := 4*batch*b.dictionary.Pitch > batchBytes, share < denseShare; large != (batch == 350) || sparse != (lambda == 3) || share == 0 {
						t.Fatalf("batches of %d are large: %v; %.2f of the codes at λ = %v are not zero", batch, large, share, lambda)
					}
				}
			}
		}
	})
}

// The dense random codes of the first epoch need memory that later epochs don't.
func TestDrawnCodesAreDropped(t *testing.T) {
	const rows = 10_000
	p := small(rows)
	p.Hyperparameters.Atoms = 200
	var before, during uint64
	p.Rows = func(int) { during = testonly.BytesInUse() }
	b := trainerOf(t, p, 1)
	before = testonly.BytesInUse()
	testonly.Must(t, b.firstPass(t.Context(), 1, rows, new(backend.Sums)))
	after := testonly.BytesInUse()
	// Random codes are float32. The rest of a pass's memory is small beside them.
	if drawn := uint64(4 * rows * b.atoms); during < before+drawn || after > before+drawn/2 {
		t.Errorf("%d bytes before the pass, %d when codes are drawn, %d after it", before, during, after)
	}
	runtime.KeepAlive(b)
}

// small returns a problem with the given number of rows.
func small(rows int) backend.Problem {
	h := train.Paper()
	h.Atoms, h.Lambda = 10, 0.1
	return backend.Problem{X: make([]float32, 2*rows), Dim: 2, Hyperparameters: h}
}

// A pass stops when its context is cancelled.
func TestCancelledMidway(t *testing.T) {
	const rows = 1000
	for _, test := range []struct {
		name    string
		authors bool
		after   int // rows
	}{
		{"dictionary pass", false, 300}, {"code pass", false, rows + 300},
		{"authors' order", true, 300}, {"authors' measuring", true, rows + 300},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := 0
		p := small(rows)
		p.Hyperparameters.AuthorsOrder = test.authors
		p.Rows = func(n int) {
			if done += n; done >= test.after {
				cancel()
			}
		}
		b, err := newTrainer(p, 1)
		testonly.Must(t, err)
		_, err = b.Epoch(ctx, 1, 100)
		cancel()
		if !errors.Is(err, context.Canceled) || done < test.after || done >= test.after+100 {
			t.Errorf("%s: error %v after %d words", test.name, err, done)
		}
	}
}

func TestTrainerErrors(t *testing.T) {
	for _, authors := range []bool{false, true} {
		for _, c := range []struct {
			change func(*backend.Problem)
			want   string
		}{
			{func(p *backend.Problem) { p.X = nil }, "0 numbers are not vectors of length 2"},
			{func(p *backend.Problem) { p.X = p.X[1:] }, "3 numbers are not vectors of length 2"},
			{func(p *backend.Problem) { p.Dim = 0 }, "4 numbers are not vectors of length 0"},
			{func(p *backend.Problem) { p.Hyperparameters.Atoms = 0 }, "number of atoms is 0"},
			{func(p *backend.Problem) { p.Hyperparameters.Atoms = math.MaxInt32 }, "not enough memory: 2 rows × "},
		} {
			p := small(2)
			p.Hyperparameters.AuthorsOrder = authors
			c.change(&p)
			_, err := newTrainer(p, 0)
			testonly.ErrorSays(t, fmt.Sprint("authors' order ", authors), err, c.want)
		}
	}
}

// A requested instruction set that the processor lacks is an error of everything that needs kernels.
func TestUnknownLevel(t *testing.T) {
	t.Setenv(simd.Variable, "mmx")
	for name, f := range map[string]func() error{
		"Trainer": func() error { _, err := newTrainer(small(2), 0); return err },
		"Encoder": func() error {
			_, err := Device{}.Encoder(&model.Dictionary{Dim: 1, Atoms: []float32{1}}, encode.Options{Lambda: 1, Steps: 1, Nonzeros: 1})
			return err
		},
	} {
		if err := f(); !errors.Is(err, simd.ErrLevel) {
			t.Errorf("%s: error %v, want %v", name, err, simd.ErrLevel)
		}
	}
}

// Every program that graph compiles runs with each instruction set.
func TestPrograms(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		backendtest.RunPrograms(t, newTrainer, func(b backend.Trainer, p *program.Program, epoch int) (map[string]float64, error) {
			s := b.(*trainer)
			x, f := &executable{p, s.kernels}, new(frame)
			s.bind(f, x, 0, s.rows, epoch, s.lanes)
			x.run(f, s.lanes)
			s.store(0, f) // one tile holds all rows
			numbers := make(map[string]float64)
			for name := range x.Outputs {
				numbers[name] = x.number(f, name)
			}
			return numbers, nil
		})
	})
}
