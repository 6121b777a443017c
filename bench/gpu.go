//go:build gpu

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"overcomplete/cpu"
	"overcomplete/kernels"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// gpuBench is what "bench gpu" was asked for, and its results so far.
type gpuBench struct {
	device                      int
	words, dim, atoms, epochs   int
	repeats                     int
	streamWords                 int
	compareWords, compareEpochs int
	scaling                     []int
	scalingEpochs               int
	json                        string
	settings                    map[string]string // flags that results depend on
	vectors                     *vectors.Dense    // as many as were needed so far
	report                      Report
	failures                    []error
}

// parts are what there is to measure, most valuable first. Each replaces its results in the
// report, and keeps every one as soon as it is there: a fault or a time limit loses only what
// had not been measured.
var parts = []struct {
	name string
	run  func(*gpuBench)
}{
	{"peaks", (*gpuBench).peaks},
	{"train", (*gpuBench).train},
	{"encode", (*gpuBench).encode},
	{"compare", (*gpuBench).compare},
	{"profile", (*gpuBench).profile},
	{"stream", (*gpuBench).stream},
	{"scale", (*gpuBench).scale},
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func init() {
	commands["gpu"] = command{"trainings and encoding on a GPU, or some parts of that: " + strings.Join(partNames(), ", "), benchGPU}
}

func benchGPU(flags *flag.FlagSet, args []string, stdout io.Writer) error {
	b := gpuBench{settings: make(map[string]string)}
	flags.IntVar(&b.device, "device", 0, "index of the GPU")
	positive(flags, &b.words, "words", 400000, "of the main trainings and of encoding")
	positive(flags, &b.dim, "dim", 300, "of vectors")
	positive(flags, &b.atoms, "atoms", 3000, "of dictionaries")
	positive(flags, &b.epochs, "epochs", 20, "of the main trainings")
	positive(flags, &b.repeats, "repeats", 3, "times that each of these runs")
	positive(flags, &b.compareWords, "compare-words", 8000, "of trainings and encoding on GPU and CPU")
	positive(flags, &b.compareEpochs, "compare-epochs", 20, "of trainings on GPU and CPU")
	counts(flags, &b.scaling, "scaling", []int{50000, 100000, 200000, 400000, 800000, 1600000, 2000000}, "words of the trainings that show how time grows")
	positive(flags, &b.scalingEpochs, "scaling-epochs", 3, "of those trainings, and of those that stream")
	positive(flags, &b.streamWords, "stream-words", 100000, fmt.Sprintf("of trainings that keep their words on the GPU, and stream them: at least %d", fewestStreamed))
	flags.StringVar(&b.json, "json", "", "`file` to write all results to, beside those of other parts that it has")
	if err := parse(flags, args, -1); err != nil {
		return err
	}
	flags.VisitAll(func(f *flag.Flag) {
		if f.Name != "device" && f.Name != "json" { // devices are told apart by what they are
			b.settings[f.Name] = f.Value.String()
		}
	})
	names := flags.Args()
	if len(names) == 0 {
		names = partNames()
	}
	for _, name := range names {
		if !slices.Contains(partNames(), name) {
			return usageError{fmt.Errorf("%q is no part: want some of %s", name, strings.Join(partNames(), ", "))}
		}
	}
	return b.run(names, stdout)
}

func (b *gpuBench) run(names []string, stdout io.Writer) error {
	device, err := kernels.Find(b.device)
	if err != nil {
		return err
	}
	b.report = Report{
		Device: device.Name, Capability: fmt.Sprintf("%d.%d", device.Major, device.Minor), Driver: device.Driver,
		Processors: runtime.GOMAXPROCS(0), Settings: b.settings,
	}
	if err := b.resume(); err != nil {
		return err
	}
	if b.report.Peaks == (Peaks{}) && names[0] != "peaks" { // others are held against them
		names = slices.Concat([]string{"peaks"}, names)
	}
	for _, name := range names {
		parts[slices.Index(partNames(), name)].run(b)
		b.keep()
		if b.report.Peaks == (Peaks{}) { // a device that can't even do that
			break
		}
	}
	if err := b.report.print(stdout); err != nil {
		return err
	}
	return errors.Join(b.failures...)
}

// resume takes what other parts have measured on the same device, with the same flags.
func (b *gpuBench) resume() error {
	if b.json == "" {
		return nil
	}
	r, err := readReport(b.json)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writeJSON(b.json, b.report) // or else nothing needs to be measured
	case err != nil:
		return usageError{err}
	case r.Device != b.report.Device || r.Capability != b.report.Capability || r.Driver != b.report.Driver || r.Processors != b.report.Processors:
		return usageError{fmt.Errorf("%s is of %s, driver for CUDA %s, %d processors, and this is %s, %s, %d: name another file",
			b.json, r.Device, r.Driver, r.Processors, b.report.Device, b.report.Driver, b.report.Processors)}
	}
	for _, name := range slices.Sorted(maps.Keys(b.settings)) {
		if was, is := r.Settings[name], b.settings[name]; was != is {
			return usageError{fmt.Errorf("%s was measured with --%s %q, and this is with %q: give the same flags, or name another file", b.json, name, was, is)}
		}
	}
	b.report = r
	return nil
}

