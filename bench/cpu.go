package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

func init() {
	commands["cpu"] = command{"trainings and encodings on the CPU beside the machine's own limits, for benchstat", benchCPU}
}

// benchCPU prints measurements in Go's benchmark format. It measures the machine's peak rates before each training,
// because other load changes from minute to minute.
func benchCPU(flags *flag.FlagSet, args []string, out io.Writer) error {
	var words, dim, atoms, epochs, repeats int
	positive(flags, &words, "words", 8000, "rows to train on")
	positive(flags, &dim, "dim", 300, "length of vectors")
	positive(flags, &atoms, "atoms", 3000, "atoms of the dictionary")
	positive(flags, &epochs, "epochs", 20, "epochs of each training")
	positive(flags, &repeats, "count", 5, "number of trainings")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	if err := printMachine(out); err != nil {
		return err
	}
	x := generate(seed, words, dim)
	for range repeats {
		limits, err := measureLimits(words, atoms)
		if err != nil {
			return err
		}
		printResult(out, "Machine", testing.BenchmarkResult{N: 1, Extra: map[string]float64{
			"FMA-GFLOP/s": 1e-9 * limits.fma, "FMA-core-GFLOP/s": 1e-9 * limits.fmaCore, "byte-core-GMAC/s": 1e-9 * limits.bytesCore,
			"read-GB/s": 1e-9 * limits.read, "update-GB/s": 1e-9 * limits.update,
		}})
		result, err := measureTraining(x, atoms, epochs, limits)
		if err != nil {
			return err
		}
		printResult(out, fmt.Sprintf("Training/V=%d/L=%d/K=%d", words, dim, atoms), result)
		if result, err = measureEncoding(x, atoms, limits); err != nil {
			return err
		}
		printResult(out, fmt.Sprintf("Encoding/L=%d/K=%d", dim, atoms), result)
	}
	return nil
}

func printResult(out io.Writer, name string, r testing.BenchmarkResult) {
	fmt.Fprintf(out, "Benchmark%s-%d\t%s\n", name, runtime.GOMAXPROCS(0), r)
}

// machineLimits are the peak rates of the machine, per second.
type machineLimits struct {
	fmaCore, fma float64 // flops of fused multiply-adds in registers: on one core, on all cores
	bytesCore    float64 // multiply-adds of 8-bit integers in registers, on one core
	read, update float64 // bytes read, or read and written, of an array as large as S and Q together
}

func measureLimits(rows, atoms int) (l machineLimits, err error) {
	k, _, err := simd.Choose()
	if err != nil {
		return l, err
	}
	const n = 50_000
	cores := runtime.GOMAXPROCS(0)
	state := memory.Zeros[float32](2 * rows * atoms)
	part := func(i int) []float32 { return state[len(state)*i/cores : len(state)*(i+1)/cores] }
	l.fmaCore = fastest(1, 200, func(int) float64 { return k.FMA(n) })
	l.fma = fastest(cores, 20, func(int) float64 { return k.FMA(10 * n) })
	l.bytesCore = fastest(1, 200, func(int) float64 { return k.PeakBytes(n) })
	l.read = fastest(cores, 5, func(i int) float64 {
		k.Sum(part(i))
		return 4 * float64(len(part(i)))
	})
	l.update = fastest(cores, 5, func(i int) float64 {
		k.Scale(part(i), part(i), 1)
		return 8 * float64(len(part(i)))
	})
	return l, nil
}

// fastest returns the best rate of several tries, in work per second. In a try each worker calls f, which returns
// the amount of its work.
func fastest(workers, tries int, f func(worker int) float64) (best float64) {
	amounts := make([]float64, workers)
	for range tries {
		start := time.Now()
		parallel.With(make([]struct{}, workers), workers, func(_ struct{}, i int) { amounts[i] = f(i) })
		seconds := time.Since(start).Seconds()
		var total float64
		for _, amount := range amounts {
			total += amount
		}
		best = max(best, total/seconds)
	}
	return best
}

// measureTraining trains once. Rates of the passes are medians over the second half of the epochs, when the
// sparsity has converged.
func measureTraining(x *vectors.Dense, atoms, epochs int, limits machineLimits) (r testing.BenchmarkResult, err error) {
	device := &recorder{Device: cpu.Device{}}
	var start time.Time
	m, err := train.Fit(context.Background(), x, hyperparameters(atoms, epochs), device, train.Options{
		Begin: func(model.Info) { start = time.Now() },
	})
	if err != nil {
		return r, err
	}
	took := time.Since(start)
	state := float64(x.Len()) * float64(atoms)
	var codeRates, stateRates, dictionaryRates []float64
	var flops float64
	before := int64(state) // the initial codes are dense
	for t, e := range device.epochs {
		code, dictionary := codePassFlops(x.Len(), x.Dim, atoms, before, e.Nonzeros), dictionaryPassFlops(x.Dim, before)
		flops += code + dictionary
		before = e.Nonzeros
		if t >= epochs/2 {
			codeRates = append(codeRates, code/e.CodeSeconds)
			stateRates = append(stateRates, 16*state/e.CodeSeconds)
			dictionaryRates = append(dictionaryRates, dictionary/e.DictionarySeconds)
		}
	}
	return testing.BenchmarkResult{N: epochs, T: took, Extra: map[string]float64{
		"ns/row/epoch":       float64(took.Nanoseconds()) / float64(x.Len()) / float64(epochs),
		"floor-%":            100 * took.Seconds() * limits.fma / flops,
		"codes-GFLOP/s":      1e-9 * median(codeRates),
		"codes-%FMA":         100 * median(codeRates) / limits.fma,
		"codes-%update":      100 * median(stateRates) / limits.update,
		"dictionary-GFLOP/s": 1e-9 * median(dictionaryRates),
		"dictionary-%FMA":    100 * median(dictionaryRates) / limits.fma,
		"objective":          m.Info.Training.Epochs[epochs-1].Objective,
	}}, nil
}

