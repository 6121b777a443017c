package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"overcomplete/train"
	"overcomplete/vectors"
)

// VocabularyReport is what "bench vocabulary" measures: what a whole vocabulary is good for, as
// it is and as sparse vectors.
type VocabularyReport struct {
	common
	Vectors string          `json:"vectors"`
	Words   int             `json:"words"`
	Dim     int             `json:"dim"`
	Rows    []VocabularyRow `json:"rows"`

	data string // of eval
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

func (r *VocabularyReport) declare(flags *flag.FlagSet) {
	flags.StringVar(&r.Vectors, "vectors", "build/vectors/glove.6B.100d.txt", "`file` of a whole vocabulary, as \"make vectors\" has it")
	flags.StringVar(&r.data, "data", "", "`directory` of evaluation data, as eval takes it")
	r.declareProgram(flags)
}

func (r *VocabularyReport) run() error {
	if r.data == "" {
		return usageError{errors.New("--data is missing: what eval takes")}
	}
	if err := r.build(); err != nil {
		return err
	}
	model, centred := r.file("model"), r.file("centred.bin")
	for _, v := range []struct {
		name, file string
		flags      []string // of its training
	}{
		{"X", r.Vectors, nil},
		{"default", model, nil},
		{"all words teach", model, []string{"--train-words", "all"}},
		{"paper", model, []string{"--recipe", "paper"}},
		{"X, centred", centred, nil},
	} {
		row := VocabularyRow{Name: v.name}
		var err error
		switch v.file {
		case model:
			err = r.train(&row, model, v.flags)
		case centred: // last: on Linux a process is said to have had the memory of the one that started it
			err = r.center(centred)
		}
		if err != nil {
			return err
		}
		if err := r.evaluate(&row, v.file); err != nil {
			return err
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
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
	return writeBinary(path, x.Len(), x.Dim, x.Slice)
}

// train trains with these flags beside the usual ones.
func (r *VocabularyReport) train(row *VocabularyRow, model string, flags []string) (err error) {
	var said struct {
		Encoding struct{ Error, Sparsity float64 }
	}
	row.Seconds, row.Bytes, err = r.overcomplete(&said, append([]string{"train", r.Vectors, "-o", model, "--force", "--device", "cpu", "--json"}, flags...)...)
	if err != nil {
		return err
	}
	row.Error, row.Zeros = said.Encoding.Error, said.Encoding.Sparsity
	return nil
}

func (r *VocabularyReport) evaluate(row *VocabularyRow, path string) error {
	var said struct {
		Rows []struct {
			Tasks   map[string]struct{ Score float64 }
			Average struct{ Score float64 }
		}
	}
	if _, _, err := r.overcomplete(&said, "eval", path, "--data", r.data, "--json"); err != nil {
		return err
	}
	row.Similarity, row.Average = said.Rows[0].Tasks["WS-353"].Score, said.Rows[0].Average.Score
	return nil
}

// print writes the report as a table.
func (r *VocabularyReport) print(out io.Writer) error {
	_, err := fmt.Fprintln(out, r.Machine)
	section(out, r.Rows, fmt.Sprintf("%s, %d × %d; scores as eval has them", filepath.Base(r.Vectors), r.Words, r.Dim),
		"vectors,WS-353,average,error,% zeros,seconds,GB", func(v VocabularyRow) []any {
			row := []any{v.Name, fmt.Sprintf("%.1f", v.Similarity), fmt.Sprintf("%.1f", v.Average)}
			if v.Seconds > 0 {
				row = append(row, fmt.Sprintf("%.2f", v.Error), fmt.Sprintf("%.1f", 100*v.Zeros), fmt.Sprintf("%.0f", v.Seconds), fmt.Sprintf("%.2f", float64(v.Bytes)/1e9))
			}
			return row
		})
	return err
}
