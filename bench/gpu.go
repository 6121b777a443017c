//go:build gpu

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"

	"overcomplete/cpu"
	"overcomplete/graph"
	"overcomplete/kernels"
	"overcomplete/model"
	"overcomplete/train"
)

// gpuBench is what "bench gpu" was asked for, and its results so far.
type gpuBench struct {
	device                      int
	words, dim, atoms, epochs   int
	repeats                     int
	compareWords, compareEpochs int
	scaling                     []int
	scalingEpochs               int
	json                        string
	vectors                     []float32 // for the longest training
	report                      Report
	failures                    []error
}

func benchGPU(args []string, stdout io.Writer) error {
	b := gpuBench{scaling: []int{50000, 100000, 200000, 400000, 800000, 1600000, 2000000}}
	flags := flag.NewFlagSet("bench gpu", flag.ContinueOnError)
	flags.IntVar(&b.device, "device", 0, "index of the GPU")
	flags.IntVar(&b.words, "words", 400000, "of the main trainings and of encoding")
	flags.IntVar(&b.dim, "dim", 300, "of vectors")
	flags.IntVar(&b.atoms, "atoms", 3000, "of dictionaries")
	flags.IntVar(&b.epochs, "epochs", 20, "of the main trainings")
	flags.IntVar(&b.repeats, "repeats", 3, "times that each of these runs")
	flags.IntVar(&b.compareWords, "compare-words", 8000, "of trainings and encoding on GPU and CPU")
	flags.IntVar(&b.compareEpochs, "compare-epochs", 20, "of trainings on GPU and CPU")
	flags.Func("scaling", "words of the trainings that show how time grows, with commas between (default 50000,…,2000000)", func(list string) (err error) {
		b.scaling, err = numbers(list)
		return err
	})
	flags.IntVar(&b.scalingEpochs, "scaling-epochs", 3, "of those trainings")
	flags.StringVar(&b.json, "json", "", "`file` to write all results to")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	return b.run(stdout)
}

func (b *gpuBench) run(stdout io.Writer) error {
	device, err := kernels.Find(b.device)
	if err != nil {
		return err
	}
	b.report = Report{
		Device: device.Name, Capability: fmt.Sprintf("%d.%d", device.Major, device.Minor), Driver: device.Driver,
		Processors: runtime.GOMAXPROCS(0),
	}
	peaks, err := kernels.Measure(b.device)
	if err != nil {
		return err
	}
	b.report.Peaks = Peaks(peaks)
	b.vectors = generate(seed, slices.Max(append(b.scaling, b.words, b.compareWords)), b.dim)

	// Each part leaves its results in the file before the next begins: one that
	// hangs loses its own alone.
	for _, part := range []func(){b.compare, b.train, b.profile, b.encode, b.scale} {
		part()
		if b.json != "" {
			if err := writeJSON(b.json, b.report); err != nil {
				return err
			}
		}
	}
	if err := b.report.print(stdout); err != nil {
		return err
	}
	return errors.Join(b.failures...)
}

// job is a training to measure.
type job struct {
	x         []float32
	spec      graph.Spec
	method    string
	precision kernels.Precision
	epochs    int
}

func (b *gpuBench) job(words, epochs int, method string, precision kernels.Precision) job {
	h := model.Defaults()
	return job{
		x:      b.vectors[:words*b.dim],
		spec:   graph.Spec{Atoms: b.atoms, Dim: b.dim, Lambda: h.Lambda, Tau: h.Tau, Rate: h.Rate, Nonnegative: method == "B"},
		method: method, precision: precision, epochs: epochs,
	}
}

func (j job) words() int { return len(j.x) / j.spec.Dim }

// on prepares the job on a GPU.
func (j job) on(device int) (*kernels.Backend, error) {
	return kernels.New(j.spec, j.x, kernels.Options{
		Device: device, Precision: j.precision, Seed: seed,
		Batch: train.BatchWords(j.words(), model.Defaults().DictionarySteps),
	})
}

// run trains on a prepared backend.
func (j job) run(b train.Backend) (Training, error) {
	passes, m, err := timeTraining(b, j.method, j.words(), j.spec.Dim, j.spec.Atoms, j.epochs)
	if err != nil {
		return Training{}, err
	}
	var total float64
	var epochs []float64
	for _, p := range passes {
		epochs = append(epochs, p.seconds())
		total += p.seconds()
	}
	last := m.Info.Epochs[j.epochs-1]
	return Training{
		Seconds: total, EpochSeconds: median(epochs), Repeats: []float64{total},
		Error: last.Error, Objective: last.Objective, Sparsity: last.Sparsity,
	}, nil
}

// measure trains a number of times on a GPU, after an epoch to warm it up. What
// goes wrong is part of the result.
func (b *gpuBench) measure(j job, repeats int) Training {
	var runs []Training
	var failure error
	for i := range 1 + repeats {
		one := j
		if i == 0 {
			one.epochs = 1
		}
		backend, err := one.on(b.device)
		if err == nil {
			var t Training
			t, err = one.run(backend)
			if closed := backend.Close(); err == nil {
				err = closed
			}
			runs = append(runs, t)
		}
		if err != nil {
			failure = err
			break
		}
	}
	return b.named(j, runs[min(1, len(runs)):], failure)
}

