package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"overcomplete/cpu"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// repeats is how many times everything is measured.
const repeats = 5

// Names of figures that others are compared with.
const (
	fmaCore     = "FMA, one core"
	fmaAll      = "FMA, all cores"
	memoryRead  = "memory, read"
	memoryBoth  = "memory, read and written"
	codePass    = "code pass"
	trainFloor  = "training at FMA's speed"
	training    = "training"
	trainingAll = "training, in all"
	hash        = "SHA-256"
	copied      = "writing the bytes alone"
)

func (r *CPUReport) declare(flags *flag.FlagSet) {
	positive(flags, &r.Words, "words", 8000, "to train on")
	positive(flags, &r.Dim, "dim", 300, "of vectors")
	positive(flags, &r.Atoms, "atoms", 3000, "of the dictionary")
	positive(flags, &r.Epochs, "epochs", 20, "of trainings")
	flags.StringVar(&r.Vectors, "vectors", "", "`file` of vectors to train on instead of generated ones")
	flags.StringVar(&r.python, "python", os.Getenv("OVERCOMPLETE_PYTHON"), "Python with NumPy and scikit-learn, to compare with")
	flags.StringVar(&r.authors, "authors", "", "the program of the paper's authors, to compare with")
	r.sized = func() (sized bool) {
		flags.Visit(func(f *flag.Flag) { sized = sized || f.Name == "words" || f.Name == "dim" })
		return sized
	}
}

func (r *CPUReport) run() error {
	if err := r.open(); err != nil {
		return err
	}
	if err := os.WriteFile(r.file("vectors.txt"), glove(r.x), 0o666); err != nil {
		return err
	}
	for _, part := range []func() error{r.train, r.read, r.write} {
		if err := part(); err != nil {
			return err
		}
	}
	r.peers()
	for i, f := range r.Figures {
		if f.Against != "" {
			r.Figures[i].Ratio = f.Value / r.value(f.Against)
		}
	}
	return nil
}

// open has the vectors that were asked for.
func (r *CPUReport) open() error {
	if r.Vectors == "" {
		r.Vectors, r.x = "generated", generate(seed, r.Words, r.Dim)
		return nil
	}
	if r.sized() {
		return usageError{errors.New("--words and --dim are for generated vectors, not for --vectors")}
	}
	x, from, err := vectors.Read(context.Background(), r.Vectors, vectors.ReadOptions{})
	if _, bad := errors.AsType[*vectors.InputError](err); bad {
		return usageError{err}
	} else if err != nil {
		return err
	}
	r.x, r.Vectors, r.Words, r.Dim = x, from.Name, x.Len(), x.Dim
	return nil
}

// glove returns dense vectors as GloVe's text, with six decimals.
func glove(x *vectors.Dense) []byte {
	var b []byte
	for i, word := range x.Words {
		b = append(b, word...)
		for _, v := range x.Row(i) {
			b = append(b, ' ')
			b = strconv.AppendFloat(b, float64(v), 'f', 6, 32)
		}
		b = append(b, '\n')
	}
	return b
}

