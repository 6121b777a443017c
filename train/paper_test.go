package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// script is a device whose trainer returns scripted sums.
type script struct {
	running   []float64 // running loss of all rows by epoch; the last one repeats
	shortened []int     // shortened steps by epoch; the last one repeats
	loss      float64
	rising    bool   // the error grows with each epoch
	sparser   bool   // nonzeros decrease with each epoch
	dead      bool   // all codes are zero
	cancel    func() // called in the second epoch

	problem backend.Problem
	batches []int // batch size of each epoch
	closed  int
	encode.Device
}

func (s *script) Learner([]float32, *model.Dictionary, float64, encode.Options) (backend.Learner, error) {
	return nil, errors.New("no learner")
}

func at[T any](s []T, i int) (x T) {
	if len(s) > 0 {
		x = s[min(i, len(s)-1)]
	}
	return x
}

func (s *script) Trainer(p backend.Problem) (backend.Trainer, error) {
	s.problem = p
	return scripted{script: s}, nil
}

type scripted struct {
	*script
	backend.Trainer // nil: nothing is saved
}

func (s scripted) Device() string { return "script" }

func (s scripted) Epoch(ctx context.Context, epoch, batch int) (backend.Sums, error) {
	s.batches = append(s.batches, batch)
	if epoch == 2 && s.cancel != nil {
		s.cancel()
	}
	sums := backend.Sums{
		RunningLoss: at(s.running, epoch-1), Steps: 100, Shortened: at(s.shortened, epoch-1),
		Loss: s.loss, Error: 2 * s.loss, L1: 30, Nonzeros: 12, Used: slices.Repeat([]bool{true}, 5),
	}
	if s.rising {
		sums.Error = 20 * s.loss * float64(epoch)
	}
	if s.sparser {
		sums.Nonzeros -= int64(epoch)
	}
	if s.dead {
		sums.L1, sums.Nonzeros, sums.Used = 0, 0, nil
	}
	return sums, ctx.Err()
}

func (s scripted) AtomSquares() ([]float64, error) {
	d, err := s.Dictionary()
	return backend.AtomSquares(d, s.problem.Dim), err
}

// Dictionary returns atoms of norm 5, 0 and 10, and zeros.
func (s scripted) Dictionary() ([]float32, error) {
	d := make([]float32, s.problem.Hyperparameters.Atoms*s.problem.Dim)
	copy(d, []float32{3, 4, 0, 0, 6, 8})
	return d, nil
}

func (s scripted) Codes() (*vectors.CSR, error) {
	return &vectors.CSR{Rows: s.problem.Len(), Cols: s.problem.Hyperparameters.Atoms, Ptr: make([]int64, s.problem.Len()+1)}, nil
}

func (s scripted) Close() error {
	s.closed++
	return nil
}

// rows returns n vectors of length 2.
func words(n int) *vectors.Dense {
	x := &vectors.Dense{IDs: make([]string, n), Dim: 2, Data: make([]float32, 2*n)}
	for i := range x.Data {
		x.Data[i] = float32(i)
	}
	return x
}

// six returns the defaults for six atoms.
func six(epochs int) model.Paper {
	h := Paper()
	h.Atoms, h.Epochs = 6, epochs
	return h
}

// fitted trains and returns the epochs, also if training fails.
func fitted(t *testing.T, s *script, n int, h model.Paper) (epochs []model.Epoch, err error) {
	t.Helper()
	var seen []model.Epoch
	m, err := Fit(t.Context(), words(n), h, s, Options{Epoch: func(e model.Epoch) { seen = append(seen, e) }})
	if err == nil && (!reflect.DeepEqual(m.Info.Training.Epochs, seen) || m.Info.Training.Device != "script") {
		t.Errorf("epochs %+v on %q, want those reported: %+v", m.Info.Training.Epochs, m.Info.Training.Device, seen)
	}
	if s.closed != 1 {
		t.Errorf("the trainer was closed %d times", s.closed)
	}
	return seen, err
}

func TestBatchSize(t *testing.T) {
	for _, c := range []struct {
		words, steps int
		shortened    []int // of 100 steps
		want         []int
	}{
		{1000, 128, []int{0}, []int{8, 8, 8, 8}},
		{1000, 128, []int{10}, []int{8, 8, 8, 8}}, // 10 % is not more than 10 %
		{1000, 128, []int{11, 0, 50, 50}, []int{8, 4, 4, 2}},
		{100, 128, []int{100}, []int{1, 1, 1, 1}},
		{1000, 1, []int{0}, []int{1000, 1000, 1000, 1000}},
	} {
		s, h := &script{shortened: c.shortened}, six(4)
		h.DictionarySteps = c.steps
		_, err := fitted(t, s, c.words, h)
		testonly.Must(t, err)
		if !slices.Equal(s.batches, c.want) {
			t.Errorf("%d words in %d steps, %v shortened: batches of %v, want %v", c.words, c.steps, c.shortened, s.batches, c.want)
		}
	}
}

