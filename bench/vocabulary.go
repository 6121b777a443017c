package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"overcomplete/train"
	"overcomplete/vectors"
)

// VocabularyReport is what "bench vocabulary" measures: what a whole vocabulary is good for, as
// it is and as sparse vectors.
type VocabularyReport struct {
	Machine Machine         `json:"machine"`
	Vectors string          `json:"vectors"`
	Words   int             `json:"words"`
	Dim     int             `json:"dim"`
	Rows    []VocabularyRow `json:"rows"`
}

// VocabularyRow is of dense vectors, which have scores alone, or of a training.
type VocabularyRow struct {
	Name       string  `json:"name"`
	Similarity float64 `json:"ws_353"`
	Average    float64 `json:"average"` // of the other tasks
	Error      float64 `json:"error,omitempty"`
	Zeros      float64 `json:"zeros,omitempty"` // share
	Seconds    float64 `json:"seconds,omitempty"`
	Bytes      int64   `json:"bytes,omitempty"` // the most that the program had resident
}

func benchVocabulary(args []string, stdout io.Writer) error {
	var r VocabularyReport
	flags := flag.NewFlagSet("bench vocabulary", flag.ContinueOnError)
	flags.StringVar(&r.Vectors, "vectors", "build/vectors/glove.6B.100d.txt", "`file` of a whole vocabulary, as \"make vectors\" has it")
	data := flags.String("data", "", "`directory` of evaluation data, as eval takes it")
	f, err := parseProgramFlags(flags, args)
	if err != nil {
		return err
	}
	if *data == "" {
		return usageError{errors.New("--data is missing: what eval takes")}
	}
	r.Machine = f.machine
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := built(f.program, dir)
	if err != nil {
		return err
	}
	centred := filepath.Join(dir, "centred.bin")
	for _, v := range []struct {
		name, dense string
		flags       []string
	}{
		{"X", r.Vectors, nil},
		{"default", "", []string{}},
		{"all words teach", "", []string{"--train-words", "all"}},
		{"paper", "", []string{"--recipe", "paper"}},
		{"X, centred", centred, nil},
	} {
		row := VocabularyRow{Name: v.name}
		measured := v.dense
		if measured == centred { // last: on Linux a process is said to have had the memory of the one that started it
			if err := r.center(centred); err != nil {
				return err
			}
		}
		if measured == "" {
			measured = filepath.Join(dir, "model")
			if err := row.train(program, append([]string{"train", r.Vectors, "-o", measured, "--force", "--device", "cpu", "--quiet", "--json"}, v.flags...)); err != nil {
				return err
			}
		}
		if err := row.evaluate(program, measured, *data); err != nil {
			return err
		}
		r.Rows = append(r.Rows, row)
	}
	return f.finish(&r, stdout)
}

// center writes the vectors less the mean of those that the default learns from.
func (r *VocabularyReport) center(path string) error {
	x, _, err := vectors.Read(context.Background(), r.Vectors, vectors.ReadOptions{})
	if err != nil {
		return usageError{err}
	}
	r.Words, r.Dim = x.Len(), x.Dim
	mean := train.Frequent(x, train.DefaultAtoms(train.Best(), x.Len(), x.Dim)).Mean()
	for i := range x.Data {
		x.Data[i] -= mean[i%x.Dim]
	}
	return writeFile(path, binaryOf(x))
}

// output runs the program, and reads the JSON that it prints.
func output(cmd *exec.Cmd, result any) error {
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}

func (r *VocabularyRow) train(program string, args []string) error {
	var said struct {
		Encoding struct{ Error, Sparsity float64 }
	}
	cmd := exec.Command(program, args...)
	start := time.Now()
	if err := output(cmd, &said); err != nil {
		return err
	}
	r.Seconds, r.Bytes = time.Since(start).Seconds(), maxResident(cmd.ProcessState)
	r.Error, r.Zeros = said.Encoding.Error, said.Encoding.Sparsity
	return nil
}

func (r *VocabularyRow) evaluate(program, path, data string) error {
	var said struct {
		Rows []struct {
			Tasks   map[string]struct{ Score float64 }
			Average struct{ Score float64 }
		}
	}
	if err := output(exec.Command(program, "eval", path, "--data", data, "--quiet", "--json"), &said); err != nil {
		return err
	}
	r.Similarity, r.Average = said.Rows[0].Tasks["WS-353"].Score, said.Rows[0].Average.Score
	return nil
}

// print writes the report as a table.
func (r *VocabularyReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s, %d × %d; scores as eval has them\n\n", r.Machine, filepath.Base(r.Vectors), r.Words, r.Dim)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "vectors\tWS-353\taverage\terror\tzeros, %\tseconds\tGB\t\n")
	for _, v := range r.Rows {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t", v.Name, v.Similarity, v.Average)
		if v.Seconds > 0 {
			fmt.Fprintf(w, "%.2f\t%.1f\t%.0f\t%.2f\t\n", v.Error, 100*v.Zeros, v.Seconds, float64(v.Bytes)/1e9)
		} else {
			fmt.Fprint(w, "\t\t\t\t\n")
		}
	}
	return w.Flush()
}
