package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/lab/recall"
	"overcomplete/internal/table"
	"overcomplete/vectors"
)

// recallReport is the output of recall.
type recallReport struct {
	Queries int           `json:"queries"`
	K       int           `json:"k"`
	Rows    int           `json:"rows"`
	Dense   denseSearch   `json:"dense"`
	Models  []recallModel `json:"models"`
}

// A denseSearch is the exact search with dense vectors.
type denseSearch struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"` // per query
}

type recallModel struct {
	Model     string   `json:"model"`
	Nonzeros  float64  `json:"nonzeros"`            // per row, on average
	Explained *float64 `json:"explained,omitempty"` // explained variance, a share
	Bytes     int64    `json:"bytes"`               // of the index
	recall.Recalls
}

func newRecall() *cobra.Command {
	var f inputFlags
	var queries, k int
	var seed uint64
	cmd := &cobra.Command{
		Use:   "recall VECTORS MODEL...",
		Short: "Measure recall of nearest neighbours by codes",
		Long: `Recall draws rows of VECTORS, the dense vectors that the models encode, as queries. It
prints recall@k, the share of the k rows with the largest cosines that a search by codes
finds, with its standard error, and the time per query on all processors:

  codes      by the cosine of codes, of rows that share dimensions with the query
  products   by w·a / ‖μ + aD‖, where w = Dx are the products of the dense query with all
             atoms. That is close to the cosine of x and μ + aD. Half of the weights are
             negative, which some search engines refuse
  reranked   by dot products among the 100 rows (or k, if more) that are nearest by codes

An index has 8 bytes per nonzero, for its row and value. For search engines, export codes
with --normalize codes for the first search and --normalize vectors for the second.

A model must encode the rows of VECTORS, in their order: give --max-words and other
flags of the input as for encoding.`,
		Example: `  overcomplete recall sentences.parquet model
  overcomplete recall glove.txt model wider --max-words 50000 -k 20 --json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := measureRecall(cmd, f.ReadOptions, args[0], args[1:], queries, k, seed)
			if err != nil {
				return err
			}
			return show(cmd, r, r.print)
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&k, "neighbours", "k", 10, "nearest rows to find")
	flags.IntVar(&queries, "queries", 1000, "number of queries")
	flags.Uint64Var(&seed, "seed", 1, "seed of the choice of queries")
	f.registerInput(cmd)
	addJSON(cmd, "print the same as JSON")
	return cmd
}

func measureRecall(cmd *cobra.Command, read vectors.ReadOptions, path string, models []string, queries, k int, seed uint64) (r recallReport, err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	x, source, err := readVectors(cmd, path, read)
	if err != nil {
		return r, err
	}
	about := func(path string, err error) error {
		if ctx.Err() != nil {
			return err
		}
		return usagef("%s: %w", path, err)
	}
	q, err := recall.NewQueries(ctx, x, queries, k, seed)
	if err != nil {
		return r, about(path, err)
	}
	r = recallReport{Queries: len(q.Rows), K: k, Rows: x.Len(), Dense: denseSearch{4 * int64(len(x.Data)), q.Seconds}}
	for _, name := range models {
		m, err := loadModel(cmd, name)
		if err != nil {
			return r, err
		}
		found, err := q.Measure(ctx, m)
		if err != nil {
			return r, about(name, err)
		}
		if e := m.Info.Encoding; e != nil && e.Input.SHA256 != source.SHA256 {
			warn(stderr, "%s encodes another file, %s, not %s", name, e.Input.Name, path)
		}
		n := m.Codes.Nonzeros()
		row := recallModel{Model: name, Nonzeros: float64(n) / float64(m.Codes.Rows), Bytes: 8 * int64(n), Recalls: found}
		if share, known := m.Info.Encoding.Explained(); known && !math.IsInf(share, 0) {
			row.Explained = &share
		}
		r.Models = append(r.Models, row)
	}
	return r, nil
}

func (r recallReport) print(b *strings.Builder) {
	fmt.Fprintf(b, "recall@%d of %d queries over %d rows; dense vectors: %s per query, %s\n", r.K, r.Queries, r.Rows, milliseconds(r.Dense.Seconds), megabytes(r.Dense.Bytes))
	rows := table.Table{{"model", "nonzeros", "explained", "index", "codes", "", "products", "", "reranked", ""}}
	for _, m := range r.Models {
		explained := ""
		if m.Explained != nil {
			explained = fmt.Sprintf("%.1f %%", 100**m.Explained)
		}
		row := []string{m.Model, fmt.Sprintf("%.1f", m.Nonzeros), explained, megabytes(m.Bytes)}
		for _, s := range []recall.Recall{m.Codes, m.Products, m.Reranked} {
			row = append(row, fmt.Sprintf("%.3f ±%.3f", s.Recall, s.Stderr), milliseconds(s.Seconds))
		}
		rows = append(rows, row)
	}
	b.WriteString(rows.Text("lr"))
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.2f ms", 1000*seconds) }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
