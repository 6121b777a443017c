//go:build gpu

package kernels

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gorgonia.org/cu"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/float32s"
	"overcomplete/internal/program"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/backendtest"
	"overcomplete/testonly/encodetest"
	"overcomplete/train"
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

// onSchedules runs a test of encoders or learners. The test calls next before it opens an encoder or learner. next
// selects the next schedule, and reports whether a learner should read its rows from the host. With the tag full,
// the test runs once for each combination to begin with.
func onSchedules(t *testing.T, test func(t *testing.T, next func() (hostRows bool))) {
	run := func(t *testing.T, n int) {
		test(t, func() bool {
			schedule, hostRows := schedules[n%len(schedules)], n/len(schedules)%2 == 1
			n++
			if emulated {
				t.Setenv("EMULATED_SCHEDULE", schedule)
			}
			return hostRows
		})
	}
	if !testonly.Full || !emulated {
		run(t, 0)
		return
	}
	for n := range 2 * len(schedules) {
		t.Run(fmt.Sprint("from ", n), func(t *testing.T) { run(t, n) })
	}
}

// sampled returns the last of the precisions, or all with the tag full.
func sampled(precisions ...Precision) []Precision {
	if testonly.Full {
		return precisions
	}
	return precisions[len(precisions)-1:]
}

func TestTrainer(t *testing.T) { backendtest.Run(t, false, backendtest.Float32, newFP32) }

func newFP32(p backend.Problem, workers int) (backend.Trainer, error) {
	codeBatch := 0
	if workers > 0 { // several code steps per epoch
		codeBatch = 64
	}
	return newTrainer(Device{Precision: fp32}, p, codeBatch)
}

func TestPrograms(t *testing.T) {
	newTrainer := func(p backend.Problem, _ int) (backend.Trainer, error) {
		return newTrainer(Device{Precision: fp32}, p, 0)
	}
	backendtest.RunPrograms(t, newTrainer, func(opened backend.Trainer, compiled *program.Program, epoch int) (map[string]float64, error) {
		b := opened.(*trainer)
		g, x := b.gpu, compile(compiled, b.precision)
		defer g.enter()()
		b.rowNumbers = alloc[float64](g, b.rowPitch()*max(2, x.rowNumbers)) // Codes needs two row numbers
		p, err := b.newProgram(x)
		if err != nil {
			return nil, err
		}
		b.resetSums(p)
		b.run(p, b.state, b.rows, epoch)
		all, numbers := make([]float64, x.numbers), make(map[string]float64)
		toHost(g, all, p.numbers, g.compute)
		g.synchronize(g.compute)
		for name, at := range x.Outputs {
			numbers[name] = all[at]
		}
		return numbers, g.err
	})
}

// sample returns a problem that shows the precision of TF32: the rows are in clusters, and codes are sparse after a few
// epochs of eight dictionary steps.
func sample(rows int) backend.Problem {
	h := train.Paper()
	h.Atoms, h.Lambda, h.DictionarySteps = 150, 0.3, 8
	p := backend.Problem{Dim: 21, Hyperparameters: h}
	rng := rand.New(rand.NewPCG(4, 4))
	centres := make([]float32, 12*p.Dim)
	for i := range centres {
		centres[i] = float32(rng.NormFloat64()) / 2
	}
	p.X = make([]float32, rows*p.Dim)
	for i := range p.X {
		p.X[i] = centres[(i/p.Dim*7%12)*p.Dim+i%p.Dim] + float32(rng.NormFloat64())/3
	}
	return p
}

// open prepares a training on a GPU.
func open(t *testing.T, p backend.Problem, precision Precision, codeBatch int) *trainer {
	t.Helper()
	b, err := newTrainer(Device{Precision: precision}, p, codeBatch)
	testonly.Must(t, err)
	return b
}

// trainedSums returns the metrics of a training.
func trainedSums(t *testing.T, p backend.Problem, precision Precision, epochs int) backend.Sums {
	t.Helper()
	b := open(t, p, precision, 0)
	defer b.Close()
	return backendtest.Trained(t, b, p.Batch(), 0, epochs).Sums
}