// keep leaves what was measured so far in the file.
func (b *gpuBench) keep() {
	if b.json != "" {
		if err := writeJSON(b.json, b.report); err != nil {
			b.fail("%w", err)
		}
	}
}

// add adds what was measured to the results of a part, and keeps it.
func add[T any](b *gpuBench, to *[]T, result T) {
	*to = append(*to, result)
	b.keep()
}

// first returns generated words.
func (b *gpuBench) first(words int) *vectors.Dense {
	if b.vectors == nil || b.vectors.Len() < words {
		b.vectors = generate(seed, words, b.dim)
	}
	return b.vectors.Slice(0, words)
}

// job is a training to measure.
type job struct {
	words     int
	recipe    model.Recipe
	device    *recorder
	precision kernels.Precision // "cpu" on the CPU
	options   train.Options
}

// job is a training on the GPU.
func (b *gpuBench) job(words, epochs int, method model.Method, precision kernels.Precision) job {
	h := hyperparameters(b.atoms, epochs)
	h.Method = method
	gpu := kernels.Device{Index: b.device, Precision: precision}
	return job{words: words, recipe: h, device: &recorder{Device: gpu}, precision: precision}
}

// learn trains.
func (b *gpuBench) learn(j job) (t Training, m *model.Model, err error) {
	if best, is := j.recipe.(model.Best); is { // encoding is a part of its own
		m, err = train.Learn(context.Background(), b.first(j.words), best, j.device, j.options)
	} else {
		m, err = train.Fit(context.Background(), b.first(j.words), j.recipe, j.device, j.options)
	}
	if err != nil {
		return t, nil, err
	}
	var epochs []float64
	for _, e := range j.device.epochs {
		epochs = append(epochs, seconds(e))
		t.DictionarySeconds += e.DictionarySeconds
		t.CodeSeconds += e.CodeSeconds
	}
	if epochs == nil { // a learner's, which have no two passes
		for _, e := range m.Info.Training.Epochs {
			epochs = append(epochs, e.Seconds)
		}
	}
	for _, s := range epochs {
		t.Seconds += s
	}
	last := m.Info.Training.Epochs[len(m.Info.Training.Epochs)-1]
	t.EpochSeconds, t.Repeats = median(epochs), []float64{t.Seconds}
	t.Error, t.Objective, t.Sparsity = last.Error, last.Objective, last.Sparsity
	return t, m, nil
}

// measure trains a number of times on a GPU, after fewer words to warm it up. What
// goes wrong is part of the result.
func (b *gpuBench) measure(j job, repeats int) Training {
	var runs []Training
	for i := range 1 + repeats {
		one := j
		if i == 0 {
			one.words = min(j.words, b.compareWords)
		}
		t, _, err := b.learn(one)
		if err != nil {
			return b.named(j, nil, err)
		}
		runs = append(runs, t)
	}
	return b.named(j, runs[1:], nil)
}

