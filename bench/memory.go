package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"

	"overcomplete/vectors"
)

// MemoryReport is what "bench memory" measures.
type MemoryReport struct {
	common
	Dim        int         `json:"dim"`
	Atoms      int         `json:"atoms"`
	TrainWords int         `json:"train_words"` // that the dictionary is learned from
	Runs       []MemoryRun `json:"runs"`

	words []int // of the files
}

// MemoryRun is a run of the program.
type MemoryRun struct {
	Command string  `json:"command"` // "train", with --train-words; or "encode", with the model that this made
	Words   int     `json:"words"`
	Bytes   int64   `json:"bytes"` // the most that it had resident
	Seconds float64 `json:"seconds"`
}

func (r *MemoryReport) declare(flags *flag.FlagSet) {
	counts(flags, &r.words, "words", []int{400000, 1000000, 2000000}, "of the files")
	positive(flags, &r.Dim, "dim", 300, "of vectors")
	positive(flags, &r.Atoms, "atoms", 3000, "of dictionaries")
	positive(flags, &r.TrainWords, "train-words", 10000, "to learn from")
	r.declareProgram(flags)
}

// run runs both commands on files of generated vectors.
func (r *MemoryReport) run() error {
	if err := r.build(); err != nil {
		return err
	}
	x, model := r.file("x.bin"), r.file("model")
	generated := func(first, end int) *vectors.Dense { return generateFrom(seed, first, end-first, r.Dim) }
	for _, words := range r.words {
		if err := writeBinary(x, words, r.Dim, generated); err != nil {
			return err
		}
		for _, line := range [][]string{
			{"train", x, "-o", model, "--train-words", strconv.Itoa(r.TrainWords), "-k", strconv.Itoa(r.Atoms)},
			{"encode", model, x, "-o", r.file("encoded"), "--encode-steps", "1"}, // more take longer, in the same memory
		} {
			seconds, resident, err := r.overcomplete(nil, append(line, "--device", "cpu", "--force")...)
			if err != nil {
				return err
			}
			if resident == 0 {
				return errors.New("this system does not tell how much memory a program had")
			}
			r.Runs = append(r.Runs, MemoryRun{line[0], words, resident, seconds})
		}
	}
	return nil
}

// writeBinary writes vectors as word2vec's binary form, which programs can read without
// holding all of it. It asks for a slice at a time.
func writeBinary(path string, words, dim int, slice func(first, end int) *vectors.Dense) error {
	return writeFile(path, func(w io.Writer) error {
		out := bufio.NewWriter(w) // whose Flush returns all errors
		fmt.Fprintf(out, "%d %d\n", words, dim)
		const part = 10000
		for first := 0; first < words; first += part {
			x := slice(first, min(first+part, words))
			for i, word := range x.Words {
				row := append([]byte(word), ' ')
				for _, v := range x.Row(i) {
					row = binary.LittleEndian.AppendUint32(row, math.Float32bits(v))
				}
				out.Write(append(row, '\n'))
			}
		}
		return out.Flush()
	})
}

// print writes the report as a table.
func (r *MemoryReport) print(out io.Writer) error {
	_, err := fmt.Fprintln(out, r.Machine)
	section(out, r.Runs, fmt.Sprintf("most memory resident, generated vectors, %d → %d, learned from %d words", r.Dim, r.Atoms, r.TrainWords),
		"words,command,MB,seconds", func(m MemoryRun) []any {
			return []any{m.Words, m.Command, fmt.Sprintf("%.0f", float64(m.Bytes)/1e6), fmt.Sprintf("%.0f", m.Seconds)}
		})
	return err
}