// expectSums compares the metrics of a training within the tolerance between devices: 0.5 % of the objective and 0.1
// points of sparsity. It returns the expected sparsity.
func expectSums(t *testing.T, name string, p backend.Problem, got, want backend.Sums) float64 {
	t.Helper()
	measured := func(s backend.Sums) (objective, sparsity float64) {
		return s.Loss + p.Hyperparameters.Lambda*s.L1, 1 - float64(s.Nonzeros)/float64(p.Len()*p.Hyperparameters.Atoms)
	}
	objective, sparsity := measured(got)
	wantObjective, wantSparsity := measured(want)
	t.Logf("%s: objective %.5g (want %.5g), sparsity %.4f (%.4f)", name, objective, wantObjective, sparsity, wantSparsity)
	if d := objective/wantObjective - 1; !(d < 0.005 && d > -0.005) {
		t.Errorf("%s: objective %v, want %v", name, objective, wantObjective)
	}
	if d := sparsity - wantSparsity; !(d < 0.001 && d > -0.001) {
		t.Errorf("%s: sparsity %v, want %v", name, sparsity, wantSparsity)
	}
	return wantSparsity
}

// Factors have 11 bits, so results differ in the third digit. With halves, squares have 8 bits. This changes the steps
// of atoms where the gradient of a row's loss and the gradient of the penalty τ nearly cancel.
func TestSmall(t *testing.T) {
	tolerances := map[Precision]backendtest.Tolerance{
		tf32: {Sums: 5e-3, Dictionary: 5e-3, Codes: 2e-2}, fp16: {Sums: 5e-3, Dictionary: 5e-2, Codes: 5e-2},
	}
	for _, precision := range sampled(tf32, fp16) {
		t.Run(string(precision), func(t *testing.T) {
			backendtest.RunSmall(t, tolerances[precision], func(p backend.Problem, _ int) (backend.Trainer, error) {
				return newTrainer(Device{Precision: precision}, p, 0)
			})
		})
	}
}

// A NaN in the data reaches the sums, and nothing crashes.
func TestNaN(t *testing.T) {
	const rows = 40
	for _, precision := range []Precision{fp16, tf32, fp32} {
		for _, method := range []model.Method{model.Signed, model.Nonnegative} {
			p := sample(rows)
			p.Hyperparameters.Method = method
			p.X[3*p.Dim+1] = float32(math.NaN())
			b := open(t, p, precision, 0)
			if sums, err := b.Epoch(t.Context(), 1, p.Batch()); err != nil || !math.IsNaN(sums.RunningLoss) || !math.IsNaN(sums.Loss) {
				t.Errorf("%s %s: %+v, error %v", precision, method, sums, err)
			}
			if codes, err := b.Codes(); err != nil || codes.Rows != rows {
				t.Errorf("%s %s: %d codes, error %v", precision, method, codes.Rows, err)
			}
			testonly.Must(t, b.Close())
		}
	}
}

// A training that float16 can't run uses TF32.
func TestPrecision(t *testing.T) {
	for _, test := range []struct {
		dim       int
		huber     float64
		maxShared int
		want      Precision
	}{
		{updateCodesDim, 0, 163 << 10, fp16},
		{updateCodesDim, 0, 99 << 10, tf32},
		{updateCodesDim + 1, 0, 163 << 10, tf32},
		{20, 0.3, 163 << 10, tf32},
	} {
		p := sample(10)
		p.Dim, p.X = test.dim, make([]float32, 10*test.dim)
		if test.huber > 0 {
			p.Hyperparameters.Loss, p.Hyperparameters.HuberDelta = model.Huber, test.huber
		}
		b := open(t, p, fp16, 0)
		defer b.Close()
		maxShared := b.gpu.maxShared
		b.gpu.maxShared = test.maxShared
		codeStep, err := program.Code(p.Spec())
		testonly.Must(t, err)
		if got := b.gpu.trainingPrecision(fp16, codeStep, p.Dim); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
		if b.gpu.maxShared = maxShared; maxShared == test.maxShared && b.precision != test.want {
			t.Errorf("%+v: a training in %s", test, b.precision)
		}
		if _, err := b.Epoch(t.Context(), 1, p.Batch()); err != nil {
			t.Error(err)
		}
	}
}

