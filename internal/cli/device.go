package cli

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"overcomplete/cpu"
	"overcomplete/graph"
	"overcomplete/internal/memory"
	"overcomplete/kernels"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// deviceFlags are where training or encoding was asked to run.
type deviceFlags struct {
	device     string // auto, cpu, cuda or cuda:i
	precision  string // of products on a GPU
	workers    int    // on the CPU
	overcommit bool   // its memory
}

// check refuses what no device does. Only says what of the work no GPU does, or "".
func (f *deviceFlags) check(only string, given func(flag string) bool) error {
	_, cuda, err := f.cuda()
	switch {
	case err != nil:
		return err
	case f.precision != "tf32" && f.precision != "fp32":
		return usagef("--precision is %q, want tf32 or fp32", f.precision)
	case cuda && given("workers"):
		return usagef("--workers is of the CPU; drop it, or --device %s", f.device)
	case cuda && f.overcommit:
		return usagef("--overcommit is of the CPU; drop it, or --device %s", f.device)
	case given("precision") && (f.device == "cpu" || only != ""):
		return usagef("--precision is of GPUs; the CPU computes in float32")
	case cuda && only != "":
		return usagef("%s; drop --device %s", only, f.device)
	}
	return nil
}

// onlyOnCPU says what of a training no GPU does, or "".
func onlyOnCPU(h model.Hyperparameters) string {
	switch {
	case h.Algorithm == "authors":
		return "--algorithm authors goes word by word, and only on the CPU"
	case h.State == "float16":
		return "--state float16 is of the CPU only"
	}
	return ""
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

// cuda returns the GPU that --device names: cuda is false if it need not be one.
func (f *deviceFlags) cuda() (index int, cuda bool, err error) {
	name, number, numbered := strings.Cut(f.device, ":")
	switch {
	case f.device == "auto" || f.device == "cpu":
		return 0, false, nil
	case name == "cuda" && !numbered:
		return 0, true, nil
	case name == "cuda":
		if i, err := strconv.ParseUint(number, 10, 16); err == nil {
			return int(i), true, nil
		}
	}
	return 0, false, usagef("--device is %q, want auto, cpu, cuda or cuda:i with i from 0", f.device)
}

// tryGPU opens what is to run on the GPU that was asked for, or on the first that has
// room. Where it is to run on the CPU, or no GPU can be used and none was asked for,
// it says why.
func tryGPU[T any](f *deviceFlags, only string, open func(index int) (T, error)) (opened T, why string, err error) {
	switch {
	case f.device == "cpu":
		return opened, "--device cpu", nil
	case only != "":
		return opened, only, nil
	}
	index, cuda, _ := f.cuda()
	count, err := kernels.Count()
	if err == nil {
		opened, err = open(index)
	}
	for index++; !cuda && index < count && unable(err); index++ {
		if other, failed := open(index); failed == nil {
			opened, err = other, nil
		}
	}
	switch {
	case err == nil:
		return opened, "", nil
	case cuda && unable(err):
		return opened, "", usagef("--device %s: %w", f.device, err)
	case !unable(err):
		return opened, "", err
	}
	return opened, err.Error(), nil
}

// onCPU says that something runs on the CPU, and why if that was not asked for.
func (f *deviceFlags) onCPU(why string) string {
	if f.device == "cpu" {
		return "on the CPU"
	}
	return "on the CPU (" + why + ")"
}

// unable reports whether an error says that a GPU can't take the work, rather than
// that it failed.
func unable(err error) bool {
	return errors.Is(err, kernels.ErrUnavailable) || errors.Is(err, train.ErrMemory)
}

// trainer is a device's backend.
type trainer struct {
	train.Resumable
	close func() error
}

// run trains on the device that was asked for and fills in what was learned.
func (f *trainFlags) run(x *vectors.Dense, p *progress, c *checkpoints) error {
	t, err := f.trainer(x, p, c.model)
	if err != nil {
		return err
	}
	defer t.close()
	// Its memory is a few large arrays without pointers: collecting is cheap, and
	// codes of past epochs are garbage as large as what is in use.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	c.backend = t
	went, err := c.resumed()
	if err != nil {
		return err
	}
	p.resume(went.Epochs)
	ctx, stop := c.context(p)
	defer stop()
	err = train.Run(ctx, t.Resumable, c.model, went, func(went train.Progress) error {
		p.epoch(went.Epochs[len(went.Epochs)-1])
		return c.observe(went)
	})
	if err != nil {
		return c.failed(err)
	}
	return nil
}

// trainer prepares training on the device that was asked for, or the best that
// there is, and says which.
func (f *trainFlags) trainer(x *vectors.Dense, p *progress, m *model.Model) (trainer, error) {
	b, why, err := tryGPU(&f.deviceFlags, onlyOnCPU(f.Hyperparameters), func(index int) (*kernels.Backend, error) {
		return kernels.New(f.spec(x), x.Data, kernels.Options{
			Device: index, Precision: kernels.Precision(f.precision),
			Batch: train.BatchWords(x.Len(), f.DictionarySteps), Seed: f.Seed, Progress: p.words,
		})
	})
	if err != nil {
		return trainer{}, err
	}
	if why == "" {
		m.Info.Device = "cuda " + f.precision
		d := b.Device()
		fmt.Fprintf(p.w, "training on GPU %d, %s, %s\n", d.Index, d.Name, f.precision)
		return trainer{b, b.Close}, nil
	}
	t, err := f.trainOnCPU(x, p)
	if err != nil {
		return trainer{}, f.ofTheUser(err)
	}
	level, _, err := cpu.Level()
	if err != nil {
		return trainer{}, f.ofTheUser(err)
	}
	m.Info.Device = "cpu " + level
	needed := fmt.Sprintf("about %.1f GB", cpu.Memory(f.spec(x), x.Len(), f.cpuOptions())/1e9)
	if total, ok := memory.Total(); ok {
		needed += fmt.Sprintf(" of its %.1f GB memory", float64(total)/1e9)
	}
	fmt.Fprintf(p.w, "training %s, which takes %s\n", f.onCPU(why), needed)
	return t, nil
}

func (f *trainFlags) cpuOptions() cpu.Options {
	return cpu.Options{Workers: f.workers, Seed: f.Seed, Float16: f.State == "float16", Overcommit: f.overcommit}
}

func (f *trainFlags) trainOnCPU(x *vectors.Dense, p *progress) (t trainer, err error) {
	o := f.cpuOptions()
	o.Progress = p.words
	t.close = func() error { return nil }
	if f.Algorithm == "authors" {
		t.Resumable, err = cpu.NewAuthors(f.spec(x), x.Data, o)
	} else {
		t.Resumable, err = cpu.New(f.spec(x), x.Data, o)
	}
	return t, err
}

func (f *trainFlags) spec(x *vectors.Dense) graph.Spec { return train.Spec(f.Hyperparameters, x.Dim) }

// ofTheUser marks errors of preparing the CPU that the user can mend, and says
// how.
func (f *trainFlags) ofTheUser(err error) error {
	switch {
	case errors.Is(err, train.ErrMemory) && f.State != "float16":
		return usagef("%w; --state float16 needs less, or lower -k or --max-words, or try it with --overcommit", err)
	case errors.Is(err, train.ErrMemory):
		return usagef("%w; lower -k or --max-words, or try it with --overcommit", err)
	case errors.Is(err, cpu.ErrLevel):
		return usageError{err}
	}
	return err
}
