package train

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/model"
	"overcomplete/vectors"
)

// script is a backend that does as it is told: its passes return the scripted
// numbers of their epoch.
type script struct {
	Resumable // which no test needs

	running   []float64 // of all words, an epoch each; the last one repeats
	shortened []int     // likewise
	loss      float64
	batches   []int // asked for
	epoch     int
	cancel    func() // called in the second epoch
}

func at[T any](s []T, i int) (x T) {
	if len(s) > 0 {
		x = s[min(i, len(s)-1)]
	}
	return x
}

func (s *script) DictionaryPass(ctx context.Context, batch int) (DictionaryPass, error) {
	s.batches = append(s.batches, batch)
	if s.epoch == 1 && s.cancel != nil {
		s.cancel()
	}
	return DictionaryPass{Loss: at(s.running, s.epoch), Steps: 100, Shortened: at(s.shortened, s.epoch)}, ctx.Err()
}

func (s *script) CodePass(ctx context.Context, epoch int) (CodePass, error) {
	s.epoch++
	return CodePass{Loss: s.loss, L1: 30, Nonzeros: 12, UsedAtoms: 5}, ctx.Err()
}

func (s *script) Dictionary() ([]float32, error) {
	return []float32{3, 4, 0, 0, 0, 0, 0, 0, 6, 8, 0, 0}, nil
}

func (s *script) Codes() (*vectors.CSR, error) { return new(vectors.CSR), nil }

func ignore(Progress) error { return nil }

// fit runs a training and returns how far it came.
func fit(ctx context.Context, b Resumable, h model.Hyperparameters, words, dim int, p Progress, observe func(Progress) error) (Progress, error) {
	m := &model.Model{Info: model.Info{Training: h, Input: model.Input{Words: words, Dim: dim}}, Codes: new(vectors.Sparse)}
	err := Run(ctx, b, m, p, func(now Progress) error {
		p = now
		return observe(now)
	})
	if err == nil && !reflect.DeepEqual(m.Info.Epochs, p.Epochs) {
		err = errors.New("the model has other epochs than were observed")
	}
	return p, err
}

// Ten words, six atoms of two numbers.
func TestMetrics(t *testing.T) {
	h := model.Hyperparameters{Epochs: 1, Atoms: 6, Lambda: 0.5, Tau: 0.01, DictionarySteps: 128}
	b := &script{running: []float64{40}, shortened: []int{7}, loss: 20}
	p, err := fit(context.Background(), b, h, 10, 2, Progress{}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Epochs[0]
	got.Seconds = 0
	want := model.Epoch{
		Epoch: 1, RunningError: 4, Error: 2, L1: 3, Sparsity: 1 - 12.0/60,
		Objective:   2 + 0.5*3 + 0.01*(25+100)/10,
		AtomNorm:    (5.0 + 10) / 6,
		UnusedAtoms: 1, LineSearch: 0.07,
	}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
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
		b := &script{shortened: c.shortened}
		h := model.Hyperparameters{Epochs: 4, Atoms: 6, DictionarySteps: c.steps}
		if _, err := fit(context.Background(), b, h, c.words, 2, Progress{}, ignore); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.batches, c.want) {
			t.Errorf("%d words in %d steps, %v shortened: batches of %v, want %v", c.words, c.steps, c.shortened, b.batches, c.want)
		}
	}
}

func TestAuthorsStop(t *testing.T) {
	// falling gives running errors of 10 words that fall by step each epoch.
	falling := func(start, step float64) (sums []float64) {
		for i := range 100 {
			sums = append(sums, 10*max(start-step*float64(i), 0))
		}
		return sums
	}
	for _, c := range []struct {
		name, method, stop string
		running            []float64
		want               int
	}{
		{"settled early", "A", "authors", []float64{10}, 20},
		{"still falling", "A", "authors", falling(5, 0.01), 50},
		{"falling slowly", "A", "authors", falling(5, 0.004), 20},
		{"falling slowly", "B", "authors", falling(5, 0.004), 75},
		{"small error", "A", "authors", falling(0.25, 0.008), 26}, // 0.25 − 25·0.008 = 0.05
		{"settled early", "A", "epochs", []float64{10}, 60},
	} {
		h := model.Hyperparameters{Epochs: 60, Method: c.method, Stop: c.stop, Atoms: 6}
		if c.stop == "authors" {
			_, h.Epochs = AuthorsStop(c.method)
		}
		p, err := fit(context.Background(), &script{running: c.running}, h, 10, 2, Progress{}, ignore)
		if err != nil || len(p.Epochs) != c.want {
			t.Errorf("%s, method %s, stop %s: %d epochs, want %d (error %v)", c.name, c.method, c.stop, len(p.Epochs), c.want, err)
		}
	}
}

func TestDiverged(t *testing.T) {
	for _, b := range []*script{
		{running: []float64{1, math.NaN()}},
		{running: []float64{1, math.Inf(1)}},
	} {
		h := model.Hyperparameters{Epochs: 4, Atoms: 6}
		p, err := fit(context.Background(), b, h, 10, 2, Progress{}, ignore)
		if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "after epoch 2") || len(p.Epochs) != 1 {
			t.Errorf("error %v after %d good epochs", err, len(p.Epochs))
		}
	}
}

