package cli

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/parallel"
	"overcomplete/internal/printing"
	"overcomplete/model"
	"overcomplete/vectors"
)

func newQuery() *cobra.Command {
	var read vectors.ReadOptions
	var weights int
	var signed bool
	var more, less []string
	cmd := &cobra.Command{
		Use:   "query MODEL VECTORS",
		Short: "Print the weights of queries for a search engine",
		Long: `Query prints a line of JSON for each row of VECTORS, dense vectors of queries: id,
dimensions (K), indices and values, and the text with its columns if rows are texts.
Indices and values are the query weights for an index of "overcomplete export --normalize".
The score of a row is the sum of weight times value over dimensions. It is close to the
cosine of the query and the row, because the weights are products of the dense query with
the atoms, Dx/‖x‖. Queries need no codes. A query of zeros is near no row and malformed.

Only the largest weights are printed, and only positive ones, which every search engine
accepts. Rerank 100 results by all weights (--signed --weights K) or by dense vectors;
"overcomplete recall" measures both. Codes of method A have two signs, so weights for them
always have.

Lines are printed as VECTORS are read, or at the end if texts have columns.

--more and --less steer the query by dimensions: they add s, 0.5 or the number after =, to
the weight of a dimension, or subtract it. A weight that becomes negative is dropped,
unless --signed is given.`,
		Example: `  overcomplete query model queries.parquet > queries.jsonl
  overcomplete query model queries.npy --rows texts --signed --more 17 --less 203=0.8`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := input.Wait(cmd.Context(), func() (*model.Model, error) { return model.OpenDictionary(args[0]) })
			if err != nil {
				return err
			}
			steering, err := parseSteering(m.Dictionary.Len(), more, less)
			if err != nil {
				return err
			}
			added := map[int]float64{}
			for _, s := range steering {
				added[s.Dimension] = s.Weight
			}
			if m.Info.Training.Recipe.Base().Method == model.Signed {
				if err := refuseFlags(cmd, "is for models of method B, and "+args[0]+" has method A, whose weights always have both signs; drop it", "signed"); err != nil {
					return err
				}
				signed = true
			}
			ctx, dictionary := cmd.Context(), &m.Dictionary
			read.Distinct, read.Nonzero = true, true
			var source vectors.Source
			newQueries := func() *vectors.Sparse {
				return &vectors.Sparse{CSR: vectors.CSR{Cols: dictionary.Len(), Ptr: []int64{0}}}
			}
			queries := newQueries()
			for x, err := range vectors.Stream(ctx, args[1:], read, &source) {
				if err != nil {
					return err
				}
				if x.Dim != dictionary.Dim {
					return usagef("%s: wrong length of vectors (got %d, want %d, the length of the atoms of %s)", input.Name(args[1]), x.Dim, dictionary.Dim, args[0])
				}
				index, values := make([][]int32, x.Len()), make([][]float32, x.Len())
				err := parallel.Each(ctx, x.Len(), func(i int) {
					index[i], values[i] = dictionary.Query(x.Row(i), weights, signed, added)
				})
				if err != nil {
					return err
				}
				for i := range index {
					queries.AppendRow(index[i], values[i])
				}
				queries.IDs, queries.Texts = append(queries.IDs, x.IDs...), queries.Texts.Join(x.Texts)
				if x.Texts != nil && len(x.Texts.Columns) > 0 { // the JSON type of a column depends on all its values
					const perRow, perColumn, perWeight = 150, 16, 10 // bytes of memory to append or print queries
					bytes := (perRow+perColumn*len(x.Texts.Columns))*len(queries.IDs) + perWeight*len(queries.Index)
					if err := checkMemory(uint64(bytes), "the weights of %d texts with columns", len(queries.IDs)); err != nil {
						return err
					}
					continue
				}
				if err := writeQueries(cmd, queries); err != nil {
					return err
				}
				queries = newQueries()
			}
			warnOf(cmd.ErrOrStderr(), &source)
			return writeQueries(cmd, queries)
		},
	}
	flags := cmd.Flags()
	flags.Var(count(&weights, model.QueryWeights), "weights", "most weights of a query")
	flags.BoolVar(&signed, "signed", false, "print the weights with the largest absolute values, of both signs")
	addSteering(cmd, &more, &less)
	registerInput(cmd, &read)
	return cmd
}

func writeQueries(cmd *cobra.Command, queries *vectors.Sparse) error {
	return vectors.WriteJSONLines(&linesWriter{w: raw(cmd.OutOrStdout())}, queries)
}

// A linesWriter writes lines of JSON with escapes for characters that can't be printed.
type linesWriter struct {
	w    io.Writer
	rest []byte // an incomplete line
}

func (l *linesWriter) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	_, err := io.WriteString(l.w, printing.InJSON(string(l.rest[:end])))
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(p), err
}