// A whole training agrees with the tape machine.
func TestTraining(t *testing.T) {
	const epochs = 8
	for _, method := range []model.Method{model.Signed, model.Nonnegative} {
		p := sample(200)
		p.Hyperparameters.Method = method
		oracle := backendtest.NewOracle(p)
		var want backend.Sums
		for epoch := range epochs {
			var err error
			want, err = oracle.Epoch(t.Context(), epoch+1, p.Batch())
			testonly.Must(t, err)
		}
		for _, precision := range sampled(tf32, fp32, fp16) {
			sparsity := expectSums(t, fmt.Sprint(precision, " ", method), p, trainedSums(t, p, precision, epochs), want)
			if sparsity < 0.3 || sparsity > 0.98 {
				t.Errorf("sparsity %v makes a poor test", sparsity)
			}
		}
	}
}

// A training resumes from a saved state, in the same trainer and in another.
func TestResumed(t *testing.T) {
	const rows, codeBatch = 300, 32
	p := sample(rows)
	two := func(b *trainer, first int) {
		t.Helper()
		for epoch := range 2 {
			_, err := b.Epoch(t.Context(), first+epoch, p.Batch())
			testonly.Must(t, err)
		}
		if b.gpu.cache.graph == nil {
			t.Error("no graph")
		}
	}
	for _, precision := range sampled(tf32, fp16) {
		b := open(t, p, precision, codeBatch)
		two(b, 1)
		restore := saved(t, b)
		two(b, 3)
		want := backendtest.Learned(t, b)
		for _, another := range []bool{false, true} {
			if another {
				b.Close()
				b = open(t, p, precision, codeBatch)
			}
			restore(b)
			two(b, 3)
			if !reflect.DeepEqual(backendtest.Learned(t, b), want) {
				t.Errorf("resumed, a training with %s has other bits", precision)
			}
		}
		b.Close()
	}
}

// saved returns a function that restores the current state of b in a trainer.
func saved(t *testing.T, b *trainer) (restore func(b *trainer)) {
	t.Helper()
	saved, state := backendtest.Learned(t, b), make(map[checkpoint.Matrix][]float32)
	for _, m := range []checkpoint.Matrix{checkpoint.SquaredGradients, checkpoint.GradientSums, checkpoint.SquareSums} {
		state[m] = backendtest.Saved(t, b, m)
	}
	return func(b *trainer) {
		t.Helper()
		testonly.Must(t, b.Restore(saved.Dictionary, saved.Codes))
		for m, values := range state {
			backendtest.Load(t, b, m, values)
		}
	}
}

// The sums S and Q are the same after copies from the CPU to a GPU and back.
func TestStateExchanged(t *testing.T) {
	p := sample(40)
	for _, precision := range []Precision{fp16, tf32} {
		trainers := make([]backend.Trainer, 3)
		for i := range trainers {
			var device backend.Device = cpu.Device{}
			if i == 1 {
				device = Device{Precision: precision}
			}
			b, err := device.Trainer(p)
			testonly.Must(t, err)
			defer b.Close()
			trainers[i] = b
		}
		_, err := trainers[0].Epoch(t.Context(), 1, p.Batch())
		testonly.Must(t, err)
		for _, m := range []checkpoint.Matrix{checkpoint.GradientSums, checkpoint.SquareSums} {
			var all [3][]float32
			for i, b := range trainers {
				if i > 0 {
					backendtest.Load(t, b, m, all[i-1])
				}
				all[i] = backendtest.Saved(t, b, m)
			}
			if !slices.Equal(all[0], all[1]) || !slices.Equal(all[1], all[2]) || slices.Max(all[0]) == 0 {
				t.Errorf("%s: %s changes on its way to the GPU or back", precision, m)
			}
		}
	}
}

// lostLaunch matches the error of a failing launch. latentFailure matches the error of a call that waits for a failed
// launch, after which the process can't use GPUs.
var (
	lostLaunch    = regexp.MustCompile(`^kernels: launch of (\w+): Unknown: [^\n]+$`)
	latentFailure = regexp.MustCompile(`^kernels: cu(Stream|Event)Synchronize \(a kernel or copy before it failed\): \w+: no GPU works in this process [^\n]+ a new one$`)
)

