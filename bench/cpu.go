package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// cpuBench is what "bench cpu" was asked for, and what it needs and has.
type cpuBench struct {
	python, authors string // peers
	text            string // the vectors' file
	x               *vectors.Dense
	report          CPUReport

	model *model.Model // of the last training
}

func benchCPU(args []string, stdout io.Writer) error {
	var b cpuBench
	flags := flag.NewFlagSet("bench cpu", flag.ContinueOnError)
	words := positive(flags, "words", 8000, "to train on")
	dim := positive(flags, "dim", 300, "of vectors")
	atoms := positive(flags, "atoms", 3000, "of the dictionary")
	epochs := positive(flags, "epochs", 20, "of trainings")
	file := flags.String("vectors", "", "`file` of vectors to train on instead of generated ones")
	flags.StringVar(&b.python, "python", os.Getenv("OVERCOMPLETE_PYTHON"), "Python with NumPy and scikit-learn, to compare with")
	flags.StringVar(&b.authors, "authors", "", "the program of the paper's authors, to compare with")
	out := flags.String("json", "", "`file` to write all results to")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	source := "generated"
	if *file == "" {
		b.x = generate(seed, *words, *dim)
	} else {
		conflict := false
		flags.Visit(func(f *flag.Flag) { conflict = conflict || f.Name == "words" || f.Name == "dim" })
		if conflict {
			return usageError{errors.New("--words and --dim are for generated vectors, not for --vectors")}
		}
		x, from, err := vectors.Read(context.Background(), *file, vectors.ReadOptions{})
		var bad *vectors.InputError
		switch {
		case errors.As(err, &bad):
			return usageError{err}
		case err != nil:
			return err
		}
		b.x, source = x, from.Name
	}
	machine, err := thisMachine()
	if err != nil {
		return usageError{err} // the environment asks for a level that there is not
	}
	b.report = CPUReport{Machine: machine, Vectors: source, Words: b.x.Len(), Dim: b.x.Dim, Atoms: *atoms, Epochs: *epochs}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.text = filepath.Join(dir, "vectors.txt")
	if err := os.WriteFile(b.text, glove(b.x), 0o666); err != nil {
		return err
	}
	for _, part := range []func(dir string) error{b.train, b.read, b.write, b.peers} {
		if err := part(dir); err != nil {
			return err
		}
	}
	if *out != "" {
		if err := writeJSON(*out, b.report); err != nil {
			return err
		}
	}
	return b.report.print(stdout)
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
func (b *cpuBench) train(string) error {
	r := &b.report
	v, l, k := r.Words, r.Dim, r.Atoms
	limits, err := newLimits(v, k)
	if err != nil {
		return err
	}
	var core, all, read, both, code, state, dictionary, floor, word, total []float64
	for range repeats {
		const n = 50_000
		core = append(core, fastest(1, 200, func(int) float64 { return limits.kernels.FMA(n) }))
		all = append(all, fastest(r.Machine.Cores, 20, func(int) float64 { return limits.kernels.FMA(10 * n) }))
		read = append(read, fastest(r.Machine.Cores, 5, func(i int) float64 { return limits.read(i, r.Machine.Cores) }))
		both = append(both, fastest(r.Machine.Cores, 5, func(i int) float64 { return limits.update(i, r.Machine.Cores) }))

		device := &recorder{Device: cpu.Device{}}
		var start time.Time
		begin := func(model.Info) { start = time.Now() }
		b.model, err = train.Fit(context.Background(), b.x, hyperparameters(k, r.Epochs), device, train.Options{Begin: begin})
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
		code = append(code, median(codeRates))
		state = append(state, median(stateRates))
		dictionary = append(dictionary, median(dictionaryRates))
		floor = append(floor, perWord*flops/all[len(all)-1])
		word = append(word, perWord*took)
		total = append(total, took)
	}
	const flop, byte, micro = "GFLOP/s", "GB/s", "µs/word/epoch"
	r.add(fmaCore, flop, scaled(core, 1e-9), "", "")
	r.add(fmaAll, flop, scaled(all, 1e-9), fmaCore, "")
	note := fmt.Sprintf("%.0f MB, as S and Q take", 8e-6*float64(v)*float64(k))
	r.add(memoryRead, byte, scaled(read, 1e-9), "", note)
	r.add(memoryBoth, byte, scaled(both, 1e-9), "", note)
	r.add(codePass, flop, scaled(code, 1e-9), fmaAll, "")
	r.add("code pass, S and Q", byte, scaled(state, 1e-9), memoryBoth, "")
	r.add("dictionary pass", flop, scaled(dictionary, 1e-9), fmaAll, "")
	r.add(trainFloor, micro, floor, "", "")
	r.add(training, micro, word, trainFloor, "")
	last := b.model.Info.Training.Epochs[r.Epochs-1]
	r.add(trainingAll, "s", total, "", fmt.Sprintf("objective %.4f, error %.4f, %.2f %% zeros", last.Objective, last.Error, 100*last.Sparsity))
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

func scaled(x []float64, by float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = by * x[i]
	}
	return y
}

// read measures how fast the vectors are read from text. All of it is hashed, in
// order: no reader is faster than that.
func (b *cpuBench) read(string) error {
	text, err := os.ReadFile(b.text)
	if err != nil {
		return err
	}
	all := func() error {
		_, _, err := vectors.Read(context.Background(), b.text, vectors.ReadOptions{})
		return err
	}
	var hashed, core, cores []float64
	for range repeats {
		start := time.Now()
		sha256.Sum256(text)
		hashed = append(hashed, rate(text, start))

		processors := runtime.GOMAXPROCS(1)
		start = time.Now()
		err := all()
		core = append(core, rate(text, start))
		runtime.GOMAXPROCS(processors)
		if err != nil {
			return err
		}
		start = time.Now()
		if err := all(); err != nil {
			return err
		}
		cores = append(cores, rate(text, start))
	}
	b.report.add(hash, "MB/s", hashed, "", fmt.Sprintf("%.1f MB", float64(len(text))/1e6))
	b.report.add("reading text, one core", "MB/s", core, hash, "")
	b.report.add("reading text, all cores", "MB/s", cores, hash, "")
	return nil
}

// rate returns how many megabytes a second these are, if they took since start.
func rate(data []byte, start time.Time) float64 {
	return float64(len(data)) / 1e6 / time.Since(start).Seconds()
}

// write measures how fast codes are written to files, and how fast bytes that are
// there already are.
func (b *cpuBench) write(dir string) error {
	for _, format := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{"sparse text", func(w io.Writer) error { return vectors.WriteSparseText(w, b.model.Codes) }},
		{"codes.npz", func(w io.Writer) error { return vectors.WriteCSR(w, &b.model.Codes.CSR) }},
	} {
		var data bytes.Buffer
		if err := format.write(&data); err != nil {
			return err
		}
		path := filepath.Join(dir, "codes")
		var raw, made []float64
		for range repeats {
			start := time.Now()
			if err := os.WriteFile(path, data.Bytes(), 0o666); err != nil {
				return err
			}
			raw = append(raw, rate(data.Bytes(), start))
			start = time.Now()
			if err := writeFile(path, format.write); err != nil {
				return err
			}
			made = append(made, rate(data.Bytes(), start))
		}
		name := copied + ", " + format.name
		b.report.add(name, "MB/s", raw, "", fmt.Sprintf("%.1f MB", float64(data.Len())/1e6))
		b.report.add("writing "+format.name, "MB/s", made, name, "")
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
