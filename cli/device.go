package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
	"overcomplete/kernels"
	"overcomplete/model"
	"overcomplete/train"
)

// deviceFlags choose the device of training or encoding.
type deviceFlags struct {
	device     string // auto, cpu, cuda or cuda:i
	precision  string // precision of the paper's training on a GPU; "" for the default of package kernels
	workers    int    // number of workers on the CPU
	overcommit bool   // train on the CPU even if memory seems too small

	started *kernels.Device // see startGPU
}

func (f *deviceFlags) registerDevice(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.device, "device", "auto", "cpu, cuda (an NVIDIA GPU), cuda:i (GPU i, from 0) or auto (a GPU if there is one)")
	complete(cmd, flags.Lookup("device"), []string{"auto", "cpu", "cuda"})
	flags.Var(count(&f.workers, 0), "workers", "most processors to use on the CPU (default all); the result does not depend on it")
}

func (f *deviceFlags) registerPrecision(cmd *cobra.Command) {
	cmd.Flags().Var(oneOf(&f.precision, "tf32", "fp16", "tf32", "fp32"), "precision", "precision of the paper's training on a GPU: tf32 (11-bit factors), fp16 (11-bit factors in half the memory) or fp32 (as on the CPU)")
}

// check refuses unusable GPUs and flags that have no effect on the device. The argument unsupported is the reason why
// no GPU supports the work, or nil.
func (f *deviceFlags) check(cmd *cobra.Command, unsupported error) error {
	index, cuda, err := f.cuda()
	if cuda {
		err = refuseFlags(cmd, "has no effect on a GPU; drop it", "workers", "overcommit")
	}
	if err == nil && (f.device == "cpu" || unsupported != nil) {
		err = refuseFlags(cmd, "has no effect on the CPU; drop it", "precision")
	}
	if err != nil {
		return err
	}
	if f.workers > 0 {
		f.workers = min(f.workers, runtime.NumCPU()) // memory and threads grow with the number of workers
		runtime.GOMAXPROCS(f.workers)                // limits work outside the device, too
	}
	if !cuda {
		return nil
	}
	if _, err = kernels.Find(index); cmp.Or(unsupported, err) != nil {
		return usagef("--device %s: %w", f.device, cmp.Or(unsupported, err))
	}
	return nil
}

// cuda returns the index of the GPU that --device names. The result cuda is false for the values cpu and auto.
func (f *deviceFlags) cuda() (index int, cuda bool, err error) {
	number, numbered := strings.CutPrefix(f.device, "cuda:")
	switch {
	case f.device == "auto" || f.device == "cpu":
		return 0, false, nil
	case f.device == "cuda":
		return 0, true, nil
	case numbered:
		if i, err := strconv.ParseUint(number, 10, 16); err == nil {
			return int(i), true, nil
		}
	}
	return 0, false, usagef("--device is %q, want auto, cpu, cuda or cuda:i with i from 0", f.device)
}

// A chosenDevice is a [train.Device]: the GPU of --device or, with auto, the first GPU with enough free memory, or else
// the CPU. It logs the choice and its reason.
type chosenDevice struct {
	*deviceFlags
	log io.Writer
}

func (d chosenDevice) Trainer(p backend.Problem) (backend.Trainer, error) {
	h := p.Hyperparameters
	takes := fmt.Sprintf(", which takes about %.1f GB", cpu.Device{Workers: d.workers}.Memory(p.Len(), p.Dim, h)/1e9)
	if total, ok := memory.Total(); ok {
		takes += fmt.Sprintf(" of its %.1f GB memory", float64(total)/1e9)
	}
	return start(d, "training", takes, kernels.Supports(h), func(on train.Device) (backend.Trainer, error) { return on.Trainer(p) })
}

func (d chosenDevice) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	return start(d, "learning", "", nil, func(on train.Device) (backend.Learner, error) { return on.Learner(x, dictionary, norm, o) })
}

func (d chosenDevice) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	return start(d, "encoding", "", nil, func(on train.Device) (encode.Encoder, error) { return on.Encoder(dictionary, o) })
}

// start opens a trainer, learner or encoder on the chosen device, and logs the device. The argument takes is a phrase
// for the log, such as ", which takes about 3 GB". The argument unsupported is the reason why no GPU can run the work,
// or nil.
func start[T any](d chosenDevice, doing, takes string, unsupported error, open func(train.Device) (T, error)) (opened T, err error) {
	first, asked, _ := d.cuda()
	reason := unsupported // why no GPU is used
	if d.device != "cpu" && unsupported == nil {
		count := 1
		if !asked {
			var gpus []kernels.GPU
			gpus, reason = kernels.GPUs()
			count = len(gpus)
		}
		for i := first; i < first+count; i++ {
			opened, err = open(d.gpu(i))
			if err == nil {
				say(d.log, "%s on %s", doing, d.describe(i))
				return opened, nil
			}
			if !unable(err) {
				return opened, err
			}
			reason = cmp.Or(reason, err)
		}
		if asked {
			return opened, usagef("--device %s: %w", d.device, reason)
		}
	}
	opened, err = open(cpu.Device{Workers: d.workers, Overcommit: d.overcommit})
	if err == nil {
		where := "the CPU"
		if d.device != "cpu" && gpuSupport { // "overcomplete devices" reports missing GPU support
			where += fmt.Sprintf(" (%v)", reason)
		}
		say(d.log, "%s on %s%s", doing, where, takes)
	}
	return opened, err
}

// describe returns the name of a GPU as it appears in messages.
func (f *deviceFlags) describe(index int) string {
	gpu, _ := kernels.Find(index)
	name := fmt.Sprintf("GPU %d, %s", index, gpu.Name)
	if f.precision != "" {
		name += ", " + f.precision
	}
	return name
}

// startGPU starts the GPU that will probably train and encode, while the vectors are read. It doesn't wait for the
// driver.
func (d chosenDevice) startGPU() {
	if index, _, _ := d.cuda(); d.device != "cpu" {
		started := d.gpu(index).Start()
		d.started = &started
	}
}

// gpu returns a GPU with the chosen precision.
func (d chosenDevice) gpu(index int) kernels.Device {
	if d.started != nil && d.started.Index == index {
		return *d.started
	}
	return kernels.Device{Index: index, Precision: kernels.Precision(d.precision), Compiling: func() (done func()) {
		timer := time.AfterFunc(time.Second/2, func() { say(d.log, "compiling kernels for GPU %d …", index) })
		return func() { timer.Stop() }
	}}
}

// unable reports whether err means that the GPU can't run the work, rather than that the work failed.
func unable(err error) bool {
	return errors.Is(err, kernels.ErrUnavailable) || errors.Is(err, kernels.ErrUnsupported) || errors.Is(err, train.ErrMemory)
}