// named is the runs of a job as one.
func (b *gpuBench) named(j job, runs []Training, failure error) (t Training) {
	if failure != nil {
		t.Problem = failure.Error()
		if !errors.Is(failure, train.ErrMemory) {
			b.fail("%d words, method %s, %s: %w", j.words(), j.method, j.precision, failure)
		}
	} else {
		slices.SortFunc(runs, func(a, b Training) int { return cmp.Compare(a.Seconds, b.Seconds) })
		t = runs[len(runs)/2]
		t.Repeats = nil
		for _, r := range runs {
			t.Repeats = append(t.Repeats, r.Seconds)
		}
	}
	t.Program, t.Method, t.Precision = ours, j.method, string(j.precision)
	t.Words, t.Dim, t.Atoms, t.Epochs = j.words(), j.spec.Dim, j.spec.Atoms, j.epochs
	return t
}

func (b *gpuBench) fail(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	b.failures = append(b.failures, err)
}

var (
	methods    = []string{"A", "B"}
	precisions = []kernels.Precision{kernels.TF32, kernels.FP32}
)

// The bands that two devices' results must be in.
const (
	objectiveBand = 0.005 // relative
	sparsityBand  = 0.001
)

// compare trains on the CPU, and twice on the GPU.
func (b *gpuBench) compare() {
	for _, method := range methods {
		onCPU := b.job(b.compareWords, b.compareEpochs, method, "")
		backend, err := cpu.New(onCPU.spec, onCPU.x, cpu.Options{Seed: seed})
		var t Training
		if err == nil {
			t, err = onCPU.run(backend)
		}
		reference := b.named(onCPU, []Training{t}, err)
		reference.Precision = "cpu"
		for _, precision := range precisions {
			if reference.Problem != "" {
				break
			}
			j := b.job(b.compareWords, b.compareEpochs, method, precision)
			first, learned, err := b.learn(j)
			if err != nil {
				b.report.Agreement = append(b.report.Agreement, Agreement{CPU: reference, GPU: b.named(j, nil, err)})
				continue
			}
			second, again, err := b.learn(j)
			a := Agreement{
				CPU: reference, GPU: b.named(j, []Training{first, second}, err),
				Objective: math.Abs(first.Objective/reference.Objective - 1),
				Sparsity:  math.Abs(first.Sparsity - reference.Sparsity),
				SameBits:  reflect.DeepEqual(learned, again),
			}
			a.Agree = a.Objective <= objectiveBand && a.Sparsity <= sparsityBand && a.SameBits
			if !a.Agree {
				b.fail("method %s, %s: objective %.3f %% and sparsity %.3f points from the CPU's; the same bits in two runs: %t",
					method, precision, 100*a.Objective, 100*a.Sparsity, a.SameBits)
			}
			b.report.Agreement = append(b.report.Agreement, a)
		}
	}
}

// learned is the whole result of a training.
type learned struct {
	dictionary, codes any
}

// learn trains on the GPU and returns what was learned, too.
func (b *gpuBench) learn(j job) (t Training, l learned, err error) {
	backend, err := j.on(b.device)
	if err != nil {
		return t, l, err
	}
	defer backend.Close()
	if t, err = j.run(backend); err != nil {
		return t, l, err
	}
	if l.dictionary, err = backend.Dictionary(); err != nil {
		return t, l, err
	}
	l.codes, err = backend.Codes()
	return t, l, err
}

// train measures the trainings that the benchmark is about.
func (b *gpuBench) train() {
	for _, precision := range precisions {
		for _, method := range methods {
			b.report.Trainings = append(b.report.Trainings, b.measure(b.job(b.words, b.epochs, method, precision), b.repeats))
		}
	}
}

// profile trains once more in each precision, with every launch timed.
func (b *gpuBench) profile() {
	for _, precision := range precisions {
		j := b.job(b.words, b.epochs, "A", precision)
		t, times, err := b.profiled(j)
		b.report.Profiles = append(b.report.Profiles, Profile{b.named(j, []Training{t}, err), b.report.Peaks.kernels(times)})
	}
}

func (b *gpuBench) profiled(j job) (Training, []kernels.KernelTime, error) {
	backend, err := j.on(b.device)
	if err != nil {
		return Training{}, nil, err
	}
	defer backend.Close()
	backend.StartProfile()
	t, err := j.run(backend)
	if err != nil {
		return t, nil, err
	}
	times, err := backend.Profile()
	return t, times, err
}

// scale shows how time grows with the vocabulary.
func (b *gpuBench) scale() {
	for _, words := range b.scaling {
		b.report.Scaling = append(b.report.Scaling, b.measure(b.job(words, b.scalingEpochs, "A", kernels.TF32), 1))
	}
}

// kernels is what kernels took, beside what they had to do.
func (p Peaks) kernels(times []kernels.KernelTime) (all []Kernel) {
	for _, k := range times {
		all = append(all, Kernel{k.Name, k.Launches, k.Seconds, k.Bytes, k.Flops, p.floor(k.Bytes, k.Flops)})
	}
	return all
}

// floor is the least time that the device needs for what a kernel does.
func (p Peaks) floor(bytes, flops float64) float64 {
	return max(bytes/p.CopyBytes, flops/p.TF32Flops)
}
