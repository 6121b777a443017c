package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"overcomplete/encode"
	"overcomplete/internal/atomicfile"
	"overcomplete/internal/backend"
	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
	"overcomplete/internal/npy"
	"overcomplete/internal/parallel"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
	_ "overcomplete/vectors/columnar" // reads Parquet
)

func init() {
	commands["host"] = command{"train and encode with a device that takes no time, from each format of files, or from some: " + strings.Join(formatNames(), ", "), benchHost}
}

// hostFormats are the formats of the files that "bench host" reads. The words of .npy files are in a list of their own.
var hostFormats = []struct {
	name  string
	write func(w io.Writer, x *vectors.Dense) error
}{
	{"npy", func(w io.Writer, x *vectors.Dense) error { return npy.Write(w, []int{x.Len(), x.Dim}, x.Data) }},
	{"parquet", writeParquet},
	{"bin", func(w io.Writer, x *vectors.Dense) error {
		return vectors.WriteWord2VecBinary(w, interpret.FromDense(x))
	}},
	{"txt", func(w io.Writer, x *vectors.Dense) error { // with five decimals, as GloVe
		rounded := interpret.FromDense(x)
		for i, v := range rounded.Value {
			rounded.Value[i] = float32(math.Round(float64(v)*1e5) / 1e5)
		}
		return vectors.WriteGloVe(w, rounded)
	}},
}

func formatNames() (names []string) {
	for _, f := range hostFormats {
		names = append(names, f.name)
	}
	return names
}

func writeParquet(w io.Writer, x *vectors.Dense) error {
	type row struct {
		Word   string    `parquet:"word"`
		Vector []float32 `parquet:"vector,list"`
	}
	p := parquet.NewGenericWriter[row](w, parquet.Compression(&parquet.Snappy))
	for i, word := range x.IDs {
		if _, err := p.Write([]row{{word, x.Row(i)}}); err != nil {
			return err
		}
	}
	return p.Close()
}

type hostBench struct {
	out                         io.Writer
	rows, dim, atoms, nonzeros  int
	dir, command, path, written string // command, path (input) and written (output): only with -run
}

// benchHost measures commands, each in a process of its own.
func benchHost(flags *flag.FlagSet, args []string, out io.Writer) (err error) {
	b := hostBench{out: out}
	var repeats int
	positive(flags, &b.rows, "rows", 400000, "number of vectors")
	positive(flags, &b.dim, "dim", 300, "length of vectors")
	positive(flags, &b.atoms, "atoms", 3000, "atoms of the dictionary")
	positive(flags, &b.nonzeros, "nonzeros", 90, "nonzeros per row, at most half of the atoms")
	positive(flags, &repeats, "count", 3, "runs of each command")
	flags.StringVar(&b.dir, "dir", "", "`directory` of the vectors, kept for later runs (default a temporary one)")
	flags.StringVar(&b.command, "run", "", "run only this `command`, on a file and an output directory (for the processes of this benchmark)")
	if err := parse(flags, args, -1); err != nil {
		return err
	}
	if 2*b.nonzeros > b.atoms {
		return usageError{fmt.Errorf("too many nonzeros (got %d of %d atoms)", b.nonzeros, b.atoms)}
	}
	if b.command != "" {
		b.path, b.written = flags.Arg(0), flags.Arg(1)
		return b.child()
	}
	formats := flags.Args()
	for _, f := range formats {
		if !slices.Contains(formatNames(), f) {
			return usageError{fmt.Errorf("unknown format (got %q, want some of %s)", f, strings.Join(formatNames(), ", "))}
		}
	}
	if len(formats) == 0 {
		formats = formatNames()
	}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "bench-host"); err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, os.RemoveAll(b.dir)) }()
	}
	if err := printMachine(out); err != nil {
		return err
	}
	if err := b.generate(formats); err != nil {
		return err
	}
	for _, f := range formats {
		if err := cmp.Or(b.floors(f), b.measure(f, repeats)); err != nil {
			return err
		}
	}
	return nil
}

func (b *hostBench) file(format string) string {
	return filepath.Join(b.dir, fmt.Sprintf("%dx%d.%s", b.rows, b.dim, format))
}

func (b *hostBench) wordList() string { return b.file("words") }

// generate writes the files that don't exist yet.
func (b *hostBench) generate(formats []string) error {
	var x *vectors.Dense
	write := func(path string, f func(w io.Writer) error) error {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if x == nil {
			x = generate(seed, b.rows, b.dim)
		}
		return atomicfile.WriteFile(context.Background(), path, true, f)
	}
	err := write(b.wordList(), func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(x.IDs, "\n")+"\n")
		return err
	})
	for _, f := range hostFormats {
		if err == nil && slices.Contains(formats, f.name) {
			err = write(b.file(f.name), func(w io.Writer) error { return f.write(w, x) })
		}
	}
	return err
}

