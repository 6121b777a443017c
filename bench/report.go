package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"overcomplete/internal/table"
)

func init() {
	commands["table"] = command{"print the results of \"bench gpu\", BENCH.json, and of a peer, TORCH.json", benchTable}
}

func benchTable(_ *flag.FlagSet, args []string, out io.Writer) error {
	if len(args) != 1 && len(args) != 2 {
		return usageError{errors.New("want BENCH.json, or BENCH.json and TORCH.json")}
	}
	r, err := readReport(args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		peer, err := readReport(args[1])
		if err != nil {
			return err
		}
		r.Trainings, r.Products = slices.Concat(r.Trainings, peer.Trainings), peer.Products
	}
	return r.print(out)
}

// Report is what "bench gpu" measures. Peers write one with Trainings and Products alone.
type Report struct {
	Device     string            `json:"device"`
	Capability string            `json:"compute_capability,omitempty"`
	Driver     string            `json:"driver,omitempty"` // the newest version of CUDA that it supports
	Processors int               `json:"processors,omitempty"`
	Settings   map[string]string `json:"settings,omitempty"` // the flags it was measured with
	Peaks      Peaks             `json:"peaks"`
	Trainings  []Training        `json:"trainings"`
	Encodings  []Encoding        `json:"encodings"`
	Agreement  []Agreement       `json:"agreement"` // CPU against GPU
	Products   []Product         `json:"products"`
	Profiles   []Profile         `json:"profiles"`
	Streaming  *Streaming        `json:"streaming"`
	Scaling    []Training        `json:"scaling"` // over the vocabulary
}

// Peaks are the device's own speed: see kernels.Peaks. kernels/ptx/model.py reads them.
type Peaks struct {
	Multiprocessors int     `json:"multiprocessors"`
	Clock           float64 `json:"clock_hertz"`
	L2Size          float64 `json:"l2_size_bytes"`
	CopyBytes       float64 `json:"copy_bytes_per_second"`
	L2Bytes         float64 `json:"l2_bytes_per_second"`
	TF32Flops       float64 `json:"tf32_flops_per_second"`
	FP16Flops       float64 `json:"fp16_flops_per_second"`
	Launch          float64 `json:"launch_seconds"`
	GraphLaunch     float64 `json:"graph_launch_seconds"`
}

// ours is the program that peers are compared with.
const ours = "overcomplete"

// Training is a training and what it gave. Seconds are wall-clock time of its
// passes, from their call until the device is done with them; reading, copying
// and drawing what they start from are not in it, nor is the first training of
// each kind, which warms the device up.
type Training struct {
	Program      string    `json:"program"` // "overcomplete", or a peer
	Recipe       string    `json:"recipe"`
	Method       string    `json:"method"`
	Precision    string    `json:"precision"`
	Words        int       `json:"words"`
	Dim          int       `json:"dim"`
	Atoms        int       `json:"atoms"`
	Epochs       int       `json:"epochs"`
	Seconds      float64   `json:"seconds"`       // of all epochs; the median of Repeats
	EpochSeconds float64   `json:"epoch_seconds"` // the median of an epoch's
	Repeats      []float64 `json:"repeats"`       // seconds of all epochs, of each time that it ran

	// What Seconds consist of, where epochs have two passes.
	DictionarySeconds float64 `json:"dictionary_seconds,omitempty"`
	CodeSeconds       float64 `json:"code_seconds,omitempty"`

	Error     float64 `json:"error"`
	Objective float64 `json:"objective"`
	Sparsity  float64 `json:"sparsity"`
	Problem   string  `json:"problem,omitempty"` // why it did not run to its end
}

// Agreement compares a training on the GPU with the same on the CPU.
type Agreement struct {
	CPU       Training `json:"cpu"`
	GPU       Training `json:"gpu"`
	Objective float64  `json:"objective_difference"` // of the GPU's, relative to the CPU's
	Sparsity  float64  `json:"sparsity_difference"`  // absolute
	SameBits  bool     `json:"same_bits"`            // of two runs on the GPU
	Agree     bool     `json:"agree"`
}

// Streaming compares a training whose words are on the GPU with the same when they go through
// it in parts.
type Streaming struct {
	Resident Training `json:"resident"`
	Streamed Training `json:"streamed"`
	Memory   int64    `json:"memory_bytes"` // of the GPU, to stream with
	SameBits bool     `json:"same_bits"`
}

// Product is a product of matrices that training consists of, rows × depth by depth × columns.
type Product struct {
	Program   string  `json:"program"`
	Name      string  `json:"name"`
	Precision string  `json:"precision"`
	Rows      int     `json:"rows"`
	Columns   int     `json:"columns"`
	Depth     int     `json:"depth"`
	Seconds   float64 `json:"seconds"`
}

