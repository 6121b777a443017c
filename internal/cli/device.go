package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
	"overcomplete/internal/simd"
	"overcomplete/kernels"
	"overcomplete/model"
	"overcomplete/train"
)

// deviceFlags are where training or encoding was asked to run.
type deviceFlags struct {
	device     string // auto, cpu, cuda, cuda:i or cuda:all
	precision  string // of products on a GPU
	several    bool   // whether device may be cuda:all
	workers    int    // on the CPU
	overcommit bool   // its memory
}

// registerDevice adds the flags that say where something, such as "train", runs, and with
// which precisions.
func (f *deviceFlags) registerDevice(cmd *cobra.Command, what, precisions string) {
	flags, all := cmd.Flags(), ""
	if f.several {
		all = "cuda:all (all of one machine), "
	}
	flags.StringVar(&f.device, "device", "auto", "where to "+what+": cpu, cuda (an NVIDIA GPU), cuda:i (the i-th, from 0), "+all+"or auto, a GPU if there is one")
	flags.StringVar(&f.precision, "precision", "tf32", "precision of products on a GPU: "+precisions)
	flags.IntVar(&f.workers, "workers", 0, "processors to use on the CPU (default all); the result does not depend on it")
}

// check refuses what no device does. OnlyOnCPU says why no GPU does the work, or is
// nil.
func (f *deviceFlags) check(onlyOnCPU error, given func(flag string) bool) error {
	_, cuda, err := f.cuda()
	switch {
	case err != nil:
		return err
	case cuda && given("workers"):
		return usagef("--workers is of the CPU; drop it, or --device %s", f.device)
	case cuda && f.overcommit:
		return usagef("--overcommit is of the CPU; drop it, or --device %s", f.device)
	case given("precision") && (f.device == "cpu" || onlyOnCPU != nil):
		return usagef("--precision is of GPUs; the CPU computes in float32")
	case cuda && onlyOnCPU != nil:
		return usagef("--device %s: %w", f.device, onlyOnCPU)
	}
	return nil
}

// available fails at once where the GPU that was asked for can't be used.
func (f *deviceFlags) available() error {
	if index, cuda, _ := f.cuda(); cuda {
		if _, err := kernels.Find(index); err != nil {
			return usagef("--device %s: %w", f.device, err)
		}
	}
	return nil
}

const allGPUs = "cuda:all"

// cuda returns the GPU that --device names, of all the first: cuda is false if it need not be one.
func (f *deviceFlags) cuda() (index int, cuda bool, err error) {
	name, number, numbered := strings.Cut(f.device, ":")
	switch {
	case f.device == "auto" || f.device == "cpu":
		return 0, false, nil
	case name == "cuda" && !numbered, f.device == allGPUs && f.several:
		return 0, true, nil
	case f.device == allGPUs:
		return 0, false, usagef("--device %s is of encode; here one GPU does the work: give cuda or cuda:i with i from 0", allGPUs)
	case name == "cuda":
		if i, err := strconv.ParseUint(number, 10, 16); err == nil {
			return int(i), true, nil
		}
	}
	all := ""
	if f.several {
		all = ", cuda:all"
	}
	return 0, false, usagef("--device is %q, want auto, cpu, cuda%s or cuda:i with i from 0", f.device, all)
}

// chosenDevice is the GPU that was asked for, the first that has room, or the CPU where
// none was asked for and none can be used. It says which, and why. It is a
// [train.Device].
type chosenDevice struct {
	*deviceFlags
	log io.Writer
}

// Trainer implements [train.Device].
func (d chosenDevice) Trainer(p backend.Problem) (backend.Trainer, error) {
	onGPU := func(g kernels.Device) (backend.Trainer, error) { return g.Trainer(p) }
	return start(d, "training", kernels.Supports(p.Hyperparameters), onGPU, func(c cpu.Device) (t backend.Trainer, takes string, err error) {
		if t, err = c.Trainer(p); err != nil {
			advice := "lower -k or --max-words"
			if p.Hyperparameters.State != model.Float16 {
				advice = "--state float16 needs less, or " + advice
			}
			return nil, "", d.ofTheUser(err, advice)
		}
		takes = fmt.Sprintf(", which takes about %.1f GB", c.Memory(p.Len(), p.Dim, p.Hyperparameters)/1e9)
		if total, ok := memory.Total(); ok {
			takes += fmt.Sprintf(" of its %.1f GB memory", float64(total)/1e9)
		}
		return t, takes, nil
	})
}

// Learner implements [train.Device].
func (d chosenDevice) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	onGPU := func(g kernels.Device) (backend.Learner, error) { return g.Learner(x, dictionary, norm, o) }
	return start(d, "learning", nil, onGPU, func(c cpu.Device) (backend.Learner, string, error) {
		l, err := c.Learner(x, dictionary, norm, o)
		return l, "", d.ofTheUser(err, "lower -k")
	})
}

// Encoder implements [encode.Device].
func (d chosenDevice) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	if d.device == allGPUs {
		several, err := d.everyGPU(dictionary, o)
		if unable(err) {
			err = usagef("--device %s: %w", allGPUs, err)
		}
		return several, err
	}
	onGPU := func(g kernels.Device) (encode.Encoder, error) { return g.Encoder(dictionary, o) }
	return start(d, "encoding", nil, onGPU, func(c cpu.Device) (e encode.Encoder, takes string, err error) {
		c.Overcommit = false // it is for training
		if e, err = c.Encoder(dictionary, o); err != nil {
			err = usageError{err} // of the dictionary, of memory for --exact, or of the kernels asked for
		}
		return e, "", err
	})
}