func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &script{cancel: cancel}
	p, err := fit(ctx, b, model.Hyperparameters{Epochs: 4, Atoms: 6}, 10, 2, Progress{}, ignore)
	if !errors.Is(err, context.Canceled) || len(p.Epochs) != 1 {
		t.Errorf("error %v after %d epochs, want %v after 1", err, len(p.Epochs), context.Canceled)
	}
}

// authors is a backend whose words have an error of 3 when they are met.
type authors struct{ Resumable }

func (a *authors) AuthorsPass(context.Context, int) (float64, CodePass, error) {
	return 30, CodePass{Loss: 20, Nonzeros: 12}, nil
}

// A backend that was not prepared for the model is refused before the model says
// that it was.
func TestOtherBackend(t *testing.T) {
	for _, c := range []struct {
		b    Resumable
		h    model.Hyperparameters
		dim  int
		want string
	}{
		{new(script), model.Hyperparameters{Algorithm: "authors", Epochs: 2, Atoms: 6}, 2, `*train.script does not train with the algorithm "authors"`},
		{&authors{new(script)}, model.Hyperparameters{Algorithm: "minibatch", Epochs: 2, Atoms: 6}, 2, `*train.authors does not train with the algorithm "minibatch"`},
		{nil, model.Hyperparameters{Algorithm: "minibatch", Epochs: 2, Atoms: 6}, 2, "does not train"},
		{new(script), model.Hyperparameters{Epochs: 2, Atoms: 5}, 2, "12 numbers, and the model's 5 atoms of length 2"},
		{new(script), model.Hyperparameters{Epochs: 2, Atoms: 6}, 3, "12 numbers, and the model's 6 atoms of length 3"},
	} {
		p, err := fit(t.Context(), c.b, c.h, 10, c.dim, Progress{}, ignore)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(p.Epochs) > 0 {
			t.Errorf("error %v after %d epochs, want %q", err, len(p.Epochs), c.want)
		}
	}
}

func TestNewModel(t *testing.T) {
	h := model.Defaults()
	x := &vectors.Dense{Words: []string{"a", "b"}, Dim: 2, Data: []float32{1, 2, 3, 4}}
	m, err := NewModel(x, nil, h)
	if err != nil || m.Info.Input != (model.Input{Words: 2, Dim: 2}) || m.Info.Training.Atoms != 20 || m.Info.Training.Epochs != 20 {
		t.Errorf("got %+v, error %v", m, err)
	}
	m, err = NewModel(x, &vectors.Source{Name: "in", SHA256: "1", WordsSHA256: "2"}, h)
	if err != nil || m.Info.Input != (model.Input{Name: "in", SHA256: "1", Words: 2, Dim: 2, WordsSHA256: "2"}) {
		t.Errorf("got %+v, error %v", m, err)
	}
	x.Data[3] = float32(math.NaN())
	if _, err := NewModel(x, nil, h); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("error %v for NaN", err)
	}
}

func TestRunAuthors(t *testing.T) {
	p, err := fit(context.Background(), &authors{new(script)}, model.Hyperparameters{Algorithm: "authors", Epochs: 2, Atoms: 6}, 10, 2, Progress{}, ignore)
	if err != nil || len(p.Epochs) != 2 || p.Epochs[1].RunningError != 3 || p.Epochs[1].Error != 2 || p.Epochs[1].LineSearch != 0 {
		t.Errorf("got %+v, error %v", p, err)
	}
}

// A training that goes on needs to know no more than how far it was.
func TestGoOn(t *testing.T) {
	h := model.Hyperparameters{Epochs: 60, Method: "A", Stop: "authors", Atoms: 6, DictionarySteps: 2}
	start := func() *script { return &script{running: []float64{10}, shortened: []int{60, 0, 0, 60}} }
	whole, err := fit(context.Background(), start(), h, 1000, 2, Progress{}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	for _, at := range []int{1, 3, 4, 19} {
		b := start()
		p, err := fit(context.Background(), b, h, 1000, 2, Progress{}, func(p Progress) error {
			if len(p.Epochs) == at {
				return stop
			}
			return nil
		})
		if err != stop || len(p.Epochs) != at {
			t.Fatalf("error %v after %d epochs, want %v after %d", err, len(p.Epochs), stop, at)
		}
		p, err = fit(context.Background(), b, h, 1000, 2, p, ignore)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Epochs {
			p.Epochs[i].Seconds, whole.Epochs[i].Seconds = 0, 0
		}
		if !reflect.DeepEqual(p, whole) {
			t.Errorf("stopped after %d epochs: %+v, want %+v", at, p, whole)
		}
		if p, err = fit(context.Background(), b, h, 1000, 2, p, ignore); err != nil || len(p.Epochs) != len(whole.Epochs) {
			t.Errorf("a training that was done went on to %d epochs, error %v", len(p.Epochs), err)
		}
	}
}