func TestAuthorsStop(t *testing.T) {
	// falling returns running losses of 10 rows that fall by step each epoch.
	falling := func(start, step float64) (sums []float64) {
		for i := range 100 {
			sums = append(sums, 10*max(start-step*float64(i), 0))
		}
		return sums
	}
	for _, c := range []struct {
		name    string
		method  model.Method
		stop    bool
		running []float64
		want    int
	}{
		{"settled early", "A", true, []float64{10}, 20},
		{"still falling", "A", true, falling(5, 0.01), 50},
		{"falling slowly", "A", true, falling(5, 0.004), 20},
		{"falling slowly", "B", true, falling(5, 0.004), 75},
		{"small error", "A", true, falling(0.25, 0.008), 26}, // 0.25 − 25·0.008 = 0.05
		{"settled early", "A", false, []float64{10}, 60},
	} {
		h := six(60)
		if h.Method, h.AuthorsStop = c.method, c.stop; c.stop {
			h.Epochs = 0
		}
		epochs, err := fitted(t, &script{running: c.running}, 10, h)
		if err != nil || len(epochs) != c.want {
			t.Errorf("%s, method %s, authors' rule %v: %d epochs, want %d (error %v)", c.name, c.method, c.stop, len(epochs), c.want, err)
		}
	}
}

func TestDiverged(t *testing.T) {
	for _, s := range []*script{
		{running: []float64{1, math.NaN()}},
		{running: []float64{1, math.Inf(1)}},
	} {
		epochs, err := fitted(t, s, 10, six(4))
		if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "after epoch 2") || len(epochs) != 1 {
			t.Errorf("error %v after %d good epochs", err, len(epochs))
		}
	}
}

func TestFitRefuses(t *testing.T) {
	for want, change := range map[string]func(x *vectors.Dense, h *model.Paper, o *Options){
		"lambda is -1": func(_ *vectors.Dense, h *model.Paper, _ *Options) { h.Lambda = -1 },
		`loss is "cauchy", want squared or huber`:                func(_ *vectors.Dense, h *model.Paper, _ *Options) { h.Loss = "cauchy" },
		"value 1 of the vector is not a finite number (got NaN)": func(x *vectors.Dense, _ *model.Paper, _ *Options) { x.Data[0] = float32(math.NaN()) },
		"vectors have inconsistent sizes":                        func(x *vectors.Dense, _ *model.Paper, _ *Options) { x.Data = x.Data[1:] },
	} {
		x, h, o, s := words(2), six(1), Options{}, &script{}
		change(x, &h, &o)
		if _, err := Fit(t.Context(), x, h, s, o); err == nil || !strings.Contains(err.Error(), want) || s.closed > 0 {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestFitRefusesRecipes(t *testing.T) {
	h := Best()
	for _, r := range []model.Recipe{nil, &h, (*model.Paper)(nil)} {
		x := words(10)
		_, err := Fit(t.Context(), x, r, &script{}, Options{})
		_, failed := File(t.Context(), []string{"nowhere"}, r, &script{}, t.TempDir(), FileOptions{})
		for _, err := range []error{err, failed} {
			testonly.ErrorSays(t, fmt.Sprintf("recipe %T", r), err, "want model.Best or model.Paper")
		}
		if WithDefaults(r, x) != r {
			t.Errorf("WithDefaults changes a %T", r)
		}
	}
}

// A training whose result is poor, or will be, gives a warning with advice.
func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		script *script
		atoms  int
		norm   float64
		want   string
	}{
		"all is well":     {&script{loss: 1}, 6, 3, ""},
		"small vectors":   {&script{loss: 1}, 6, 1, "mean norm of 1)"},
		"large vectors":   {&script{loss: 1}, 6, 30, "mean norm of 30)"},
		"dead atoms":      {&script{loss: 1}, 7, 3, "29 % of the atoms are dead"},
		"the error rises": {&script{loss: 1, rising: true}, 6, 3, "the error has risen from 2 to 4"},
		"sparser codes":   {&script{loss: 1, rising: true, sparser: true}, 6, 3, ""},
		"codes of zeros":  {&script{loss: 1, dead: true}, 6, 3, "error: all codes are zero"},
	} {
		h, x, got := six(2), words(10), ""
		h.Atoms = c.atoms
		for i := range x.Data {
			x.Data[i] = float32(c.norm / math.Sqrt2)
		}
		if _, err := Fit(t.Context(), x, h, c.script, Options{Note: func(line string) { got += line + "\n" }}); err != nil {
			got += "error: " + err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Count(got, "warning: ") > 1 {
			t.Errorf("%s: notes %q", name, got)
		}
	}
}

// The defaults of n texts of L numbers: K is 10·L, at most 3,072·768/L and half the training rows.
func TestDefaultsOfTexts(t *testing.T) {
	for _, c := range []struct{ n, dim, atoms, rows, steps, nonzeros int }{
		{n: 100, dim: 384, atoms: 50, rows: 100, steps: 16, nonzeros: 8},
		{n: 2_867, dim: 384, atoms: 1_433, rows: 2_867, steps: 16, nonzeros: 43},
		{n: 100_000, dim: 384, atoms: 3_840, rows: 16_000, steps: 16, nonzeros: 115},
		{n: 20_000, dim: 1_536, atoms: 1_536, rows: 16_000, steps: 16, nonzeros: 46},
	} {
		x := &vectors.Dense{IDs: []string{"a"}, Texts: &vectors.Texts{Text: []string{"a"}}, Dim: c.dim, Data: make([]float32, c.dim)}
		want := Best()
		want.Method, want.Order, want.Epochs = model.Nonnegative, model.None, 4
		want.Atoms, want.TrainRows, want.DictionarySteps, want.Nonzeros = c.atoms, c.rows, c.steps, c.nonzeros
		if got := bestTraining(Best()).withDefaults(x, c.n); got != want {
			t.Errorf("%d × %d: %+v, want %+v", c.n, c.dim, got, want)
		}
	}
}