// named is the runs of a job as one.
func (b *gpuBench) named(j job, runs []Training, failure error) (t Training) {
	if failure != nil {
		t.Problem = failure.Error()
		if !errors.Is(failure, train.ErrMemory) {
			b.fail("%d words, method %s, %s: %w", j.words, j.recipe.Base().Method, j.precision, failure)
		}
	} else {
		slices.SortFunc(runs, func(a, b Training) int { return cmp.Compare(a.Seconds, b.Seconds) })
		t = runs[len(runs)/2]
		t.Repeats = nil
		for _, r := range runs {
			t.Repeats = append(t.Repeats, r.Seconds)
		}
	}
	h := j.recipe.Base()
	t.Program, t.Recipe, t.Method, t.Precision = ours, j.recipe.String(), string(h.Method), string(j.precision)
	t.Words, t.Dim, t.Atoms, t.Epochs = j.words, b.dim, h.Atoms, h.Epochs
	return t
}

func (b *gpuBench) fail(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	b.failures = append(b.failures, err)
}

var (
	methods    = []model.Method{model.Signed, model.Nonnegative}
	precisions = []kernels.Precision{kernels.TF32, kernels.FP32}
	ofTraining = []kernels.Precision{kernels.FP16, kernels.TF32, kernels.FP32}
)

// The bands that two devices' results must be in.
const (
	objectiveBand = 0.005 // relative
	sparsityBand  = 0.001
)

// profiled is a trainer or a learner on a GPU.
type profiled interface {
	StartProfile()
	Profile() ([]kernels.KernelTime, error)
}

func sameBits(a, b *model.Model) bool {
	return reflect.DeepEqual(a.Dictionary, b.Dictionary) && reflect.DeepEqual(a.Codes, b.Codes)
}

// compare trains on the CPU, and twice on the GPU.
func (b *gpuBench) compare() {
	b.report.Agreement = nil
	for _, method := range methods {
		onCPU := b.job(b.compareWords, b.compareEpochs, method, "cpu")
		onCPU.device.Device = cpu.Device{}
		t, _, err := b.learn(onCPU)
		reference := b.named(onCPU, []Training{t}, err)
		for _, precision := range ofTraining {
			if reference.Problem != "" {
				break
			}
			j := b.job(b.compareWords, b.compareEpochs, method, precision)
			first, learned, err := b.learn(j)
			var second Training
			var again *model.Model
			if err == nil {
				second, again, err = b.learn(j)
			}
			if err != nil {
				add(b, &b.report.Agreement, Agreement{CPU: reference, GPU: b.named(j, nil, err)})
				continue
			}
			a := Agreement{
				CPU: reference, GPU: b.named(j, []Training{first, second}, nil),
				Objective: math.Abs(first.Objective/reference.Objective - 1),
				Sparsity:  math.Abs(first.Sparsity - reference.Sparsity),
				SameBits:  sameBits(learned, again),
			}
			a.Agree = a.Objective <= objectiveBand && a.Sparsity <= sparsityBand && a.SameBits
			if !a.Agree {
				b.fail("method %s, %s: objective %.3f %% and sparsity %.3f points from the CPU's; the same bits in two runs: %t",
					method, precision, 100*a.Objective, 100*a.Sparsity, a.SameBits)
			}
			add(b, &b.report.Agreement, a)
		}
	}
}

// peaks measures the device itself.
func (b *gpuBench) peaks() {
	b.report.Peaks = Peaks{}
	peaks, err := kernels.Measure(b.device)
	if err != nil {
		b.fail("peaks: %w", err)
		return
	}
	b.report.Peaks = Peaks(peaks)
}

// best is a training as the command line has it without flags, of words in order of frequency,
// with atoms as many.
func (b *gpuBench) best() job {
	h := train.Best()
	h.Atoms, h.Seed, h.Order = b.atoms, seed, model.Frequency
	h.Epochs = train.DefaultEpochs(h)
	j := b.job(train.DefaultTrainWords(h, b.words), h.Epochs, "A", kernels.TF32)
	j.recipe = h
	return j
}