// train measures trainings and, before each, the machine: what others who use it
// leave changes from minute to minute.
func (r *CPUReport) train() error {
	const flop, byte, micro = "GFLOP/s", "GB/s", "µs/word/epoch"
	v, l, k := r.Words, r.Dim, r.Atoms
	limits, err := newLimits(v, k)
	if err != nil {
		return err
	}
	asState := fmt.Sprintf("%.0f MB, as S and Q take", 8e-6*float64(v)*float64(k))
	for range repeats {
		const n = 50_000
		cores := r.Machine.Cores
		all := fastest(cores, 20, func(int) float64 { return limits.kernels.FMA(10 * n) })
		r.add(fmaCore, flop, "", "", 1e-9*fastest(1, 200, func(int) float64 { return limits.kernels.FMA(n) }))
		r.add(fmaAll, flop, fmaCore, "", 1e-9*all)
		r.add(memoryRead, byte, "", asState, 1e-9*fastest(cores, 5, func(i int) float64 { return limits.read(i, cores) }))
		r.add(memoryBoth, byte, "", asState, 1e-9*fastest(cores, 5, func(i int) float64 { return limits.update(i, cores) }))

		device := &recorder{Device: cpu.Device{}}
		var start time.Time
		begin := func(model.Info) { start = time.Now() }
		r.model, err = train.Fit(context.Background(), r.x, hyperparameters(k, r.Epochs), device, train.Options{Begin: begin})
		if err != nil {
			return err
		}
		took := time.Since(start).Seconds()

		// Rates of passes are those of the later half of the epochs, when codes are
		// as sparse as they get.
		var codeRates, stateRates, dictionaryRates []float64
		var flops float64
		before := int64(v) * int64(k) // the initial codes are dense
		for t, e := range device.epochs {
			c, d := codePassFlops(v, l, k, before, e.Nonzeros), dictionaryPassFlops(l, before)
			flops += c + d
			before = e.Nonzeros
			if t >= r.Epochs/2 {
				codeRates = append(codeRates, c/e.CodeSeconds)
				stateRates = append(stateRates, 16*float64(v)*float64(k)/e.CodeSeconds)
				dictionaryRates = append(dictionaryRates, d/e.DictionarySeconds)
			}
		}
		perWord := 1e6 / float64(v*r.Epochs)
		r.add(codePass, flop, fmaAll, "", 1e-9*median(codeRates))
		r.add("code pass, S and Q", byte, memoryBoth, "", 1e-9*median(stateRates))
		r.add("dictionary pass", flop, fmaAll, "", 1e-9*median(dictionaryRates))
		r.add(trainFloor, micro, "", "", perWord*flops/all)
		r.add(training, micro, trainFloor, "", perWord*took)
		last := r.model.Info.Training.Epochs[r.Epochs-1]
		r.add(trainingAll, "s", "", fmt.Sprintf("objective %.4f, error %.4f, %.2f %% zeros", last.Objective, last.Error, 100*last.Sparsity), took)
	}
	return nil
}

// fastest returns the most that f, which so many goroutines run at once, got done
// in a second in any of the tries. f returns how much that is.
func fastest(workers, tries int, f func(worker int) float64) (best float64) {
	done := make([]float64, workers)
	for range tries {
		var group sync.WaitGroup
		start := time.Now()
		for i := range workers {
			group.Go(func() { done[i] = f(i) })
		}
		group.Wait()
		seconds := time.Since(start).Seconds()
		var total float64
		for _, d := range done {
			total += d
		}
		best = max(best, total/seconds)
	}
	return best
}

// read measures how fast the vectors are read from text. All of it is hashed, in
// order: no reader is faster than that.
func (r *CPUReport) read() error {
	path := r.file("vectors.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for range repeats {
		for _, figure := range []struct {
			name, against string
			cores         int
			run           func() error
		}{
			{hash, "", 1, func() error { sha256.Sum256(text); return nil }},
			{"reading text, one core", hash, 1, func() error { return readAll(path) }},
			{"reading text, all cores", hash, r.Machine.Cores, func() error { return readAll(path) }},
		} {
			before := runtime.GOMAXPROCS(figure.cores)
			err := r.addRate(figure.name, figure.against, len(text), figure.run)
			runtime.GOMAXPROCS(before)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func readAll(path string) error {
	_, _, err := vectors.Read(context.Background(), path, vectors.ReadOptions{})
	return err
}

// addRate measures how many megabytes a second something that has so many bytes takes.
func (r *CPUReport) addRate(name, against string, bytes int, run func() error) error {
	start := time.Now()
	if err := run(); err != nil {
		return err
	}
	megabytes, note := float64(bytes)/1e6, ""
	if against == "" {
		note = fmt.Sprintf("%.1f MB", megabytes)
	}
	r.add(name, "MB/s", against, note, megabytes/time.Since(start).Seconds())
	return nil
}

// write measures how fast codes are written to files, and how fast bytes that are
// there already are.
func (r *CPUReport) write() error {
	path := r.file("codes")
	for _, format := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{"sparse text", func(w io.Writer) error { return vectors.WriteSparseText(w, r.model.Codes) }},
		{"codes.npz", func(w io.Writer) error { return vectors.WriteCSR(w, &r.model.Codes.CSR) }},
	} {
		var data bytes.Buffer
		if err := format.write(&data); err != nil {
			return err
		}
		for range repeats {
			alone := copied + ", " + format.name
			if err := cmp.Or(
				r.addRate(alone, "", data.Len(), func() error { return os.WriteFile(path, data.Bytes(), 0o666) }),
				r.addRate("writing "+format.name, alone, data.Len(), func() error { return writeFile(path, format.write) }),
			); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeFile(path string, write func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