// floors prints how long one core takes to read a file, to read and hash it, and to write as many bytes as the codes.
func (b *hostBench) floors(format string) error {
	r := testing.BenchmarkResult{N: 1, Extra: make(map[string]float64)}
	timed := func(name string, f func() error) error {
		start := time.Now()
		err := f()
		r.T += time.Since(start)
		r.Extra[name+"-ms"] = 1e3 * time.Since(start).Seconds()
		return err
	}
	buffer := make([]byte, 1<<20)
	read := func(h hash.Hash) error {
		f, err := os.Open(b.file(format))
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := f.Read(buffer)
		for ; n > 0; n, err = f.Read(buffer) {
			if h != nil {
				h.Write(buffer[:n])
			}
		}
		if err == io.EOF {
			return nil
		}
		return err
	}
	err := cmp.Or(read(nil), // reads the file into the page cache
		timed("read", func() error { return read(nil) }),
		timed("read-sha256", func() error { return read(sha256.New()) }),
		timed("write-fsync", func() error {
			f, err := os.CreateTemp(b.dir, "floor")
			if err != nil {
				return err
			}
			for left := 8 * b.rows * b.nonzeros; err == nil && left > 0; left -= len(buffer) {
				_, err = f.Write(buffer[:min(left, len(buffer))])
			}
			return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
		}))
	printResult(b.out, "HostFloor/format="+format, r)
	return err
}

// hostResult is the output of a process that ran a command.
type hostResult struct {
	Stages map[string]float64 // milliseconds
	Peak   float64            // resident memory in MB; 0 if unknown
}

// measure prints the times of "train" and "encode" on 1, 2 and all cores.
func (b *hostBench) measure(format string, repeats int) error {
	all := runtime.NumCPU()
	cores := slices.Compact(slices.Sorted(slices.Values([]int{1, min(2, all), all})))
	for range repeats {
		for _, n := range cores {
			for _, command := range []string{"train", "encode"} {
				name := fmt.Sprintf("Host/command=%s/format=%s/cores=%d", command, format, n)
				r, err := b.spawn(command, format, n)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				printResult(b.out, name, r)
			}
		}
	}
	return nil
}

// spawn runs a command in a process with the given number of cores. "encode" uses the model that "train" wrote.
func (b *hostBench) spawn(command, format string, cores int) (r testing.BenchmarkResult, err error) {
	program, err := os.Executable()
	if err != nil {
		return r, err
	}
	written := filepath.Join(b.dir, command+".model")
	if err := os.RemoveAll(written); err != nil {
		return r, err
	}
	argv := []string{program, "host", "-run", command, "-dir", b.dir, "-rows", strconv.Itoa(b.rows), "-dim", strconv.Itoa(b.dim),
		"-atoms", strconv.Itoa(b.atoms), "-nonzeros", strconv.Itoa(b.nonzeros), b.file(format), written}
	if taskset, err := exec.LookPath("taskset"); err == nil { // restricts system calls to these cores, too
		argv = append([]string{taskset, "-c", fmt.Sprintf("0-%d", cores-1)}, argv...)
	}
	var stdout bytes.Buffer
	c := exec.Command(argv[0], argv[1:]...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(cores)), &stdout, os.Stderr
	start := time.Now()
	err = c.Run()
	r = testing.BenchmarkResult{N: 1, T: time.Since(start), Extra: make(map[string]float64)}
	var result hostResult
	if err = cmp.Or(err, json.Unmarshal(stdout.Bytes(), &result)); err != nil {
		return r, err
	}
	r.Extra["cpu-ms"], r.Extra["peak-MB"] = 1e3*(c.ProcessState.UserTime()+c.ProcessState.SystemTime()).Seconds(), result.Peak
	for stage, ms := range result.Stages {
		r.Extra[stage+"-ms"] = ms
	}
	return r, nil
}

// child runs one command and prints a hostResult.
func (b *hostBench) child() error {
	memory.SetLimit()
	d := &timeless{nonzeros: b.nonzeros, last: time.Now(), stages: make(map[string]float64)}
	ctx, paths, read := context.Background(), []string{b.path}, vectors.ReadOptions{}
	if b.path == b.file("npy") {
		read.WordList = b.wordList()
	}
	var err error
	if b.command == "train" {
		h := train.Best()
		h.Atoms, h.Nonzeros = b.atoms, b.nonzeros
		_, err = train.File(ctx, paths, h, d, b.written, train.FileOptions{Read: read, Ready: func(*vectors.Source, model.Training) { d.end("read") }})
	} else {
		var m *model.Model
		if m, err = model.OpenDictionary(filepath.Join(b.dir, "train.model")); err == nil {
			_, _, err = encode.File(ctx, m, paths, b.written, d, encode.Defaults(m.Info), encode.FileOptions{Read: read})
		}
	}
	if err != nil {
		return err
	}
	d.end("commit")
	status, _ := os.ReadFile("/proc/self/status") // only on Linux
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	fmt.Sscan(line, &kib)
	return json.NewEncoder(b.out).Encode(hostResult{d.stages, kib * 1024 / 1e6})
}

