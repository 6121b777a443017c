package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/lab/recall"
	"overcomplete/internal/table"
	"overcomplete/model"
	"overcomplete/vectors"
)

// recallReport is what recall prints.
type recallReport struct {
	Questions int           `json:"questions"`
	K         int           `json:"k"`
	Rows      int           `json:"rows"`
	Dense     denseSearch   `json:"dense"`
	Models    []recallModel `json:"models"`
}

// denseSearch is the search that the others are measured by.
type denseSearch struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"` // of a question
}

type recallModel struct {
	Model     string   `json:"model"`
	Nonzeros  float64  `json:"nonzeros"`            // of a row, on average
	Explained *float64 `json:"explained,omitempty"` // share of the variance
	Bytes     int64    `json:"bytes"`               // of the index
	recall.Found
}

func newRecall() *cobra.Command {
	var f inputFlags
	var questions, k int
	var seed uint64
	cmd := &cobra.Command{
		Use:   "recall VECTORS MODEL...",
		Short: "Measure how many nearest neighbours a search by codes finds",
		Long: `Recall draws rows of VECTORS, the dense vectors that the models have codes of, as
questions, finds the k rows with the largest cosines to each, and prints the share of
them that a search by codes finds: recall@k, with its standard error, and the time of
a question on all processors. There are three ways to ask:

  codes      the question is its own code; rows are nearest by the cosine of codes.
             Only rows that share dimensions with the question are looked at
  products   the question is the dense vector's products with all atoms, w = Dx; rows
             are nearest by w·a / ‖μ + aD‖. As w·a = x·(aD), that is close to the cosine
             of x and what the code stands for. All nonzeros are looked at
             Half of the weights are negative, which not every search engine takes
  refined    of the 100 nearest by codes (or k, if that is more), those that are nearest
             by products

The sizes are those of an index with 4 bytes for the row and 4 for the value of a nonzero,
and of the dense vectors. "overcomplete export" writes codes for search engines:
with --normalize codes for the first way, and --normalize vectors for the second.

The rows of a model are those of VECTORS, in their order: what chooses them, such as
--max-words, is to be as it was when they were encoded.`,
		Example: `  overcomplete recall sentences.parquet model
  overcomplete recall glove.txt model wider --max-words 50000 -k 20 --json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(1, count{"-k", k}, count{"--questions", questions}); err != nil {
				return err
			}
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			r, err := measureRecall(cmd, f.ReadOptions, args[0], args[1:], questions, k, seed)
			if err != nil {
				return err
			}
			return show(cmd, r, r.print)
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&k, "neighbours", "k", 10, "how many nearest rows are asked for")
	flags.IntVar(&questions, "questions", 1000, "rows to ask about")
	flags.Uint64Var(&seed, "seed", 1, "seed of their choice")
	f.registerInput(cmd)
	addJSON(cmd, "print the same as JSON")
	return cmd
}

func measureRecall(cmd *cobra.Command, read vectors.ReadOptions, path string, models []string, questions, k int, seed uint64) (r recallReport, err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	x, source, err := readVectors(cmd, path, read)
	if err != nil {
		return r, err
	}
	q, err := recall.Ask(ctx, x, questions, k, seed)
	if err != nil {
		return r, aboutRows(ctx.Err(), path, err)
	}
	r = recallReport{Questions: len(q.Rows), K: k, Rows: x.Len(), Dense: denseSearch{4 * int64(len(x.Data)), q.Seconds}}
	for _, name := range models {
		m, err := loadModel(cmd, name)
		if err != nil {
			return r, err
		}
		found, err := q.Find(ctx, m)
		if err != nil {
			return r, aboutRows(ctx.Err(), name, err)
		}
		if e := m.Info.Encoding; e != nil && e.Input.SHA256 != source.SHA256 {
			warn(stderr, "%s has the codes of another file, %s, than %s", name, e.Input.Name, path)
		}
		r.Models = append(r.Models, newRecallModel(name, m, found))
	}
	return r, nil
}

// aboutRows is an error of package recall about the rows of a file, unless ctx is done.
func aboutRows(done error, path string, err error) error {
	if done != nil {
		return done
	}
	return usagef("%s: %w", path, err)
}

func newRecallModel(name string, m *model.Model, found recall.Found) recallModel {
	n := m.Codes.Nonzeros()
	r := recallModel{Model: name, Nonzeros: float64(n) / float64(m.Codes.Rows), Bytes: 8 * int64(n), Found: found}
	if share, known := m.Info.Encoding.Explained(); known && !math.IsInf(share, 0) {
		r.Explained = &share
	}
	return r
}

func (r recallReport) print(b *strings.Builder) {
	fmt.Fprintf(b, "recall@%d of %d questions to %d rows; by dense vectors %s each, %s\n", r.K, r.Questions, r.Rows, milliseconds(r.Dense.Seconds), megabytes(r.Dense.Bytes))
	rows := table.Table{{"model", "nonzeros", "explained", "index", "codes", "", "products", "", "refined", ""}}
	for _, m := range r.Models {
		explained := ""
		if m.Explained != nil {
			explained = fmt.Sprintf("%.1f %%", 100**m.Explained)
		}
		row := []string{m.Model, fmt.Sprintf("%.1f", m.Nonzeros), explained, megabytes(m.Bytes)}
		for _, s := range []recall.Search{m.Codes, m.Products, m.Refined} {
			row = append(row, fmt.Sprintf("%.3f ±%.3f", s.Recall, s.StdErr), milliseconds(s.Seconds))
		}
		rows = append(rows, row)
	}
	b.WriteString(rows.Text("lr", nil))
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.2f ms", 1000*seconds) }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
