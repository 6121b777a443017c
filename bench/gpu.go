//go:build gpu

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"overcomplete/encode"
	"overcomplete/kernels"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

func init() {
	commands["gpu"] = command{"trainings and encoding on an NVIDIA GPU, or parts of it: " + strings.Join(partNames(), ", "), benchGPU}
}

// gpuBench holds the settings of "bench gpu". It prints each result at once, so that a fault or a time limit loses
// only the remaining measurements.
type gpuBench struct {
	out                      io.Writer
	gpu                      kernels.GPU
	rows, dim, atoms, epochs int
	count                    int
	fewRows                  int
	generated                *vectors.Dense // the vectors generated so far
	failures                 []error
}

// parts are the measurements, the most important ones first.
var parts = []struct {
	name string
	run  func(*gpuBench)
}{
	{"train", (*gpuBench).train},
	{"encode", (*gpuBench).encode},
	{"scale", (*gpuBench).scale},
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func benchGPU(flags *flag.FlagSet, args []string, out io.Writer) error {
	b := gpuBench{out: out}
	device := flags.Int("device", 0, "index of the GPU")
	positive(flags, &b.rows, "words", 400000, "rows of the main trainings and of encoding")
	positive(flags, &b.dim, "dim", 300, "length of vectors")
	positive(flags, &b.atoms, "atoms", 3000, "atoms of dictionaries")
	positive(flags, &b.epochs, "epochs", 20, "epochs of the main trainings")
	positive(flags, &b.count, "count", 3, "repetitions, after one that warms the GPU up")
	positive(flags, &b.fewRows, "few-words", 8000, "rows that warm the GPU up, and of the dictionary for encoding")
	if err := parse(flags, args, -1); err != nil {
		return err
	}
	names := flags.Args()
	if len(names) == 0 {
		names = partNames()
	}
	for _, name := range names {
		if !slices.Contains(partNames(), name) {
			return usageError{fmt.Errorf("unknown part (got %q, want some of %s)", name, strings.Join(partNames(), ", "))}
		}
	}
	var err error
	if b.gpu, err = kernels.Find(*device); err != nil {
		return err
	}
	if err := printMachine(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "gpu: %s, compute capability %d.%d, driver for CUDA %s\n", b.gpu.Name, b.gpu.Major, b.gpu.Minor, b.gpu.Driver)
	for _, name := range names {
		parts[slices.Index(partNames(), name)].run(&b)
	}
	return errors.Join(b.failures...)
}

// fail reports a failure at once; the other measurements still run. Too little memory is a result, not a failure.
func (b *gpuBench) fail(name string, err error) {
	fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
	if !errors.Is(err, train.ErrMemory) {
		b.failures = append(b.failures, fmt.Errorf("%s: %w", name, err))
	}
}

// first returns the first n generated vectors.
func (b *gpuBench) first(n int) *vectors.Dense {
	if b.generated == nil || b.generated.Len() < n {
		b.generated = generate(seed, n, b.dim)
	}
	return b.generated.Slice(0, n)
}

// job is a training to measure.
type job struct {
	rows      int
	recipe    model.Recipe
	precision kernels.Precision // used only by the paper's recipe
}

func (b *gpuBench) paper(rows, epochs int, method model.Method, precision kernels.Precision) job {
	h := hyperparameters(b.atoms, epochs)
	h.Method = method
	return job{rows, h, precision}
}

// best returns a training by the defaults of the command line, except the method and the number of training rows.
func (b *gpuBench) best(rows int, method model.Method) job {
	h := train.Best()
	h.Atoms, h.Seed, h.Order, h.Method, h.TrainRows = b.atoms, seed, model.Frequency, method, math.MaxInt32
	return job{rows: rows, recipe: h}
}

var methods = []model.Method{model.Signed, model.Nonnegative}

func (b *gpuBench) name(kind string, j job) string {
	precision := ""
	if j.precision != "" {
		precision = "/precision=" + string(j.precision)
	}
	return fmt.Sprintf("%s/recipe=%s/method=%s%s/V=%d/L=%d/K=%d", kind, j.recipe, j.recipe.Base().Method, precision, j.rows, b.dim, b.atoms)
}

func (b *gpuBench) device(precision kernels.Precision) kernels.Device {
	return kernels.Device{Index: b.gpu.Index, Precision: precision}
}

// learn trains once. The time covers only the epochs: no copies, compilation or initialisation.
func (b *gpuBench) learn(j job) (m *model.Model, r testing.BenchmarkResult, err error) {
	// The part "encode" measures encoding by the recipe "best".
	m, err = train.Fit(context.Background(), b.first(j.rows), j.recipe, b.device(j.precision), train.Options{NoCodes: true})
	if err != nil {
		return nil, r, err
	}
	epochs := m.Info.Training.Epochs
	for _, e := range epochs {
		r.T += time.Duration(e.Seconds * float64(time.Second))
	}
	last := epochs[len(epochs)-1]
	r.N = len(epochs)
	r.Extra = map[string]float64{
		"ns/row/epoch": float64(r.T.Nanoseconds()) / float64(j.rows) / float64(r.N),
		"error":        last.Error, "objective": last.Objective, "sparsity-%": 100 * last.Sparsity,
	}
	return m, r, nil
}

// measure trains once on fewer rows, to warm up the GPU, and then measures the given number of trainings.
func (b *gpuBench) measure(name string, j job, count int) {
	for i := range 1 + count {
		one := j
		if i == 0 {
			one.rows = min(j.rows, b.fewRows)
		}
		_, r, err := b.learn(one)
		if err != nil {
			b.fail(name, err)
			return
		}
		if i > 0 {
			printResult(b.out, name, r)
		}
	}
}

// train measures the default recipe with the default training rows and with all rows, and the paper's recipe in each
// precision. It runs the slowest precision only once.
func (b *gpuBench) train() {
	var jobs []job
	for _, rows := range []int{train.TrainingRows(b.first(b.rows), b.atoms).Len(), b.rows} {
		jobs = append(jobs, b.best(rows, model.Signed))
	}
	for _, method := range methods {
		jobs = append(jobs, b.paper(b.rows, b.epochs, method, "fp16"))
	}
	for _, precision := range []kernels.Precision{"tf32", "fp32"} {
		jobs = append(jobs, b.paper(b.rows, b.epochs, model.Signed, precision))
	}
	for _, j := range jobs {
		count := b.count
		if j.precision == "fp32" {
			count = 1
		}
		b.measure(b.name("GPUTraining", j), j, count)
	}
}

// scale measures trainings on an eighth of b.rows rows and on larger numbers, up to five times b.rows.
func (b *gpuBench) scale() {
	const epochs = 3
	b.first(5 * b.rows)
	for _, eighths := range []int{1, 2, 4, 8, 16, 32, 40} {
		j := b.paper(max(1, eighths*b.rows/8), epochs, model.Signed, "tf32")
		b.measure(b.name("GPUScaling", j), j, 1)
	}
}

// encode measures encoding with a dictionary learned by the default recipe.
func (b *gpuBench) encode() {
	for _, method := range methods {
		j := b.best(b.rows, method)
		m, _, err := b.learn(b.best(b.fewRows, method))
		if err == nil {
			err = b.encodeWith(m, j)
		}
		if err != nil {
			b.fail(b.name("GPUEncoding", j), err)
		}
	}
}

func (b *gpuBench) encodeWith(m *model.Model, j job) error {
	e, err := b.device(j.precision).Encoder(&m.Dictionary, encode.Defaults(m.Info))
	if err != nil {
		return err
	}
	defer e.Close()
	b.first(b.rows)                                   // generates the rows
	if err := b.encodeAll(e, b.fewRows); err != nil { // warms the GPU up
		return err
	}
	for range b.count {
		start := time.Now()
		if err := b.encodeAll(e, b.rows); err != nil {
			return err
		}
		took := time.Since(start)
		printResult(b.out, b.name("GPUEncoding", j), testing.BenchmarkResult{N: b.rows, T: took, Extra: map[string]float64{"rows/s": float64(b.rows) / took.Seconds()}})
	}
	return nil
}

// encodeAll encodes the first n rows as encode.Stream does: it starts a block before the previous one is done.
func (b *gpuBench) encodeAll(e encode.Encoder, n int) error {
	var codes [2]encode.Codes
	wait, i := e.Start(context.Background(), nil, &codes[1]), 0
	for block := range slices.Chunk(b.first(n).Data, encode.Block*b.dim) {
		next := e.Start(context.Background(), block, &codes[i])
		if err := wait(); err != nil {
			return err
		}
		wait, i = next, 1-i
	}
	return wait()
}
