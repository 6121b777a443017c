//go:build gpu

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"overcomplete/cpu"
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
	out                         io.Writer
	device                      int
	words, dim, atoms, epochs   int
	count                       int
	compareWords, compareEpochs int
	scaling                     []int
	scalingEpochs               int
	rows                        *vectors.Dense // generated so far
	failures                    []error
}

// parts are the measurements, the most important ones first.
var parts = []struct {
	name string
	run  func(*gpuBench)
}{
	{"train", (*gpuBench).train},
	{"encode", (*gpuBench).encode},
	{"compare", (*gpuBench).compare},
	{"profile", (*gpuBench).profile},
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
	flags.IntVar(&b.device, "device", 0, "index of the GPU")
	positive(flags, &b.words, "words", 400000, "rows of the main trainings and of encoding")
	positive(flags, &b.dim, "dim", 300, "length of vectors")
	positive(flags, &b.atoms, "atoms", 3000, "atoms of dictionaries")
	positive(flags, &b.epochs, "epochs", 20, "epochs of the main trainings")
	positive(flags, &b.count, "count", 3, "repetitions, after one that warms the GPU up")
	positive(flags, &b.compareWords, "compare-words", 8000, "rows of trainings and encoding on GPU and CPU")
	positive(flags, &b.compareEpochs, "compare-epochs", 20, "epochs of trainings on GPU and CPU")
	counts(flags, &b.scaling, "scaling", []int{50000, 100000, 200000, 400000, 800000, 1600000, 2000000}, "rows of the trainings that show how time grows")
	positive(flags, &b.scalingEpochs, "scaling-epochs", 3, "epochs of these trainings")
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
	gpu, err := kernels.Find(b.device)
	if err != nil {
		return err
	}
	if err := printMachine(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "gpu: %s, compute capability %d.%d, driver for CUDA %s\n", gpu.Name, gpu.Major, gpu.Minor, gpu.Driver)
	for _, name := range names {
		parts[slices.Index(partNames(), name)].run(&b)
	}
	return errors.Join(b.failures...)
}

// fail reports a failure at once and lets the rest run. Too little memory is a result.
func (b *gpuBench) fail(name string, err error) {
	fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
	if !errors.Is(err, train.ErrMemory) {
		b.failures = append(b.failures, fmt.Errorf("%s: %w", name, err))
	}
}

// first returns the first n generated vectors.
func (b *gpuBench) first(n int) *vectors.Dense {
	if b.rows == nil || b.rows.Len() < n {
		b.rows = generate(seed, n, b.dim)
	}
	return b.rows.Slice(0, n)
}

// job is a training to measure.
type job struct {
	words     int
	recipe    model.Recipe
	precision kernels.Precision // "cpu" on the CPU
}

func (b *gpuBench) paper(words, epochs int, method model.Method, precision kernels.Precision) job {
	h := hyperparameters(b.atoms, epochs)
	h.Method = method
	return job{words, h, precision}
}

// best returns a training by the defaults of the command line, except the method and the number of training rows.
func (b *gpuBench) best(rows int, method model.Method, precision kernels.Precision) job {
	h := train.Best()
	h.Atoms, h.Seed, h.Order, h.Method, h.TrainWords = b.atoms, seed, model.Frequency, method, math.MaxInt32
	return job{rows, h, precision}
}

// jobs returns the main trainings, in each precision: by the default recipe from the default training rows and from
// all, and by the paper's recipe.
func (b *gpuBench) jobs(methods ...model.Method) (jobs []job) {
	for _, rows := range []int{train.TrainingRows(b.first(b.words), b.atoms).Len(), b.words} {
		for _, precision := range precisions {
			jobs = append(jobs, b.best(rows, model.Signed, precision))
		}
	}
	for _, precision := range precisions {
		for _, method := range methods {
			jobs = append(jobs, b.paper(b.words, b.epochs, method, precision))
		}
	}
	return jobs
}

