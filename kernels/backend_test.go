//go:build gpu

package kernels

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorgonia.org/cu"

	"overcomplete/graph"
	"overcomplete/internal/memory"
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

// schedules are the orders in which the emulated driver does the work of streams.
var schedules = []string{"lazy", "eager", "copies", "kernels"}

func TestBackend(t *testing.T) {
	backendtest.Run(t, backendtest.Float32, func(spec graph.Spec, x []float32, seed uint64, workers int) (*Backend, error) {
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
	codes      *vectors.CSR
}

func run(b train.Backend, spec graph.Spec, words, epochs int) (train.Progress, error) {
	h := model.Defaults()
	h.Atoms, h.Epochs, h.DictionarySteps = spec.Atoms, epochs, 8
	h.Lambda, h.Tau, h.Rate = spec.Lambda, spec.Tau, spec.Rate
	m := &model.Model{Info: model.Info{Training: h, Input: model.Input{Words: words, Dim: spec.Dim}}, Codes: new(vectors.Sparse)}
	var went train.Progress
	err := train.Run(context.Background(), b, m, train.Progress{}, func(p train.Progress) error {
		went = p
		return nil
	})
	return went, err
}

func trained(t *testing.T, b train.Backend, spec graph.Spec, words, epochs int) (r result) {
	t.Helper()
	p, err := run(b, spec, words, epochs)
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

// The suite's problems at the edge, with TF32. What that loses shows in the
// third digit.
func TestEdges(t *testing.T) {
	const tolerance = 5e-3
	for _, test := range []struct {
		name                     string
		words, atoms, dim, batch int
		lambda                   float64
		zeroRows                 int // every so many
	}{
		{"one word", 1, 12, 4, 1, 0.1, 0},
		{"one word, many atoms", 1, 300, 40, 1, 0.1, 0},
		{"batches of one word", 6, 12, 4, 1, 0.1, 0},
		{"one atom", 20, 1, 4, 5, 0.1, 0},
		{"one dimension", 20, 5, 1, 5, 0.1, 0},
		{"zero vectors", 20, 10, 4, 5, 0.1, 3},
		{"zero vectors alone", 20, 10, 4, 5, 0.1, 1},
		{"all codes zero", 20, 10, 4, 5, 1e4, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := graph.Spec{Atoms: test.atoms, Dim: test.dim, Lambda: test.lambda, Tau: 1e-3, Rate: 0.05}
			rng := rand.New(rand.NewPCG(3, 3))
			x := make([]float32, test.words*test.dim)
			for i := range x {
				if test.zeroRows == 0 || i/test.dim%test.zeroRows != 0 {
					x[i] = float32(rng.NormFloat64())
				}
			}
			b, err := New(spec, x, Options{Batch: test.batch, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			oracle := backendtest.NewOracle(spec, x, 3)
			for epoch := 1; epoch <= 3; epoch++ {
				ctx := context.Background()
				d, err := b.DictionaryPass(ctx, test.batch)
				if err != nil {
					t.Fatal(err)
				}
				c, err := b.CodePass(ctx, epoch)
				if err != nil {
					t.Fatal(err)
				}
				wantD, err := oracle.DictionaryPass(ctx, test.batch)
				if err != nil {
					t.Fatal(err)
				}
				wantC, err := oracle.CodePass(ctx, epoch)
				if err != nil {
					t.Fatal(err)
				}
				for what, v := range map[string][2]float64{
					"running loss": {d.Loss, wantD.Loss}, "loss": {c.Loss, wantC.Loss}, "sum of |a|": {c.L1, wantC.L1},
				} {
					if got, want := v[0], v[1]; !(math.Abs(got-want) <= tolerance*want) {
						t.Errorf("epoch %d: %s %v, want %v", epoch, what, got, want)
					}
				}
				if n := c.Nonzeros - wantC.Nonzeros; d.Steps != wantD.Steps || d.Shortened != wantD.Shortened || n < -1 || n > 1 {
					t.Errorf("epoch %d: %+v, %+v, want %+v, %+v", epoch, d, c, wantD, wantC)
				}
			}
			got, err := b.Dictionary()
			if err != nil {
				t.Fatal(err)
			}
			want, _ := oracle.Dictionary()
			size := max(slices.Max(want), -slices.Min(want))
			for i := range want {
				if !(math.Abs(float64(got[i]-want[i])) <= tolerance*float64(size)) {
					t.Fatalf("element %d of the dictionary is %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// Dimensions that fall out of use are no longer counted.
func TestUsedAtoms(t *testing.T) {
	spec, x := sample(60)
	b, err := newBackend(spec, x, Options{Batch: 8, Seed: 1}, 32)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	// The threshold is λ times the epoch's number: none gets over the last.
	for _, epoch := range []int{1, 10000} {
		pass, err := b.CodePass(context.Background(), epoch)
		if err != nil {
			t.Fatal(err)
		}
		codes, err := b.Codes()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(codes.Index)
		want := len(slices.Compact(codes.Index))
		if pass.UsedAtoms != want || (want == 0) != (epoch == 10000) {
			t.Errorf("epoch %d: %d used dimensions, want %d", epoch, pass.UsedAtoms, want)
		}
	}
}

// A number that is none ends the training, and nothing else.
func TestNaN(t *testing.T) {
	const words = 40
	for _, precision := range []Precision{TF32, FP32} {
		for _, nonnegative := range []bool{false, true} {
			spec, x := sample(words)
			spec.Nonnegative = nonnegative
			x[3*spec.Dim+1] = float32(math.NaN())
			b, err := New(spec, x, Options{Precision: precision, Batch: train.BatchWords(words, 8)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := run(b, spec, words, 2); !errors.Is(err, train.ErrDiverged) {
				t.Errorf("%s nonnegative %v: error %v, want %v", precision, nonnegative, err, train.ErrDiverged)
			}
			if codes, err := b.Codes(); err != nil || codes.Rows != words {
				t.Errorf("%s nonnegative %v: %d codes, error %v", precision, nonnegative, codes.Rows, err)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
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

// Words that don't fit on the device go through it in parts, to the same bits in
// all orders that the emulated driver can do its streams' work in.
func TestWordsInParts(t *testing.T) {
	const words, codeBatch = 300, 32
	spec, x := sample(words)
	whole := trainedNew(t, spec, x, TF32, codeBatch, 3)
	for _, schedule := range schedules {
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
	for _, schedule := range schedules {
		t.Run(schedule, func(t *testing.T) {
			setting(t, "EMULATED_SCHEDULE", schedule)
			partsResumed(t)
		})
	}
}

func partsResumed(t *testing.T) {
	const words, codeBatch = 300, 32
	spec, x := sample(words)
	setting(t, "EMULATED_MEMORY", memoryFor(t, spec, words, 64, codeBatch))
	open := func() *Backend {
		t.Helper()
		b, err := newBackend(spec, x, Options{Batch: train.BatchWords(words, 8), Seed: 1}, codeBatch)
		if err != nil {
			t.Fatal(err)
		}
		if b.slotWords == words {
			t.Fatal("all words fit on the device")
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

// lostLaunch and latentFailure are the errors of a launch that fails and of what
// waits for one that did.
var (
	lostLaunch    = regexp.MustCompile(`^kernels: launch of (\w+) \(\w+\.go:\d+\): \w+$`)
	latentFailure = regexp.MustCompile(`^kernels: cu(Stream|Event)Synchronize \(a kernel or copy before it failed\) \(\w+\.go:\d+\): \w+$`)
)

// Each launch of an epoch is made to fail in turn, at once or while it runs, with
// words on the device and in parts: the pass ends with one line that says where.
func TestFaults(t *testing.T) {
	const words, codeBatch = 60, 16
	spec, x := sample(words)
	epoch := func() error {
		done := 0
		b, err := newBackend(spec, x, Options{Batch: codeBatch, Progress: func(n int) { done += n }}, codeBatch)
		if err != nil {
			return err
		}
		defer b.Close()
		passed := func(err error) error {
			if (err == nil) != (done == words) {
				t.Errorf("a pass told of %d words, error %v", done, err)
			}
			done = 0
			return err
		}
		_, err = b.DictionaryPass(context.Background(), b.batch)
		if passed(err) != nil {
			return err
		}
		_, err = b.CodePass(context.Background(), 1)
		if passed(err) != nil {
			return err
		}
		if _, err := b.Codes(); err != nil {
			return err
		}
		_, err = b.Dictionary()
		return err
	}
	for where, memory := range map[string]string{"on the device": "", "in parts": memoryFor(t, spec, words, codeBatch, codeBatch)} {
		t.Run(where, func(t *testing.T) {
			setting(t, "EMULATED_MEMORY", memory)
			kernels := launches(t, epoch)
			each := slices.Compact(slices.Sorted(slices.Values(kernels)))
			if want := strings.Fields("accumulate_tf32 body correlate_tf32 decode_tf32 finish_codes pack_codes random_codes totals"); !slices.Equal(each, want) {
				t.Fatalf("the kernels of an epoch are %v, want %v", each, want)
			}
			failEachLaunch(t, kernels, epoch)
		})
	}
}

// failEachLaunch makes each of the launches of f fail, and lose the device: f must
// say so.
func failEachLaunch(t *testing.T, kernels []string, f func() error) {
	t.Helper()
	for n, kernel := range kernels {
		failing := strconv.Itoa(n + 1)
		setting(t, "EMULATED_FAIL_LAUNCH", failing)
		if err := f(); err == nil || !latentFailure.MatchString(err.Error()) {
			t.Errorf("launch %s of %s fails: error %v", failing, kernel, err)
		}
		setting(t, "EMULATED_FAIL_LAUNCH", "")
		setting(t, "EMULATED_LOSE_DEVICE", failing)
		if err := f(); err == nil {
			t.Errorf("launch %s of %s loses the device: no error", failing, kernel)
		} else if m := lostLaunch.FindStringSubmatch(err.Error()); m == nil || m[1] != kernel {
			t.Errorf("launch %s of %s loses the device: error %v", failing, kernel, err)
		}
		setting(t, "EMULATED_LOSE_DEVICE", "")
		if _, err := Devices(); err != nil { // a lost device comes back when it is asked for
			t.Fatal(err)
		}
	}
}

// launches returns the kernels that f, which must not fail, launches.
func launches(t *testing.T, f func() error) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "launches")
	setting(t, "EMULATED_LOG", file)
	if err := f(); err != nil {
		t.Fatal(err)
	}
	setting(t, "EMULATED_LOG", "")
	names, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(names))
}

var atMost = regexp.MustCompile(`^[^\n]* at most (\d+) words would fit[^\n]*$`)

// wordsThatFit returns the number of words that an error of too little memory
// gives, in its one line.
func wordsThatFit(t *testing.T, err error) int {
	t.Helper()
	if !errors.Is(err, train.ErrMemory) {
		t.Fatalf("error %v, want %v", err, train.ErrMemory)
	}
	m := atMost.FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("error %q does not say how many words would fit", err)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// As many words fit as the error says, and no more.
func TestMemory(t *testing.T) {
	const words, codeBatch = 1000, 32
	for _, slot := range []int{16, 40, 70} {
		spec, x := sample(words)
		setting(t, "EMULATED_MEMORY", memoryFor(t, spec, words, slot, codeBatch))
		open := func(words int) error {
			b, err := newBackend(spec, x[:words*spec.Dim], Options{Batch: train.BatchWords(words, 8)}, codeBatch)
			if err != nil {
				return err
			}
			return b.Close()
		}
		fit := wordsThatFit(t, open(words))
		if err := open(fit); err != nil {
			t.Errorf("slots of %d words: %d words should fit: %v", slot, fit, err)
		}
		if err := open(fit + 1); !errors.Is(err, train.ErrMemory) {
			t.Errorf("slots of %d words: more than %d words fit: %v", slot, fit, err)
		}
	}
}

// Words that fit into no machine's memory are refused before any is taken.
func TestHostMemory(t *testing.T) {
	total, ok := memory.Total()
	if !ok {
		t.Skip("the machine's memory is not known")
	}
	setting(t, "EMULATED_FAIL_ALLOCATION", "1") // so that none is taken even if they are not
	spec := graph.Spec{Atoms: 100_000, Dim: 1, Lambda: 1, Rate: 0.05}
	bytes := 4 * 3 * uint64(spec.Atoms) // of a word's codes, S and Q
	words := int(2 * total / bytes)
	_, err := newBackend(spec, make([]float32, words), Options{Batch: 1}, 32)
	fit := wordsThatFit(t, err)
	if !strings.Contains(err.Error(), "machine's memory") || uint64(fit)*bytes > total || uint64(fit)*bytes < total/4 {
		t.Errorf("error %v, for words of %d bytes in %d", err, bytes, total)
	}
}

// Memory that somebody else has taken meanwhile.
func TestAllocations(t *testing.T) {
	const words, codeBatch = 100, 32
	spec, x := sample(words)
	for where, memory := range map[string]string{"on the device": "", "in parts": memoryFor(t, spec, words, codeBatch, codeBatch)} {
		t.Run(where, func(t *testing.T) {
			setting(t, "EMULATED_MEMORY", memory)
			failed, failedCodes := 0, 0
			for n := 1; n < 60; n++ {
				setting(t, "EMULATED_FAIL_ALLOCATION", strconv.Itoa(n))
				b, err := newBackend(spec, x, Options{Batch: train.BatchWords(words, 8)}, codeBatch)
				if err != nil {
					failed++
					if fit := wordsThatFit(t, err); fit >= words || !errors.Is(err, cu.OutOfMemory) {
						t.Errorf("allocation %d: error %v", n, err)
					}
					continue
				}
				if _, err = b.Codes(); err != nil {
					failedCodes++
					if !errors.Is(err, cu.OutOfMemory) || strings.Contains(err.Error(), "\n") {
						t.Errorf("allocation %d: error %v", n, err)
					}
				}
				b.Close()
			}
			// Without programs' scratch New makes 8, and 8 more for words in parts; Codes 3.
			t.Logf("%d allocations of New and %d of Codes", failed, failedCodes)
			if failed < 8 || failedCodes != 3 {
				t.Error("some of them did not fail")
			}
		})
	}
}

// A GPU that is there and can't be started.
func TestContextFails(t *testing.T) {
	spec, x := sample(10)
	for code, want := range map[string]error{"2": train.ErrMemory, "46": ErrUnavailable} {
		setting(t, "EMULATED_FAIL_CONTEXT", code)
		_, err := New(spec, x, Options{Batch: 2})
		if !errors.Is(err, want) || errors.Is(err, train.ErrMemory) && errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "\n") {
			t.Errorf("context's error %s: %v, want %v", code, err, want)
		}
		devices, err := Devices()
		if err != nil || devices[0].Usable() == nil {
			t.Errorf("context's error %s: devices %+v, error %v", code, devices, err)
		}
	}
}

// What the driver's compiler has to say of kernels that it refuses is part of the error, in
// its one line.
func TestCompilerRefuses(t *testing.T) {
	spec, x := sample(10)
	setting(t, "EMULATED_FAIL_MODULE", "218")
	_, err := New(spec, x, Options{Batch: 2})
	want := regexp.MustCompile(`^kernels: cuModuleLoadDataEx of accumulate.ptx \(\w+\.go:\d+\): \w*Ptx\w*: [^\n]*line 1; fatal : the emulated compiler refuses$`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("error %v, want %v", err, want)
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
	// No GPU has shared memory for such rows; the CPU can train on them.
	long := spec
	long.Dim = 100_000
	if _, err := New(long, make([]float32, long.Dim), Options{Batch: 1}); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "length 100000") {
		t.Errorf("vectors too long for shared memory: error %v, want %v", err, ErrUnavailable)
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

// memoryFor is the memory of a device on which slots have a number of words, so
// that all do not fit.
func memoryFor(t *testing.T, spec graph.Spec, words, slot, codeBatch int) string {
	t.Helper()
	if 2*slot+1 >= words {
		t.Fatalf("slots of %d words have room for %d", slot, words)
	}
	s := newSizes(spec, words, train.BatchWords(words, 8), codeBatch)
	fixed := s.fixedBytes(compiled(t, graph.Dictionary, spec), compiled(t, graph.Code, spec))
	return strconv.Itoa(int((fixed + 2*int64(slot)*s.wordBytes() + s.wordBytes()) * 20 / 19))
}
