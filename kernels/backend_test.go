//go:build gpu

package kernels

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"overcomplete/graph"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/train/backendtest"
	"overcomplete/vectors"
)

// setting changes the emulated driver's next context.
func setting(t *testing.T, name, value string) {
	t.Helper()
	if !emulated {
		t.Skip("needs the emulated driver")
	}
	t.Setenv(name, value)
}

func TestBackend(t *testing.T) {
	backendtest.Run(t, func(spec graph.Spec, x []float32, seed uint64, workers int) (*Backend, error) {
		codeBatch := 0
		if workers > 0 { // so that there are several
			codeBatch = 64
		}
		return newBackend(spec, x, Options{Precision: FP32, Batch: len(x) / spec.Dim, Seed: seed}, codeBatch)
	})
}

// sample is a problem that TF32 can be judged by: words in clusters, sparse
// codes after a few epochs.
func sample(words int) (graph.Spec, []float32) {
	spec := graph.Spec{Atoms: 150, Dim: 21, Lambda: 0.3, Tau: 1e-5, Rate: 0.05}
	rng := rand.New(rand.NewPCG(4, 4))
	centres := make([]float32, 12*spec.Dim)
	for i := range centres {
		centres[i] = float32(rng.NormFloat64()) / 2
	}
	x := make([]float32, words*spec.Dim)
	for i := range x {
		x[i] = centres[(i/spec.Dim*7%12)*spec.Dim+i%spec.Dim] + float32(rng.NormFloat64())/3
	}
	return spec, x
}

// result is all that a training computes.
type result struct {
	epochs     []model.Epoch
	dictionary []float32
	codes      *vectors.Sparse
}