// If a launch of an epoch fails, at once or while it runs, the pass ends with a one-line error that names the launch.
func TestFaults(t *testing.T) {
	const rows, codeBatch = 60, 16
	failEachLaunch(t, "accumulate_tf32 body correlate_tf32 decode_tf32 finish_codes pack_codes random_codes totals", func() error {
		done := 0
		p := sample(rows)
		p.Rows = func(n int) { done += n }
		b, err := newTrainer(Device{}, p, codeBatch)
		if err != nil {
			return err
		}
		defer b.Close()
		_, err = b.Epoch(t.Context(), 1, p.Batch())
		// A failing pass reports no progress.
		if (err == nil) != (done == 2*rows) {
			t.Errorf("an epoch told of %d words, error %v", done, err)
		}
		if err != nil {
			return err
		}
		if _, err := b.Codes(); err != nil {
			return err
		}
		_, err = b.Dictionary()
		return err
	})
}

// failEachLaunch makes launches of f lose the device: the first and the last launch of each kernel, or all with the tag
// full. The first launch of each kernel, and with the tag full the last, also fails while it runs. f must return
// an error each time. A process can't use a GPU after a failure, so each launch has its own process.
func failEachLaunch(t *testing.T, kernels string, f func() error) {
	t.Helper()
	if failing := os.Getenv(failingLaunch); failing != "" {
		setting(t, "EMULATED_FAIL_LAUNCH", failing)
		fmt.Printf("%s: %v\n", failingLaunch, f())
		return
	}
	launched, of := launches(t, f), make(map[string][]int)
	for i, kernel := range launched {
		of[kernel] = append(of[kernel], i+1)
	}
	names := slices.Sorted(maps.Keys(of))
	if !slices.Equal(names, strings.Fields(kernels)) {
		t.Fatalf("the kernels are %v, want %s", names, kernels)
	}

	var processes sync.WaitGroup
	defer processes.Wait()
	environment := os.Environ()
	processes.Go(func() {
		for _, kernel := range names {
			first, last := of[kernel][0], of[kernel][len(of[kernel])-1]
			for _, n := range slices.Compact([]int{first, last}) {
				if n > first && !testonly.Full {
					break
				}
				test := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
				test.Env = append(slices.Clone(environment), fmt.Sprintf("%s=%d", failingLaunch, n))
				output, err := test.Output()
				_, told, _ := strings.Cut(string(output), failingLaunch+": ")
				told, _, _ = strings.Cut(told, "\n")
				if err != nil || !latentFailure.MatchString(told) {
					t.Errorf("launch %d of %s fails: error %q; %v\n%s", n, kernel, told, err, output)
				}
			}
		}
	})

	for _, kernel := range names {
		lost, says := of[kernel], kernel
		if last := len(lost) - 1; !testonly.Full && last > 1 {
			lost = []int{lost[0], lost[last]}
		}
		if strings.HasPrefix(kernel, graphed) { // if the graph fails, its launches are tried one by one, from the first on
			first := slices.IndexFunc(launched, func(kernel string) bool { return strings.HasPrefix(kernel, graphed) })
			says = strings.TrimPrefix(launched[first], graphed)
		}
		for _, n := range lost {
			setting(t, "EMULATED_LOSE_DEVICE", strconv.Itoa(n))
			if err := f(); err == nil {
				t.Errorf("launch %d of %s loses the device: no error", n, kernel)
			} else if m := lostLaunch.FindStringSubmatch(err.Error()); m == nil || m[1] != says {
				t.Errorf("launch %d of %s loses the device: error %v", n, kernel, err)
			}
			setting(t, "EMULATED_LOSE_DEVICE", "")
			regain(t)
		}
	}
}

// regain makes a lost device usable again with a new context.
func regain(t *testing.T) {
	t.Helper()
	g, err := Device{}.open()
	if err == nil {
		err = g.Close()
	}
	testonly.Must(t, err)
}

// graphed precedes the name of a kernel that a graph has launched.
const graphed = "graph:"