// Profile is a training of which every launch was timed.
type Profile struct {
	Training Training `json:"training"` // slower than without
	Kernels  []Kernel `json:"kernels"`
}

// Kernel is what all launches of a kernel took together and moved at least, and
// what that makes of the device's own speed.
type Kernel struct {
	Step         string  `json:"step,omitempty"` // of a training's program
	Name         string  `json:"name"`
	Launches     int     `json:"launches"`
	Seconds      float64 `json:"seconds"`
	Bytes        float64 `json:"bytes"`
	Flops        float64 `json:"flops"`
	FloorSeconds float64 `json:"floor_seconds"` // Bytes or Flops at Peaks, whichever takes longer

	Registers int     `json:"registers"`   // of a thread
	Local     int     `json:"local_bytes"` // of a thread: what registers have no room for
	Occupancy float64 `json:"occupancy"`   // share of a multiprocessor's threads that can run at once
}

// Encoding is codes for words in memory with a dictionary that was learned from
// some of them. Seconds are wall-clock time, copies to the GPU and back in it;
// preparing the encoder is not.
type Encoding struct {
	Method         string    `json:"method"`
	Precision      string    `json:"precision"`
	Words          int       `json:"words"`
	Dim            int       `json:"dim"`
	Atoms          int       `json:"atoms"`
	Steps          int       `json:"steps"`   // of FISTA, before those on the support
	Most           int       `json:"most"`    // nonzeros that a code keeps
	Seconds        float64   `json:"seconds"` // the median of Repeats
	Repeats        []float64 `json:"repeats"`
	WordsPerSecond float64   `json:"words_per_second"`
	Kernels        []Kernel  `json:"kernels"` // of once more, with every launch timed

	// Of fewer words, on the GPU and on the CPU.
	Error             float64 `json:"error"`
	CPUError          float64 `json:"cpu_error"`
	Objective         float64 `json:"objective"`
	CPUObjective      float64 `json:"cpu_objective"`
	CPUWordsPerSecond float64 `json:"cpu_words_per_second"`
	Shared            float64 `json:"shared_nonzeros"` // of the CPU's, the share that is the GPU's too
	SameBits          bool    `json:"same_bits"`       // of two runs on the GPU
	Agree             bool    `json:"agree"`

	Problem string `json:"problem,omitempty"` // why it was not measured
}

func readReport(path string) (r Report, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// print writes the report as tables.
func (r *Report) print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s, compute capability %s, driver for CUDA %s; %d processors\n", r.Device, r.Capability, r.Driver, r.Processors)
	if p := r.Peaks; p.CopyBytes > 0 {
		fmt.Fprintf(out, "measured: %.0f GB/s copied within its memory, %.0f GB/s read from L2; %.1f TFLOP/s of mma.sync with TF32, %.1f with halves; "+
			"%.2f µs from launch to launch, %.2f in a graph\n", p.CopyBytes/1e9, p.L2Bytes/1e9, p.TF32Flops/1e12, p.FP16Flops/1e12, 1e6*p.Launch, 1e6*p.GraphLaunch)
	}
	if len(r.Agreement) > 0 {
		c := r.Agreement[0].CPU
		section(out, r.Agreement, fmt.Sprintf("GPU against CPU, %d × %d → %d, %d epochs", c.Words, c.Dim, c.Atoms, c.Epochs),
			"method,precision,CPU s,GPU s,CPU objective,GPU objective,CPU sparsity %,GPU sparsity %,same bits,agree", func(a Agreement) []any {
				return []any{a.GPU.Method, a.GPU.Precision, a.CPU.Seconds, a.GPU.Seconds, a.CPU.Objective, a.GPU.Objective,
					percent(a.CPU.Sparsity), percent(a.GPU.Sparsity), a.SameBits, a.Agree}
			})
	}
	if len(r.Trainings) > 0 {
		t := r.Trainings[0]
		section(out, r.Trainings, fmt.Sprintf("Training, %d → %d", t.Dim, t.Atoms),
			"program,recipe,method,precision,words,epochs,seconds,ms/epoch,dictionary s,codes s,error,objective,sparsity %,times ours", func(t Training) []any {
				return orProblem(t.Problem, []any{t.Program, t.Recipe, t.Method, t.Precision, t.Words, t.Epochs}, t.Seconds, 1000*t.EpochSeconds,
					t.DictionarySeconds, t.CodeSeconds, t.Error, t.Objective, percent(t.Sparsity), r.ratio(t))
			})
	}
	for _, p := range r.Profiles {
		t := p.Training
		r.printKernels(out, fmt.Sprintf("%s, method %s, %s, %d epochs in %.3g s", t.Recipe, t.Method, t.Precision, t.Epochs, t.Seconds), p.Kernels)
	}
	if len(r.Encodings) > 0 {
		e := r.Encodings[0]
		section(out, r.Encodings, fmt.Sprintf("Encoding, %d × %d → %d, %d steps, at most %d nonzeros a word", e.Words, e.Dim, e.Atoms, e.Steps, e.Most),
			"method,precision,seconds,words/s,CPU words/s,error,CPU error,objective,CPU objective,shared %,same bits,agree", func(e Encoding) []any {
				return orProblem(e.Problem, []any{e.Method, e.Precision}, e.Seconds, e.WordsPerSecond, e.CPUWordsPerSecond,
					e.Error, e.CPUError, e.Objective, e.CPUObjective, percent(e.Shared), e.SameBits, e.Agree)
			})
	}
	for _, e := range r.Encodings {
		r.printKernels(out, fmt.Sprintf("encoding, method %s, %s,", e.Method, e.Precision), e.Kernels)
	}
	section(out, r.Products, "Products of these shapes in PyTorch", "program,product,precision,rows,columns,depth,µs,TFLOP/s,of mma %", func(p Product) []any {
		flops := 2 * float64(p.Rows) * float64(p.Columns) * float64(p.Depth) / p.Seconds
		return []any{p.Program, p.Name, p.Precision, p.Rows, p.Columns, p.Depth, 1e6 * p.Seconds, flops / 1e12, percent(flops / r.Peaks.TF32Flops)}
	})
	if s := r.Streaming; s != nil {
		type run struct {
			where string
			Training
		}
		runs := []run{{"on the GPU", s.Resident}}
		if s.Streamed.Program != "" { // it is not tried where the other failed
			runs = append(runs, run{"streamed", s.Streamed})
		}
		section(out, runs, fmt.Sprintf("Streaming, %d × %d → %d with %.3g GB of the GPU's memory", s.Resident.Words, s.Resident.Dim, s.Resident.Atoms, float64(s.Memory)/1e9),
			"words,precision,ms/epoch,same bits", func(t run) []any {
				return orProblem(t.Problem, []any{t.where, t.Precision}, 1000*t.EpochSeconds, s.SameBits)
			})
	}
	section(out, r.Scaling, "Vocabulary", "words,precision,ms/epoch,ns/word,sparsity %", func(t Training) []any {
		return orProblem(t.Problem, []any{t.Words, t.Precision}, 1000*t.EpochSeconds, 1e9*t.EpochSeconds/float64(t.Words), percent(t.Sparsity))
	})
	return err
}