var (
	methods    = []model.Method{model.Signed, model.Nonnegative}
	precisions = []kernels.Precision{"tf32", "fp16", "fp32"}
)

func (b *gpuBench) name(kind string, j job) string {
	return fmt.Sprintf("%s/recipe=%s/method=%s/precision=%s/V=%d/L=%d/K=%d", kind, j.recipe, j.recipe.Base().Method, j.precision, j.words, b.dim, b.atoms)
}

func (b *gpuBench) on(precision kernels.Precision) train.Device {
	if precision == "cpu" {
		return cpu.Device{}
	}
	return kernels.Device{Index: b.device, Precision: precision}
}

// learn trains once. The time covers only the epochs: no copies, compilation or initialisation.
func (b *gpuBench) learn(j job, device train.Device) (m *model.Model, r testing.BenchmarkResult, err error) {
	// The part encode measures the codes of the recipe "best".
	m, err = train.Fit(context.Background(), b.first(j.words), j.recipe, device, train.Options{NoCodes: true})
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
		"ns/row/epoch": float64(r.T.Nanoseconds()) / float64(j.words) / float64(r.N),
		"error":        last.Error, "objective": last.Objective, "sparsity-%": 100 * last.Sparsity,
	}
	return m, r, nil
}

// measure trains on fewer rows to warm up the GPU, and then count times.
func (b *gpuBench) measure(name string, j job, count int) {
	for i := range 1 + count {
		one := j
		if i == 0 {
			one.words = min(j.words, b.compareWords)
		}
		_, r, err := b.learn(one, b.on(j.precision))
		if err != nil {
			b.fail(name, err)
			return
		}
		if i > 0 {
			printResult(b.out, name, r)
		}
	}
}

func (b *gpuBench) train() {
	for _, j := range b.jobs(methods...) {
		b.measure(b.name("GPUTraining", j), j, b.count)
	}
}

// scale measures the time for increasing numbers of rows.
func (b *gpuBench) scale() {
	b.first(slices.Max(b.scaling))
	for _, words := range b.scaling {
		j := b.paper(words, b.scalingEpochs, model.Signed, "tf32")
		b.measure(b.name("GPUScaling", j), j, 1)
	}
}

// profile trains once more with every kernel launch timed.
func (b *gpuBench) profile() {
	for _, j := range b.jobs(model.Signed) {
		times := make(map[string]*testing.BenchmarkResult)
		device := kernels.Device{Index: b.device, Precision: j.precision, Timed: func(l kernels.Timing) {
			name := fmt.Sprintf("/step=%s/kernel=%s", strings.ReplaceAll(l.Step, " ", "-"), l.Kernel)
			if times[name] == nil {
				times[name] = new(testing.BenchmarkResult)
			}
			times[name].N++
			times[name].T += time.Duration(l.Seconds * float64(time.Second))
		}}
		name := b.name("GPUKernel", j)
		if _, _, err := b.learn(j, device); err != nil {
			b.fail(name, err)
		}
		for _, kernel := range slices.Sorted(maps.Keys(times)) {
			printResult(b.out, name+kernel, *times[kernel])
		}
	}
}

// Limits of the differences between two devices.
const (
	objectiveBand = 0.005 // relative
	sparsityBand  = 0.001
	sharedBand    = 0.99 // minimum fraction of common nonzeros
)

// agreement prints the difference between the GPU's and the CPU's result, and fails if it exceeds the limit.
func (b *gpuBench) agreement(name string, objective, onCPU float64, agree, sameBits bool) {
	difference := objective/onCPU - 1
	bits := map[bool]float64{true: 1}[sameBits]
	printResult(b.out, name, testing.BenchmarkResult{N: 1, Extra: map[string]float64{"objective-diff-%": 100 * difference, "same-bits": bits}})
	if !agree || !sameBits || !(math.Abs(difference) <= objectiveBand) {
		b.fail(name, fmt.Errorf("the GPU disagrees with the CPU: objective %+.3f %%, the same bits in two runs: %t", 100*difference, sameBits))
	}
}