// everyGPU opens an encoder on each GPU of the machine. Their codes are those of one if they are of
// one kind.
func (d chosenDevice) everyGPU(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	gpus, err := kernels.GPUs()
	if err != nil {
		return nil, err
	}
	first := gpus[0]
	for _, gpu := range gpus {
		if err := gpu.Usable(); err != nil {
			return nil, usagef("--device %s: GPU %d: %w; hide it with CUDA_VISIBLE_DEVICES", allGPUs, gpu.Index, err)
		}
		if gpu.Major != first.Major || gpu.Minor != first.Minor {
			return nil, usagef("--device %s: GPU 0 has compute capability %d.%d and GPU %d has %d.%d, and so their codes would differ in the last digits; name one of them, or hide others with CUDA_VISIBLE_DEVICES",
				allGPUs, first.Major, first.Minor, gpu.Index, gpu.Major, gpu.Minor)
		}
	}
	var encoders []encode.Encoder
	for _, gpu := range gpus {
		e, err := d.gpu(gpu.Index).Encoder(dictionary, o)
		if err != nil {
			encode.Several(encoders).Close()
			return nil, err
		}
		encoders = append(encoders, e)
	}
	for _, gpu := range gpus {
		say(d.log, "encoding on %s", d.describe(gpu.Index))
	}
	return encode.Several(encoders), nil
}

// start opens what is to run, as [tryGPU] does or else on the CPU, and says where it runs and
// what it takes there.
func start[T any](d chosenDevice, doing string, onlyOnCPU error, onGPU func(kernels.Device) (T, error), onCPU func(cpu.Device) (T, string, error)) (T, error) {
	opened, gpu, why, err := tryGPU(d, onlyOnCPU, onGPU)
	if err != nil {
		return opened, err
	}
	if why == "" {
		say(d.log, "%s on %s", doing, d.describe(gpu))
		return opened, nil
	}
	opened, takes, err := onCPU(cpu.Device{Workers: d.workers, Overcommit: d.overcommit})
	if err == nil {
		say(d.log, "%s %s%s", doing, d.onCPU(why), takes)
	}
	return opened, err
}

// describe names a GPU that is in use.
func (f *deviceFlags) describe(index int) string {
	gpu, _ := kernels.Find(index)
	return fmt.Sprintf("GPU %d, %s, %s", index, gpu.Name, f.precision)
}

// onCPU says that something runs on the CPU, and why if that was not asked for. A program
// without GPU support runs nothing elsewhere, and "devices" says that.
func (f *deviceFlags) onCPU(why string) string {
	if f.device == "cpu" || !gpuSupport {
		return "on the CPU"
	}
	return "on the CPU (" + why + ")"
}

// tryGPU opens what is to run on the GPU that was asked for, or on the first that has
// room, and says on which. Where it is to run on the CPU, or no GPU can be used and none
// was asked for, it says why. OnlyOnCPU is why no GPU does the work, if it is known.
func tryGPU[T any](d chosenDevice, onlyOnCPU error, open func(kernels.Device) (T, error)) (opened T, gpu int, why string, err error) {
	switch {
	case d.device == "cpu":
		return opened, 0, "--device cpu", nil
	case onlyOnCPU != nil:
		return opened, 0, onlyOnCPU.Error(), nil
	}
	gpu, asked, _ := d.cuda()
	count := 1 // of those to try, where one was asked for
	if !asked {
		if count, err = kernels.Count(); err != nil {
			return opened, 0, err.Error(), nil
		}
	}
	var first error
	for range count {
		if opened, err = open(d.gpu(gpu)); err == nil {
			return opened, gpu, "", nil
		}
		if !unable(err) {
			return opened, 0, "", err
		}
		if first == nil {
			first = err
		}
		gpu++
	}
	if asked {
		return opened, 0, "", usagef("--device %s: %w", d.device, first)
	}
	return opened, 0, first.Error(), nil
}

// gpu is a GPU, with the precision that was asked for.
func (d chosenDevice) gpu(index int) kernels.Device {
	return kernels.Device{Index: index, Precision: kernels.Precision(d.precision), Compiling: func() (done func()) {
		return sayAfter(time.Second/2, d.log, fmt.Sprintf("compiling kernels for GPU %d …", index))
	}}
}

// sayAfter says that something goes on, once it has taken so long and unless it is done.
func sayAfter(long time.Duration, log io.Writer, line string) (done func()) {
	said := make(chan struct{})
	timer := time.AfterFunc(long, func() {
		say(log, "%s", line)
		close(said)
	})
	return func() {
		if !timer.Stop() {
			<-said
		}
	}
}

// unable reports whether an error says that a GPU can't take the work, rather than
// that it failed.
func unable(err error) bool {
	return errors.Is(err, kernels.ErrUnavailable) || errors.Is(err, kernels.ErrUnsupported) || errors.Is(err, train.ErrMemory)
}

// ofTheUser marks errors of preparing the CPU that the user can mend, and says
// how; advice is for too little memory.
func (f *deviceFlags) ofTheUser(err error, advice string) error {
	switch {
	case errors.Is(err, train.ErrMemory):
		if !f.overcommit {
			advice += ", or try it with --overcommit"
		}
		return usagef("%w; %s", err, advice)
	case errors.Is(err, simd.ErrLevel):
		return usageError{err}
	}
	return err
}