// timeless is a device without arithmetic. It does the host's part of the work of package kernels: it computes the step
// size, copies centred rows to slots, and copies packed codes from them. It records the times of stages.
type timeless struct {
	nonzeros int
	last     time.Time // end of the previous stage
	stages   map[string]float64
}

// end records that a stage ends now.
func (t *timeless) end(stage string) {
	now := time.Now()
	t.stages[stage] += 1e3 * now.Sub(t.last).Seconds()
	t.last = now
}

func (t *timeless) Trainer(backend.Problem) (backend.Trainer, error) {
	return nil, errors.ErrUnsupported
}

func (t *timeless) Learner(x []float32, d *model.Dictionary, _ float64, o encode.Options) (backend.Learner, error) {
	t.end("choose")
	e, err := t.open(d, o, 1)
	if err != nil {
		return nil, err
	}
	for rows := range slices.Chunk(x, encode.Block*d.Dim) { // the GPU stores all rows
		e.stage(rows, nil)
	}
	return timelessLearner{timelessEncoder: e}, nil
}

func (t *timeless) Encoder(d *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	t.end("learn") // for "train", the time of learning; for "encode", the time until now
	return t.open(d, o, 2)
}

func (t *timeless) open(d *model.Dictionary, o encode.Options, slots int) (*timelessEncoder, error) {
	_, err := backend.StepSize(d)
	packed := encode.Block * t.nonzeros
	e := &timelessEncoder{device: t, dictionary: d, options: o, index: make([]int32, packed), value: make([]float32, packed)}
	for range slots {
		e.slots = append(e.slots, make([]float32, encode.Block*d.Dim))
	}
	stride := d.Len() / t.nonzeros
	for n := range packed {
		row, j := n/t.nonzeros, n%t.nonzeros
		e.index[n], e.value[n] = int32(j*stride+row%stride), 1/float32(1+j)
	}
	return e, err
}

type timelessEncoder struct {
	device     *timeless
	dictionary *model.Dictionary
	options    encode.Options
	slots      [][]float32 // the first slot is used next
	index      []int32     // packed codes of encode.Block rows
	value      []float32
}

func (e *timelessEncoder) Device() string          { return "none" }
func (e *timelessEncoder) Options() encode.Options { return e.options }
func (e *timelessEncoder) Close() error            { return nil }

// stage copies rows minus the mean to the next slot, and sets squares to their squared norms unless it is nil.
func (e *timelessEncoder) stage(x []float32, squares []float64) {
	slot, dim := e.slots[0], e.dictionary.Dim
	parallel.Ranges(len(x)/dim, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y := slot[i*dim:][:dim]
			e.dictionary.Center(y, x[i*dim:][:dim])
			if squares != nil {
				squares[i] = float32s.Squares(y)
			}
		}
	})
	e.slots = append(e.slots[1:], slot)
}

// Start implements [encode.Encoder] for at most [encode.Block] rows.
func (e *timelessEncoder) Start(_ context.Context, x []float32, out *encode.Codes) (wait func() error) {
	rows, k := len(x)/e.dictionary.Dim, e.device.nonzeros
	out.Squares = slices.Grow(out.Squares[:0], rows)[:rows]
	e.stage(x, out.Squares)
	return func() error {
		out.Rows, out.Cols = rows, e.dictionary.Len()
		out.Ptr, out.Loss = slices.Grow(out.Ptr[:0], rows+1)[:rows+1], slices.Grow(out.Loss[:0], rows)[:rows]
		out.Index, out.Value = slices.Grow(out.Index[:0], rows*k)[:rows*k], slices.Grow(out.Value[:0], rows*k)[:rows*k]
		out.Ptr[0] = 0
		parallel.Ranges(rows, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out.Ptr[i+1], out.Loss[i] = int64((i+1)*k), 1
				copy(out.Index[i*k:][:k], e.index[i*k:])
				copy(out.Value[i*k:][:k], e.value[i*k:])
			}
		})
		e.device.end("encode")
		return nil
	}
}

// timelessLearner leaves the dictionary as it is.
type timelessLearner struct {
	backend.Learner // nil: it only supplies the methods for state, which nothing calls
	*timelessEncoder
}

func (l timelessLearner) Device() string { return "none" }
func (l timelessLearner) Close() error   { return nil }
func (l timelessLearner) AtomSquares() ([]float64, error) {
	return make([]float64, l.dictionary.Len()), nil
}
func (l timelessLearner) Dictionary() ([]float32, error) {
	return slices.Clone(l.dictionary.Atoms), nil
}

func (l timelessLearner) Learn(_ context.Context, batches []backend.Minibatch, _, _ float64, _ func(int)) (sums backend.Sums, err error) {
	for _, b := range batches {
		n := len(b.Rows)
		sums.RunningLoss += float64(n)
		sums.L1 += float64(n)
		sums.Nonzeros += int64(n * l.device.nonzeros)
		sums.Steps++
	}
	sums.Used = slices.Repeat([]bool{true}, l.dictionary.Len())
	return sums, nil
}
