package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/lab/experiment"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// usualNonzeros are nonzeros of a word from hardly any to those of a dense vector.
var usualNonzeros = []int{5, 10, 30, 90, 150, 300}

// frontierFlags are what frontier was asked for.
type frontierFlags struct {
	experimentFlags
	reference string
	nonzeros  []int
	lambdas   []float64
	seeds     int
}

func newFrontier() *cobra.Command {
	var f frontierFlags
	cmd := &cobra.Command{
		Use:   "frontier VECTORS --data DIR --reference VECTORS -o OUT",
		Short: "Show error, scores and meaning of every recipe against the number of nonzeros",
		Long: `Frontier draws what sparse vectors are good for against how sparse they are: the
reconstruction error, the average score of the paper's tasks and WS-353, as eval has
them, the intruders found among the top words of dimensions and in quarters of their
values, as "intrusion auto" finds them, judged by --reference, and how much of the
dimensions another seed finds again, as match has it. It does so for

  best               --recipe best at each of --nonzeros, learned anew
  best, no anchor    the same with --anchor 0
  paper              --recipe paper with each of --lambda, of which its nonzeros come
  paper, words       the same with --init words --center
                     each by methods A and B, whose binary vectors the tasks are given
  random dictionary  the codes of best, of method A, but with atoms of random directions
  word rows          the same with frequent words, drawn at random, for atoms

The last two learned nothing: what they do as well is not due to learning. K is that of
train, and seeds are 1 to --seeds: of training, and of the controls' atoms.

It prints a table of means and standard deviations over seeds, and writes it as
OUT/frontier.md, every point as OUT/frontier.tsv, and the figure as OUT/frontier.png and
.svg: after each seed, and when interrupted, of what there is by then. Codes that are
all zero are left out.

What is finished is kept in OUT: a .json file of hyperparameters, metrics and scores
for each point, and the atoms of seed 1, but no models. The same command goes on where it was interrupted; with
more seeds, nonzeros or λ it adds what is not there. OUT of other vectors, settings or
evaluation data is refused.`,
		Example: `  overcomplete frontier sg.bin --data eval --reference glove.6B.50d.txt -o frontier
  overcomplete frontier sg.bin --data eval --reference glove.6B.50d.txt -o quick --seeds 1 --nonzeros 30,90 --lambda 0.5`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			m, err := f.run(cmd, args[0])
			if err != nil {
				return f.interruption(err)
			}
			return show(cmd, m.JSON(), func(b *strings.Builder) {
				fmt.Fprintf(b, "%s\n%s\nfigure: %s\n", m.Table().Text("lr", nil), m.Notes(), escape.Text(filepath.Join(f.output, "frontier.png")))
			})
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.reference, "reference", "", "`file` of other vectors of the same words, to judge word intrusion by")
	flags.IntSliceVar(&f.nonzeros, "nonzeros", nil, "nonzeros of a word, with the recipe best and controls: `numbers` below K (default 5,10,30,90,150,300, up to K/2)")
	flags.Float64SliceVar(&f.lambdas, "lambda", []float64{0.2, 0.5, 1, 2}, "`weights` λ of the codes' Σ|a|, with the recipe paper")
	flags.IntVar(&f.seeds, "seeds", 3, "how many seeds, from 1")
	f.registerInput(cmd)
	f.registerRest(cmd)
	addJSON(cmd, "print all points as JSON")
	cmd.MarkFlagRequired("data")
	cmd.MarkFlagRequired("reference")
	return cmd
}

// check refuses flags outside their domain.
func (f *frontierFlags) check(cmd *cobra.Command) error {
	if err := f.experimentFlags.check(cmd); err != nil {
		return err
	}
	f.nonzeros = slices.Compact(slices.Sorted(slices.Values(f.nonzeros)))
	f.lambdas = slices.Compact(slices.Sorted(slices.Values(f.lambdas)))
	if cmd.Flags().Changed("nonzeros") && (len(f.nonzeros) == 0 || f.nonzeros[0] < 1) {
		return usagef("--nonzeros is %v, want whole numbers from 1", f.nonzeros)
	}
	for h, i := train.Paper(), 0; i < len(f.lambdas); i++ {
		if h.Lambda = f.lambdas[i]; h.Lambda == 0 || h.Validate() != nil {
			return usagef("--lambda is %v, want positive numbers, in the range of single precision", f.lambdas)
		}
	}
	if f.seeds < 1 || f.seeds > mostSeeds {
		return usagef("--seeds is %d, want 1 to %d", f.seeds, mostSeeds)
	}
	return nil
}

// mostSeeds is far beyond what anybody has time for.
const mostSeeds = 1000

// run measures what is not measured yet, and writes what there is after each seed and when
// it is interrupted.
func (f *frontierFlags) run(cmd *cobra.Command, path string) (m *experiment.Measured, err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	tasks, missing, err := availableTasks(ctx, f.data)
	if err != nil {
		return nil, err
	}
	for _, m := range missing {
		warn(stderr, "left out: %s", m)
	}
	reference, source, err := readDense(cmd, f.reference)
	if err != nil {
		return nil, err
	}
	e, err := f.load(cmd, path, f.output)
	if err != nil {
		return nil, err
	}
	e.Setting.Reference = model.Input{Name: source.Name, SHA256: source.SHA256, Words: reference.Len(), Dim: reference.Dim}
	plan, err := f.plan(e, path, reference)
	if err != nil {
		return nil, err
	}
	if err := experiment.Open(e, nil, f.data); err != nil {
		return nil, err
	}
	return e.Frontier(ctx, plan, f.seeds, tasks)
}

// plan returns what is to be measured of the vectors at path.
func (f *frontierFlags) plan(e *experiment.Experiment, path string, reference *vectors.Dense) (p experiment.Frontier, err error) {
	t, err := intrusion.NewTest(e.X, reference, e.X.Words)
	if err != nil {
		return p, intrusionError(err, path, path, f.reference)
	}
	t.Name, t.Seed = e.Setting.Reference.Name, 1
	p = experiment.Frontier{Atoms: train.DefaultAtoms(train.Best(), e.X.Len(), e.X.Dim), Order: train.DefaultOrder(e.X), Nonzeros: f.nonzeros, Lambdas: f.lambdas}
	p.Intrusion = t
	if p.Standardised, err = intrusion.Standardise(e.X, p.Atoms); err != nil {
		return p, usagef("%s: %w", path, err)
	}
	if len(f.nonzeros) == 0 {
		p.Nonzeros = slices.DeleteFunc(slices.Clone(usualNonzeros), func(n int) bool { return n > p.Atoms/2 })
	} else if most := p.Nonzeros[len(p.Nonzeros)-1]; most >= p.Atoms {
		return p, usagef("--nonzeros has %d, want less than K, which is %d for %d words of %d dimensions", most, p.Atoms, e.X.Len(), e.X.Dim)
	}
	return p, nil
}