// launches returns the kernels that f, which must not fail, launches.
func launches(t *testing.T, f func() error) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "launches")
	setting(t, "EMULATED_LOG", file)
	testonly.Must(t, f())
	setting(t, "EMULATED_LOG", "")
	names := testonly.ReadFile(t, file)
	return strings.Fields(string(names))
}

var atMost = regexp.MustCompile(`^[^\n]* at most (\d+) rows would fit[^\n]*$`)

// rowsThatFit returns the number of rows that fit according to a one-line error of too little memory.
func rowsThatFit(t *testing.T, err error) int {
	t.Helper()
	if !errors.Is(err, backend.ErrMemory) {
		t.Fatalf("error %v, want %v", err, backend.ErrMemory)
	}
	m := atMost.FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("error %q does not say how many rows would fit", err)
	}
	n, err := strconv.Atoi(m[1])
	testonly.Must(t, err)
	return n
}

// Exactly as many rows fit as the error states.
func TestMemory(t *testing.T) {
	const rows, codeBatch = 1000, 32
	p := sample(rows)
	sizes := newSizes(p, tf32, codeBatch)
	fixed := sizes.fixedBytes(compiled(t, program.Dictionary, p.Spec(), tf32), compiled(t, program.Code, p.Spec(), tf32))
	for _, more := range []int64{16, 40, 500} {
		setting(t, "EMULATED_MEMORY", strconv.Itoa(int((fixed+more*sizes.rowBytes())*20/19)))
		open := func(rows int) error {
			b, err := newTrainer(Device{}, sample(rows), codeBatch)
			if err != nil {
				return err
			}
			return b.Close()
		}
		fit := rowsThatFit(t, open(rows))
		if err := open(fit); err != nil {
			t.Errorf("%d words should fit: %v", fit, err)
		}
		if err := open(fit + 1); !errors.Is(err, backend.ErrMemory) {
			t.Errorf("more than %d words fit: %v", fit, err)
		}
	}
}

// failEachAllocation runs f again and again with its first, second, … allocation failing, until none fails. f must
// return an error of too little memory each time. It returns the number of allocations.
func failEachAllocation(t *testing.T, f func() error) int {
	t.Helper()
	for n := 1; ; n++ {
		setting(t, "EMULATED_FAIL_ALLOCATION", strconv.Itoa(n))
		err := f()
		if err == nil {
			setting(t, "EMULATED_FAIL_ALLOCATION", "")
			return n - 1
		}
		if !errors.Is(err, cu.OutOfMemory) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("allocation %d: error %v", n, err)
		}
	}
}

// A failing allocation is an error, even if the memory was free before: another process may allocate it.
func TestAllocations(t *testing.T) {
	const rows, codeBatch = 100, 32
	p := sample(rows)
	codes := 0
	n := failEachAllocation(t, func() error {
		b, err := newTrainer(Device{}, p, codeBatch)
		if err != nil {
			if fit := rowsThatFit(t, err); fit >= rows {
				t.Errorf("error %v", err)
			}
			return err
		}
		defer b.Close()
		if _, err = b.Codes(); err != nil {
			codes++
		}
		return err
	})
	if n < 11 || codes != 3 {
		t.Errorf("%d allocations failed, %d of Codes: too few", n, codes)
	}
}

// If a GPU can't be initialised, at the first use or by Start, the error of the first use gives the reason.
func TestContextFails(t *testing.T) {
	for _, tt := range []struct {
		variable, code string
		want           error
	}{
		{"EMULATED_FAIL_CONTEXT", "2", backend.ErrMemory}, {"EMULATED_FAIL_CONTEXT", "46", ErrUnavailable}, {"EMULATED_FAIL_MODULE", "2", backend.ErrMemory},
	} {
		setting(t, tt.variable, tt.code)
		for _, device := range []Device{{}, Device{}.Start()} {
			_, err := device.Trainer(sample(10))
			if !errors.Is(err, tt.want) || errors.Is(err, backend.ErrMemory) && errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s=%s: error %v, want %v", tt.variable, tt.code, err, tt.want)
			}
		}
		setting(t, tt.variable, "")
	}
}