func trained(t *testing.T, b train.Backend, spec graph.Spec, words, epochs int) (r result) {
	t.Helper()
	h := model.Defaults()
	h.Atoms, h.Epochs, h.DictionarySteps = spec.Atoms, epochs, 8
	h.Lambda, h.Tau, h.Rate = spec.Lambda, spec.Tau, spec.Rate
	p, err := train.Run(context.Background(), b, h, words, spec.Dim, train.Progress{}, func(train.Progress) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r.epochs = p.Epochs
	for i := range r.epochs {
		r.epochs[i].Seconds = 0
	}
	if r.dictionary, err = b.Dictionary(); err != nil {
		t.Fatal(err)
	}
	if r.codes, err = b.Codes(); err != nil {
		t.Fatal(err)
	}
	return r
}

func trainedNew(t *testing.T, spec graph.Spec, x []float32, p Precision, codeBatch, epochs int) result {
	t.Helper()
	words := len(x) / spec.Dim
	b, err := newBackend(spec, x, Options{Precision: p, Batch: train.BatchWords(words, 8), Seed: 1}, codeBatch)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return trained(t, b, spec, words, epochs)
}

// A whole training agrees with the tape machine's within the bands between
// devices: 0.5 % of the objective, 0.1 points of sparsity.
func TestTraining(t *testing.T) {
	const words, epochs = 200, 8
	for _, nonnegative := range []bool{false, true} {
		spec, x := sample(words)
		spec.Nonnegative = nonnegative
		want := trained(t, backendtest.NewOracle(spec, x, 1), spec, words, epochs).epochs[epochs-1]
		for _, precision := range []Precision{TF32, FP32} {
			got := trainedNew(t, spec, x, precision, 0, epochs).epochs[epochs-1]
			t.Logf("%s nonnegative %v: objective %.5f (tape %.5f), sparsity %.4f (%.4f)", precision, nonnegative, got.Objective, want.Objective, got.Sparsity, want.Sparsity)
			if d := got.Objective/want.Objective - 1; !(d < 0.005 && d > -0.005) {
				t.Errorf("%s: objective %v, want %v", precision, got.Objective, want.Objective)
			}
			if d := got.Sparsity - want.Sparsity; !(d < 0.001 && d > -0.001) {
				t.Errorf("%s: sparsity %v, want %v", precision, got.Sparsity, want.Sparsity)
			}
			if want.Sparsity < 0.3 || want.Sparsity > 0.98 {
				t.Errorf("sparsity %v makes a poor test", want.Sparsity)
			}
		}
	}
}

// Words that don't fit on the device go through it in parts, to the same bits,
// whatever the order that its streams do their work in.
func TestWordsInParts(t *testing.T) {
	const words, codeBatch = 300, 32
	spec, x := sample(words)
	whole := trainedNew(t, spec, x, TF32, codeBatch, 3)
	for _, schedule := range []string{"lazy", "eager"} {
		for _, slot := range []int{64, 96, 128} {
			setting(t, "EMULATED_SCHEDULE", schedule)
			setting(t, "EMULATED_MEMORY", memoryFor(t, spec, words, slot, codeBatch))
			b, err := newBackend(spec, x, Options{Batch: train.BatchWords(words, 8), Seed: 1}, codeBatch)
			if err != nil {
				t.Fatal(err)
			}
			if b.slotWords != slot {
				t.Fatalf("slots of %d words, want %d", b.slotWords, slot)
			}
			parts := trained(t, b, spec, words, 3)
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if !reflect.DeepEqual(parts, whole) {
				t.Errorf("%s, slots of %d words: other bits than with all words on the device", schedule, slot)
			}
		}
	}
}

// So they can be saved and restored.
func TestPartsResumed(t *testing.T) {
	const words, codeBatch = 300, 32
	spec, x := sample(words)
	open := func() *Backend {
		t.Helper()
		setting(t, "EMULATED_MEMORY", memoryFor(t, spec, words, 64, codeBatch))
		b, err := newBackend(spec, x, Options{Batch: 40, Seed: 1}, codeBatch)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	epoch := func(b *Backend, t int) (err error) {
		if _, err = b.DictionaryPass(context.Background(), 38); err == nil {
			_, err = b.CodePass(context.Background(), t)
		}
		return err
	}
	learned := func(b *Backend) (r result) {
		t.Helper()
		var err error
		if r.dictionary, err = b.Dictionary(); err != nil {
			t.Fatal(err)
		}
		if r.codes, err = b.Codes(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	b := open()
	if err := epoch(b, 1); err != nil {
		t.Fatal(err)
	}
	saved, state := learned(b), make(map[model.Matrix][]float32)
	matrices := []model.Matrix{model.SquaredGradients, model.GradientSums, model.SquareSums}
	for _, m := range matrices {
		if err := b.SaveMatrix(m, func(part []float32) error {
			state[m] = append(state[m], part...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := epoch(b, 2); err != nil {
		t.Fatal(err)
	}
	want := learned(b)
	b.Close()

	b = open()
	defer b.Close()
	if err := b.Restore(saved.dictionary, saved.codes); err != nil {
		t.Fatal(err)
	}
	for _, m := range matrices {
		if err := b.RestoreMatrix(m, func(part []float32) error {
			state[m] = state[m][copy(part, state[m]):]
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := epoch(b, 2); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(learned(b), want) {
		t.Error("resumed, the training comes to other bits")
	}
}

var failure = regexp.MustCompile(`^kernels: (launch of \w+|cu\w+)[^:]* \(\w+\.go:\d+\): \w+$`)

// Every failure of the driver ends a pass with one line that says where.
func TestFaults(t *testing.T) {
	const words = 100
	spec, x := sample(words)
	epoch := func() error {
		b, err := New(spec, x, Options{Batch: 13})
		if err != nil {
			return err
		}
		defer b.Close()
		if _, err := b.DictionaryPass(context.Background(), b.batch); err != nil {
			return err
		}
		if _, err := b.CodePass(context.Background(), 1); err != nil {
			return err
		}
		if _, err := b.Codes(); err != nil {
			return err
		}
		_, err = b.Dictionary()
		return err
	}
	for _, fault := range []string{"EMULATED_FAIL_LAUNCH", "EMULATED_LOSE_DEVICE"} {
		t.Run(fault, func(t *testing.T) {
			failed := 0
			for n := 1; n < 1000; n++ {
				setting(t, fault, strconv.Itoa(n))
				err := epoch()
				setting(t, fault, "0")
				if _, err := Devices(); err != nil { // a lost device comes back when it is asked for
					t.Fatal(err)
				}
				if err == nil {
					break // there are no more launches
				}
				failed++
				if !failure.MatchString(err.Error()) {
					t.Errorf("launch %d: error %q", n, err)
				}
			}
			if failed < 20 {
				t.Errorf("only %d launches failed", failed)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	const words, codeBatch = 1000, 32
	spec, x := sample(words)
	setting(t, "EMULATED_MEMORY", memoryFor(t, spec, words, 16, codeBatch))
	_, err := newBackend(spec, x, Options{Batch: train.BatchWords(words, 8)}, codeBatch)
	if !errors.Is(err, ErrMemory) || strings.Contains(err.Error(), "\n") || !regexp.MustCompile(`\b1[5-7] words`).MatchString(err.Error()) {
		t.Errorf("error %v, want %v with the words that fit", err, ErrMemory)
	}
}

func TestNewErrors(t *testing.T) {
	spec, x := sample(10)
	for name, test := range map[string]struct {
		x    []float32
		o    Options
		want string
	}{
		"no such device": {x, Options{Device: 7}, "there is no GPU 7"},
		"no vectors":     {nil, Options{}, "0 numbers are no vectors of length 21"},
		"part of one":    {x[:20], Options{}, "20 numbers are no vectors of length 21"},
	} {
		if _, err := New(spec, test.x, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", name, err, test.want)
		}
	}
	b, err := New(spec, x, Options{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.DictionaryPass(context.Background(), 3); err == nil {
		t.Error("a dictionary step with more words than prepared for")
	}
}

// memoryFor is the memory of a device on which slots have a number of words.
func memoryFor(t *testing.T, spec graph.Spec, words, slot, codeBatch int) string {
	t.Helper()
	s := newSizes(spec, words, train.BatchWords(words, 8), codeBatch)
	fixed := s.fixedBytes(compiled(t, graph.Dictionary, spec), compiled(t, graph.Code, spec))
	return strconv.Itoa(int((fixed + 2*int64(slot)*s.wordBytes() + s.wordBytes()) * 20 / 19))
}