// jobs are the trainings that the benchmark is about, by method: best, and the recipe paper in each
// precision; what a time limit might cut off comes last.
func (b *gpuBench) jobs(methods ...model.Method) []job {
	jobs := []job{b.best()}
	for _, precision := range ofTraining {
		for _, method := range methods {
			jobs = append(jobs, b.job(b.words, b.epochs, method, precision))
		}
	}
	return jobs
}

func (b *gpuBench) train() {
	b.report.Trainings = nil
	for _, j := range b.jobs(methods...) {
		add(b, &b.report.Trainings, b.measure(j, b.repeats))
	}
}

// profile trains once more by method A, with every launch timed.
func (b *gpuBench) profile() {
	b.report.Profiles = nil
	for _, j := range b.jobs(model.Signed) {
		var times []kernels.KernelTime
		var failure error
		learned := func() profiled { return j.device.learned.(profiled) }
		j.options.Begin = func(model.Info) { learned().StartProfile() }
		j.options.Epoch = func(e model.Epoch) {
			if e.Epoch == j.recipe.Base().Epochs {
				times, failure = learned().Profile()
			}
		}
		t, _, err := b.learn(j)
		add(b, &b.report.Profiles, Profile{b.named(j, []Training{t}, cmp.Or(err, failure)), b.report.Peaks.kernels(times)})
	}
}

// fewestStreamed is about as few words as stream: a code step has 16,384 of them, and there are two
// slots.
const fewestStreamed = 70000

// stream trains with words on the GPU, and with only as much of its memory as their state
// takes, and the driver: that is too little for the rest, and they stream through it.
func (b *gpuBench) stream() {
	const driver = 4 << 20
	words := max(b.streamWords, fewestStreamed)
	s := Streaming{Memory: driver + 4*int64(words)*int64(b.dim+3*b.atoms)}
	learn := func(memory int64, streams bool) (Training, *model.Model) {
		j := b.job(words, b.scalingEpochs, "A", kernels.TF32)
		j.device.Device = kernels.Device{Index: b.device, Precision: j.precision, Memory: memory}
		t, m, err := b.learn(j)
		if err == nil && j.device.learned.(*kernels.Trainer).Streams() != streams {
			err = fmt.Errorf("streaming is %t, want %t", !streams, streams)
		}
		if err != nil { // too little memory is a failure here
			err = fmt.Errorf("%v (--stream-words has another number of them)", err)
		}
		return b.named(j, []Training{t}, err), m
	}
	var whole, streamed *model.Model
	s.Resident, whole = learn(0, false)
	if s.Resident.Problem == "" {
		s.Streamed, streamed = learn(s.Memory, true)
	}
	if s.Resident.Problem == "" && s.Streamed.Problem == "" {
		if s.SameBits = sameBits(whole, streamed); !s.SameBits {
			b.fail("%d words that stream give other bits than on the GPU", words)
		}
	}
	b.report.Streaming = &s
}

// scale shows how time grows with the vocabulary.
func (b *gpuBench) scale() {
	b.report.Scaling = nil
	b.first(slices.Max(b.scaling))
	for _, words := range b.scaling {
		add(b, &b.report.Scaling, b.measure(b.job(words, b.scalingEpochs, "A", kernels.TF32), 1))
	}
}

// kernels is what kernels took, beside what they had to do.
func (p Peaks) kernels(times []kernels.KernelTime) (all []Kernel) {
	for _, k := range times {
		all = append(all, Kernel{
			k.Step, k.Name, k.Launches, k.Seconds, k.Bytes, k.Flops, p.floor(k.Bytes, k.Flops), k.Registers, k.Local, k.Occupancy,
		})
	}
	return all
}

// floor is the least time that the device needs for what a kernel does.
func (p Peaks) floor(bytes, flops float64) float64 {
	return max(bytes/p.CopyBytes, flops/p.TF32Flops)
}
