package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"overcomplete/vectors"
)

// MemoryReport is what "bench memory" measures.
type MemoryReport struct {
	Machine    Machine     `json:"machine"`
	Dim        int         `json:"dim"`
	Atoms      int         `json:"atoms"`
	TrainWords int         `json:"train_words"` // that the dictionary is learned from
	Runs       []MemoryRun `json:"runs"`
}

// MemoryRun is a run of the program.
type MemoryRun struct {
	Command string  `json:"command"` // "train", with --train-words; or "encode", with the model that this made
	Words   int     `json:"words"`
	Bytes   int64   `json:"bytes"` // the most that it had resident
	Seconds float64 `json:"seconds"`
}

func benchMemory(args []string, stdout io.Writer) error {
	var r MemoryReport
	flags := flag.NewFlagSet("bench memory", flag.ContinueOnError)
	words := counts(flags, "words", []int{400000, 1000000, 2000000}, "of the files")
	dim := positive(flags, "dim", 300, "of vectors")
	atoms := positive(flags, "atoms", 3000, "of dictionaries")
	trainWords := positive(flags, "train-words", 10000, "to learn from")
	f, err := parseProgramFlags(flags, args)
	if err != nil {
		return err
	}
	r.Machine, r.Dim, r.Atoms, r.TrainWords = f.machine, *dim, *atoms, *trainWords
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := built(f.program, dir)
	if err != nil {
		return err
	}
	for _, n := range *words {
		if err := r.measure(path, dir, n); err != nil {
			return err
		}
	}
	return f.finish(&r, stdout)
}

// measure runs both commands on a file of so many generated vectors.
func (r *MemoryReport) measure(program, dir string, words int) error {
	x, model := filepath.Join(dir, "x.bin"), filepath.Join(dir, "model")
	if err := writeFile(x, func(w io.Writer) error { return writeBinary(w, words, r.Dim) }); err != nil {
		return err
	}
	for _, line := range [][]string{
		{"train", x, "-o", model, "--train-words", strconv.Itoa(r.TrainWords), "-k", strconv.Itoa(r.Atoms)},
		{"encode", model, x, "-o", filepath.Join(dir, "encoded"), "--encode-steps", "1"}, // more take longer, in the same memory
	} {
		cmd := exec.Command(program, append(line, "--device", "cpu", "--quiet", "--force")...)
		cmd.Stderr = os.Stderr
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %s: %w", program, strings.Join(line, " "), err)
		}
		m := MemoryRun{line[0], words, maxResident(cmd.ProcessState), time.Since(start).Seconds()}
		if m.Bytes == 0 {
			return errors.New("this system does not tell how much memory a program had")
		}
		r.Runs = append(r.Runs, m)
	}
	return nil
}

// writeBinary writes generated vectors as word2vec's binary form, which programs can read
// without holding all of it.
func writeBinary(w io.Writer, words, dim int) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%d %d\n", words, dim)
	const part = 10000
	for first := 0; first < words; first += part {
		writeRows(out, generateFrom(seed, first, min(part, words-first), dim))
	}
	return out.Flush()
}

// binaryOf writes vectors in that form.
func binaryOf(x *vectors.Dense) func(w io.Writer) error {
	return func(w io.Writer) error {
		out := bufio.NewWriter(w)
		fmt.Fprintf(out, "%d %d\n", x.Len(), x.Dim)
		writeRows(out, x)
		return out.Flush()
	}
}

// writeRows writes rows of word2vec's binary form; Flush returns its errors.
func writeRows(out *bufio.Writer, x *vectors.Dense) {
	var row []byte
	for i, word := range x.Words {
		row = append(append(row[:0], word...), ' ')
		for _, v := range x.Row(i) {
			row = binary.LittleEndian.AppendUint32(row, math.Float32bits(v))
		}
		out.Write(append(row, '\n'))
	}
}

// print writes the report as a table.
func (r *MemoryReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\nmost memory resident, generated vectors, %d → %d, learned from %d words\n\n", r.Machine, r.Dim, r.Atoms, r.TrainWords)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "words\tcommand\tMB\tseconds\t\n")
	for _, m := range r.Runs {
		fmt.Fprintf(w, "%d\t%s\t%.0f\t%.0f\t\n", m.Words, m.Command, float64(m.Bytes)/1e6, m.Seconds)
	}
	return w.Flush()
}