// orProblem is a row of a table: what was measured, or why that is not there.
func orProblem(problem string, what []any, measured ...any) []any {
	if problem != "" {
		return append(what, problem)
	}
	return append(what, measured...)
}

func (r *Report) printKernels(out io.Writer, of string, kernels []Kernel) {
	section(out, kernels, "Kernels, "+of+" when each launch is timed",
		"kernel,step,launches,ms,GB/s,of copy %,TFLOP/s,of mma %,of floor %,registers,local B,occupancy %", func(k Kernel) []any {
			bytes, flops := k.Bytes/k.Seconds, k.Flops/k.Seconds
			return []any{k.Name, k.Step, k.Launches, 1000 * k.Seconds, bytes / 1e9, percent(bytes / r.Peaks.CopyBytes), flops / 1e12,
				percent(flops / r.Peaks.TF32Flops), percent(k.FloorSeconds / k.Seconds), k.Registers, k.Local, percent(k.Occupancy)}
		})
}

// ratio is how many times as long as ours a peer's training takes.
func (r *Report) ratio(peer Training) string {
	if peer.Program == ours {
		return ""
	}
	for _, t := range r.Trainings {
		same := t.Recipe == peer.Recipe && t.Method == peer.Method && t.Precision == peer.Precision && t.Words == peer.Words && t.Dim == peer.Dim &&
			t.Atoms == peer.Atoms && t.Epochs == peer.Epochs
		if t.Program == ours && same && t.Seconds > 0 {
			return fmt.Sprintf("%.2f", peer.Seconds/t.Seconds)
		}
	}
	return ""
}

func percent(share float64) string { return fmt.Sprintf("%.2f", 100*share) }

// section prints a table of all items, if there are any, below a title. columns are separated by
// commas; numbers that are not whole are printed with four digits.
func section[T any](out io.Writer, all []T, title, columns string, row func(T) []any) {
	if len(all) == 0 {
		return
	}
	rows := table.Table{strings.Split(columns, ",")}
	for _, x := range all {
		var cells []string
		for _, c := range row(x) {
			if f, ok := c.(float64); ok {
				c = fmt.Sprintf("%.4g", f)
			}
			cells = append(cells, fmt.Sprint(c))
		}
		rows = append(rows, cells)
	}
	fmt.Fprintf(out, "\n%s\n\n%s", title, rows.Text("lr", nil))
}
