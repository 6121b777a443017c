package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"overcomplete/cpu"
	"overcomplete/kernels"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// deviceFlags are where training was asked to run.
type deviceFlags struct {
	device    string // auto, cpu, cuda or cuda:i
	precision string // of products on a GPU
	workers   int    // on the CPU
}

// check refuses what no device does.
func (f *deviceFlags) check(algorithm string, precisionGiven bool) error {
	_, cuda, err := f.cuda()
	switch {
	case err != nil:
		return err
	case f.precision != "tf32" && f.precision != "fp32":
		return usagef("--precision is %q, want tf32 or fp32", f.precision)
	case precisionGiven && (f.device == "cpu" || algorithm == "authors"):
		return usagef("--precision is of GPUs; the CPU computes in float32")
	case cuda && algorithm == "authors":
		return usagef("--algorithm authors goes word by word, and only on the CPU; drop --device %s", f.device)
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

// run trains on the device that was asked for and fills in what was learned.
func (f *trainFlags) run(ctx context.Context, x *vectors.Dense, log io.Writer, p *progress, m *model.Model) error {
	h, spec := f.Hyperparameters, f.spec(x.Dim)
	if f.Algorithm == "authors" {
		m.Info.Device = "cpu"
		fmt.Fprintln(log, "training on the CPU")
		b, err := cpu.NewAuthors(spec, x.Data, cpu.Options{Workers: f.workers, Seed: f.Seed, Progress: p.words})
		if err != nil {
			return tooLarge(err)
		}
		if m.Info.Epochs, err = train.RunAuthors(ctx, b, h, x.Len(), x.Dim, p.epoch); err != nil {
			return err
		}
		return fetch(m, b)
	}
	b, err := f.backend(x, log, p, m)
	if err != nil {
		return err
	}
	if c, ok := b.(io.Closer); ok {
		defer c.Close()
	}
	if m.Info.Epochs, err = train.Run(ctx, b, h, x.Len(), x.Dim, p.epoch); err != nil {
		return err
	}
	return fetch(m, b)
}

func fetch(m *model.Model, learned train.Learned) (err error) {
	if m.Codes, err = learned.Codes(); err != nil {
		return err
	}
	m.Dictionary, err = learned.Dictionary()
	return err
}

// backend prepares training on the device that was asked for, or the best that
// there is, and says which.
func (f *trainFlags) backend(x *vectors.Dense, log io.Writer, p *progress, m *model.Model) (train.Backend, error) {
	index, cuda, err := f.cuda()
	if err != nil {
		return nil, err
	}
	why := ""
	if f.device != "cpu" {
		b, err := f.gpu(index, cuda, x, log, p, m)
		switch {
		case err == nil:
			return b, nil
		case cuda && unable(err):
			return nil, usagef("--device %s: %w", f.device, err)
		case !unable(err):
			return nil, err
		}
		why = fmt.Sprintf(" (%v)", err)
	}
	b, err := cpu.New(f.spec(x.Dim), x.Data, cpu.Options{Workers: f.workers, Seed: f.Seed, Progress: p.words})
	if err != nil {
		return nil, tooLarge(err)
	}
	m.Info.Device = "cpu"
	fmt.Fprintf(log, "training on the CPU%s\n", why)
	return b, nil
}

// gpu prepares training on the GPU with the index, or on the first that has room
// if none is given.
func (f *trainFlags) gpu(index int, given bool, x *vectors.Dense, log io.Writer, p *progress, m *model.Model) (*kernels.Backend, error) {
	count, err := kernels.Count()
	if err != nil {
		return nil, err
	}
	if given {
		count = 0 // to try further
	}
	b, err := f.onGPU(index, x, p)
	for index++; index < count && unable(err); index++ {
		if other, failed := f.onGPU(index, x, p); failed == nil {
			b, err = other, nil
		}
	}
	if err != nil {
		return nil, err
	}
	d := b.Device()
	m.Info.Device = "cuda " + f.precision
	fmt.Fprintf(log, "training on GPU %d, %s, %s\n", d.Index, d.Name, f.precision)
	return b, nil
}

func (f *trainFlags) onGPU(index int, x *vectors.Dense, p *progress) (*kernels.Backend, error) {
	return kernels.New(f.spec(x.Dim), x.Data, kernels.Options{
		Device: index, Precision: kernels.Precision(f.precision),
		Batch: train.BatchWords(x.Len(), f.DictionarySteps), Seed: f.Seed, Progress: p.words,
	})
}

// unable reports whether an error says that a GPU can't take the training, rather
// than that it failed.
func unable(err error) bool {
	return errors.Is(err, kernels.ErrUnavailable) || errors.Is(err, kernels.ErrMemory)
}

// tooLarge says what to do about a training that does not fit in memory.
func tooLarge(err error) error {
	if errors.Is(err, cpu.ErrMemory) {
		return usagef("%w; lower -k or --max-words", err)
	}
	return err
}
