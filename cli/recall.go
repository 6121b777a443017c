package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/printing"
	"overcomplete/lab/recall"
	"overcomplete/model"
	"overcomplete/vectors"
)

type recallReport struct {
	Queries int           `json:"queries"`
	New     int           `json:"new"` // queries that aren't rows of the index
	K       int           `json:"k"`
	Rows    int           `json:"rows"`
	Bytes   int64         `json:"bytes"` // size of the dense vectors
	Models  []recallModel `json:"models"`
}

type recallModel struct {
	Model     string   `json:"model"`
	Nonzeros  float64  `json:"nonzeros"`            // mean number per row
	Explained *float64 `json:"explained,omitempty"` // explained variance, a share
	Bytes     int64    `json:"bytes"`               // size of the index
	recall.Recalls
}

type recallFlags struct {
	vectors.ReadOptions
	queries            string
	number, k, weights int
	seed               uint64
}

func newRecall() *cobra.Command {
	var f recallFlags
	cmd := &cobra.Command{
		Use:   "recall VECTORS MODEL...",
		Short: "Measure recall of nearest neighbours by codes",
		Long: `Recall searches an index of the codes of VECTORS, the dense vectors that the models
encode, for the dense vectors of --queries, or for rows of VECTORS. It prints recall@k, the
share of the k rows with the largest cosines that a search finds, with its standard error:

  codes     by the cosine of codes
  products  by w·a / ‖μ + aD‖, where w = Dx are the products of the dense query with all
            atoms. That is close to the cosine of x and μ + aD. Half of the weights are
            negative, which some search engines refuse
  largest   the same with the largest positive weights alone, as "overcomplete query"
            prints them; with --method A, with the largest of both signs
  reranked  products, among the 100 rows (or k, if more) that largest finds
  dense     the cosine of dense vectors, among the same rows

An index has 8 bytes per nonzero, for its row and value. Rows of VECTORS that the model was
trained on are found more often than new ones, by up to 0.04: give --queries. A warning says
if the model was trained on the file of the queries. Queries that equal a row of VECTORS
aren't counted as new.

A model must encode the rows of VECTORS, in their order: give --max-rows and other
flags of the input as for encoding.`,
		Example: `  overcomplete recall sentences.parquet model --queries queries.parquet
  overcomplete recall glove.txt model wider --max-rows 50000 -k 20 --json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.measure(cmd, args[0], args[1:])
			if err != nil {
				return err
			}
			return show(cmd, r, r.print)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.queries, "queries", "", "`file` of dense vectors to search for (default rows of VECTORS)")
	flags.Var(count(&f.number, 1000), "number", "most queries to draw")
	flags.VarP(count(&f.k, 10), "neighbours", "k", "nearest rows to find")
	flags.Var(count(&f.weights, model.QueryWeights), "weights", "most weights of a query for largest")
	flags.Var(seedOf(&f.seed, 1), "seed", "seed of the choice of queries")
	registerInput(cmd, &f.ReadOptions)
	addJSON(cmd, "print the same as JSON")
	return cmd
}

func (f *recallFlags) measure(cmd *cobra.Command, path string, names []string) (r recallReport, err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	x, source, err := readVectors(cmd, path, f.ReadOptions)
	if err != nil {
		return r, err
	}
	about := func(path string, err error) error {
		if ctx.Err() != nil {
			return err
		}
		return usagef("%s: %w", path, err)
	}
	var queries *vectors.Dense
	from, searched := path, source
	if f.queries != "" {
		from = f.queries
		read := f.ReadOptions
		read.WordList, read.MaxRows = "", 0
		if queries, searched, err = readVectors(cmd, from, read); err != nil {
			return r, err
		}
	}
	load := func(name string) (*model.Model, error) {
		m, err := loadModel(cmd, name)
		if err != nil {
			return nil, err
		}
		if err := recall.Check(m, x); err != nil {
			return nil, about(name, err)
		}
		return m, nil
	}
	for _, name := range names { // check the models before the long search for neighbours; memory holds one at a time
		if _, err := load(name); err != nil {
			return r, err
		}
	}
	q, err := recall.NewQueries(ctx, x, queries, f.number, f.k, f.seed)
	if err != nil {
		return r, about(from, err)
	}
	r = recallReport{Queries: len(q.Rows), New: q.CountNew(), K: f.k, Rows: x.Len(), Bytes: 4 * int64(len(x.Data))}
	for _, name := range names {
		m, err := load(name)
		if err != nil {
			return r, err
		}
		var encoded *vectors.Sparse
		if q.New() {
			e, err := encode.Model(ctx, m, queries, cpu.Device{}, encode.Defaults(m.Info))
			if err != nil {
				return r, about(name, err)
			}
			encoded = e.Codes
		}
		found, err := q.Measure(ctx, m, encoded, f.weights)
		if err != nil {
			return r, about(name, err)
		}
		if e := m.Info.Encoding; e != nil && e.Input.SHA256 != source.SHA256 {
			warn(stderr, "%s encodes another file, %s, not %s", name, e.Input.Name, path)
		}
		if m.Info.Training.Input.SHA256 == searched.SHA256 {
			warn(stderr, "%s was trained on queries of %s, which are found more often than new ones", name, from)
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
	kind := "rows of the index"
	switch r.New {
	case 0:
	case r.Queries:
		kind = "new"
	default:
		kind = fmt.Sprintf("%d of them new", r.New)
	}
	fmt.Fprintf(b, "recall@%d of %d queries, %s, over %d rows; dense vectors: %s\n", r.K, r.Queries, kind, r.Rows, megabytes(r.Bytes))
	rows := printing.Table{{"model", "nonzeros", "explained", "index", "codes", "products", "largest", "reranked", "dense"}}
	for _, m := range r.Models {
		explained := ""
		if m.Explained != nil {
			explained = fmt.Sprintf("%.1f %%", 100**m.Explained)
		}
		row := []string{m.Model, fmt.Sprintf("%.1f", m.Nonzeros), explained, megabytes(m.Bytes)}
		for _, s := range []recall.Recall{m.Codes, m.Products, m.Largest, m.Reranked, m.Dense} {
			row = append(row, fmt.Sprintf("%.3f ±%.3f", s.Recall, s.Stderr))
		}
		rows = append(rows, row)
	}
	b.WriteString(rows.Text("lr"))
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