// compare trains on the CPU, and twice on the GPU.
func (b *gpuBench) compare() {
	for _, method := range methods {
		reference, _, err := b.learn(b.paper(b.compareWords, b.compareEpochs, method, "cpu"), cpu.Device{})
		for _, precision := range precisions {
			j := b.paper(b.compareWords, b.compareEpochs, method, precision)
			name := b.name("GPUAgreement", j)
			var runs [2]*model.Model
			for i := range runs {
				if err == nil {
					runs[i], _, err = b.learn(j, b.on(precision))
				}
			}
			if err != nil {
				b.fail(name, err)
				return
			}
			got, want := runs[0].Info.Training.Epochs[b.compareEpochs-1], reference.Info.Training.Epochs[b.compareEpochs-1]
			b.agreement(name, got.Objective, want.Objective, math.Abs(got.Sparsity-want.Sparsity) <= sparsityBand,
				reflect.DeepEqual(runs[0].Dictionary, runs[1].Dictionary) && reflect.DeepEqual(runs[0].Codes, runs[1].Codes))
		}
	}
}

// encode measures encoding with a dictionary learned by the default recipe, and compares the codes with the CPU's.
func (b *gpuBench) encode() {
	for _, method := range methods {
		m, _, err := b.learn(b.best(b.compareWords, method, "tf32"), b.on("tf32"))
		for _, precision := range precisions {
			j, failed := b.best(b.words, method, precision), err
			if failed == nil {
				failed = b.encodeWith(m, j)
			}
			if failed != nil {
				b.fail(b.name("GPUEncoding", j), failed)
			}
		}
	}
}

func (b *gpuBench) encodeWith(m *model.Model, j job) error {
	o := encode.Defaults(m.Info)
	var runs [3]*encode.Codes // on the CPU, and twice on the GPU
	for i, precision := range []kernels.Precision{"cpu", j.precision, j.precision} {
		e, err := b.on(precision).Encoder(&m.Dictionary, o)
		if err != nil {
			return err
		}
		defer e.Close()
		if runs[i], err = e.Encode(context.Background(), b.first(b.compareWords).Data); err != nil {
			return err
		}
		if i < len(runs)-1 {
			continue
		}
		for range b.count {
			start := time.Now()
			if err := b.encodeAll(e); err != nil {
				return err
			}
			took := time.Since(start)
			printResult(b.out, b.name("GPUEncoding", j), testing.BenchmarkResult{N: b.words, T: took, Extra: map[string]float64{"rows/s": float64(b.words) / took.Seconds()}})
		}
	}
	b.agreement(b.name("GPUEncodingAgreement", j), objective(runs[1], o.Lambda), objective(runs[0], o.Lambda),
		shared(runs[1], runs[0]) >= sharedBand, reflect.DeepEqual(runs[1], runs[2]))
	return nil
}

// encodeAll encodes all rows as encode.Stream does: it starts a block before the previous one is done.
func (b *gpuBench) encodeAll(e encode.Encoder) error {
	wait := e.Start(context.Background(), nil)
	for block := range slices.Chunk(b.first(b.words).Data, encode.Block*b.dim) {
		next := e.Start(context.Background(), block)
		if _, err := wait(); err != nil {
			return err
		}
		wait = next
	}
	_, err := wait()
	return err
}

func objective(c *encode.Codes, lambda float64) (sum float64) {
	for _, loss := range c.Loss {
		sum += loss
	}
	for _, v := range c.Value {
		sum += lambda * math.Abs(float64(v))
	}
	return sum / float64(c.Rows)
}

// shared returns the fraction of want's nonzeros that are nonzeros of got.
func shared(got, want *encode.Codes) float64 {
	common := 0
	for i := range want.Rows {
		index, _ := want.Row(i)
		ours, _ := got.Row(i)
		for _, k := range index {
			if _, found := slices.BinarySearch(ours, k); found {
				common++
			}
		}
	}
	return float64(common) / float64(max(1, want.Nonzeros()))
}