// If the driver has no compiler, an old one, or rejects the kernels, no GPU can be used. The error is one line
// with the driver's log and advice.
func TestCompilerFails(t *testing.T) {
	const says = "ptxas application ptx input, line 1; fatal : the emulated compiler refuses"
	for code, want := range map[string]string{
		"218": "InvalidPtx: " + says,
		"221": "JitCompilerNotFound: install the driver's compiler, [^\n]+: " + says,
		"222": "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: [^\n]+: update the NVIDIA driver: " + says,
	} {
		setting(t, "EMULATED_FAIL_MODULE", code)
		_, err := Device{}.Trainer(sample(10))
		want := regexp.MustCompile(`^GPU unavailable: kernels: cuModuleLoadDataEx of decode.ptx: ` + want + "$")
		if !errors.Is(err, ErrUnavailable) || !want.MatchString(err.Error()) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

// A memory limit below the size of the fixed parts is an error.
func TestMemoryLimit(t *testing.T) {
	p := sample(300)
	for _, limit := range []int64{1, -1} {
		d := Device{Memory: limit}
		x, dictionary := encodetest.Problem(1, p.Dim, 24)
		o := encode.Options{Lambda: 0.1, Steps: 1, Nonzeros: 4}
		_, trainer := d.Trainer(p)
		_, encoder := d.Encoder(dictionary, o)
		_, learner := d.Learner(x, dictionary, 1, o)
		for of, err := range map[string]error{"a trainer": trainer, "an encoder": encoder, "a learner": learner} {
			if !errors.Is(err, backend.ErrMemory) {
				t.Errorf("%d bytes for %s: error %v, want %v", limit, of, err, backend.ErrMemory)
			}
		}
	}
}

func TestTrainerErrors(t *testing.T) {
	for want, change := range map[string]func(d *Device, p *backend.Problem){
		"no such GPU (got 7, want 0 to 0)":          func(d *Device, _ *backend.Problem) { d.Index = 7 },
		"0 numbers are not vectors of length 21":    func(_ *Device, p *backend.Problem) { p.X = nil },
		"20 numbers are not vectors of len":         func(_ *Device, p *backend.Problem) { p.X = p.X[:20] },
		"not supported on GPUs: the authors' order": func(_ *Device, p *backend.Problem) { p.Hyperparameters.AuthorsOrder = true },
	} {
		d, p := Device{}, sample(10)
		change(&d, &p)
		_, err := d.Trainer(p)
		testonly.ErrorSays(t, want, err, want)
	}
	// No GPU has shared memory for such rows; the CPU can train on them.
	long := sample(10)
	long.Dim = 100_000
	long.X = make([]float32, long.Dim)
	if _, err := (Device{}).Trainer(long); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "length 100000") {
		t.Errorf("vectors too long for shared memory: error %v, want %v", err, ErrUnavailable)
	}
	b := open(t, sample(10), tf32, 0)
	defer b.Close()
	if _, err := b.Epoch(t.Context(), 1, 3); err == nil {
		t.Error("no error for a dictionary step of more rows than prepared")
	}
}

func compiled(t *testing.T, build func(graph.Spec) (*program.Program, error), spec graph.Spec, precision Precision) *executable {
	t.Helper()
	p, err := build(spec)
	testonly.Must(t, err)
	return compile(p, precision)
}

// A row that is 10⁵ times as long as the others leaves them a few bits of float16. Their squares must not underflow: steps
// would be far too large.
func TestHalvesOfUnequalNorms(t *testing.T) {
	norm := map[Precision]float64{}
	for _, precision := range []Precision{fp32, fp16} {
		p := sample(600)
		for i := len(p.X) - p.Dim; i < len(p.X); i++ {
			p.X[i] *= 1e5
		}
		b := open(t, p, precision, 0)
		defer b.Close()
		norm[precision] = math.Sqrt(float32s.Squares(backendtest.Trained(t, b, p.Batch(), 0, 4).Dictionary))
	}
	if got, want := norm[fp16], norm[fp32]; !(math.Abs(got-want) <= 0.01*want) {
		t.Errorf("the norm of the dictionary is %v, with float32 %v", got, want)
	}
}