// measureEncoding encodes rows of x with a dictionary of other rows, on one worker and on all. It also measures the
// product of 8-bit rows with all atoms.
func measureEncoding(x *vectors.Dense, atoms int, limits machineLimits) (r testing.BenchmarkResult, err error) {
	const tries = 5
	atoms = min(atoms, x.Len())
	rows := x.Data[:min(2*encode.Block, x.Len())*x.Dim]
	d := &model.Dictionary{Dim: x.Dim, Atoms: x.Data[len(x.Data)-atoms*x.Dim:]}
	square := d.Squares(x.Data) / float64(x.Len())
	o := encode.Options{Lambda: train.Best().Lambda * square, Steps: encode.DefaultSteps, Nonzeros: max(1, 3*atoms/100)}
	rate := func(workers int) float64 {
		e, err1 := cpu.Device{Workers: workers}.Encoder(d, o)
		if err1 != nil {
			err = err1
			return 0
		}
		return fastest(1, tries, func(int) float64 {
			if _, err1 := encode.Rows(context.Background(), e, rows); err1 != nil {
				err = err1
			}
			return float64(len(rows) / x.Dim)
		})
	}
	one, all := rate(1), rate(0)
	k, _, _ := simd.Choose() // measureLimits has already returned the error
	m := simd.NewMatrix(atoms, x.Dim)
	for i := range atoms {
		copy(m.Row(i), d.Atom(i))
	}
	var c simd.Coarse
	c.Resize(k, atoms, x.Dim)
	c.Measure(m, 0, atoms)
	c.Fill(k, m, 0, atoms)
	var sums []int32
	const block = 8 * simd.TileRows
	bytes := make([]int8, (block+simd.TileRows)*simd.BytePitch(x.Dim))
	product := fastest(1, 10*tries, func(int) float64 {
		c.Correlate(k, bytes, block, &sums, func(int, int, []int32) {})
		return block * float64(atoms*x.Dim)
	})
	return testing.BenchmarkResult{N: tries, T: time.Duration(tries * float64(len(rows)/x.Dim) / one * 1e9), Extra: map[string]float64{
		"rows/s": all, "rows-core/s": one, "product-GMAC/s": 1e-9 * product, "product-%byte": 100 * product / limits.bytesCore,
	}}, err
}

// codePassFlops returns the minimum flops of a code pass: 2KL per row for RDᵀ, and 2L for each nonzero of the codes,
// before the pass (X − AD) and after it (aD). It ignores dual averaging.
func codePassFlops(rows, dim, atoms int, before, after int64) float64 {
	return 2 * float64(dim) * (float64(rows)*float64(atoms) + float64(before) + float64(after))
}

// dictionaryPassFlops returns the flops of a dictionary pass's products with the codes: 9L per nonzero, 2 each for
// AD, AᵀR and AP, and 3 for (A∘A)ᵀ(R∘R). It ignores the updates of D.
func dictionaryPassFlops(dim int, nonzeros int64) float64 {
	return 9 * float64(dim) * float64(nonzeros)
}

// hyperparameters returns the defaults of the paper's recipe for these numbers of atoms and epochs.
func hyperparameters(atoms, epochs int) model.Paper {
	h := train.Paper()
	h.Atoms, h.Epochs, h.Seed = atoms, epochs, seed
	return h
}

// recorder is a device that records the sums of each epoch of its last trainer.
type recorder struct {
	train.Device
	epochs []backend.Sums
}

func (r *recorder) Trainer(p backend.Problem) (backend.Trainer, error) {
	t, err := r.Device.Trainer(p)
	r.epochs = nil
	return recorded{t, r}, err
}

// recorded is a trainer that records its epochs.
type recorded struct {
	backend.Trainer
	by *recorder
}

func (t recorded) Epoch(ctx context.Context, epoch, batch int) (backend.Sums, error) {
	sums, err := t.Trainer.Epoch(ctx, epoch, batch)
	t.by.epochs = append(t.by.epochs, sums)
	return sums, err
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
