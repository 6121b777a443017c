package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/lab/eval"
	"overcomplete/lab/intrusion"
	"overcomplete/lab/paper"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// experimentFlags are the flags that "paper tune" and "paper report" share.
type experimentFlags struct {
	vectors.ReadOptions
	deviceFlags
	progressFlags
	paper.Experiments
	data string
}

const aboutExperiment = `
Models are kept in OUT, one directory for each λ and K, and both commands can share
OUT. An interrupted command continues with the models that are there; remove them to
train again.

DIR has the folders wordsim, sst2, trec, 20news-bydate and np-bracketing.`

func (f *experimentFlags) register(cmd *cobra.Command) {
	f.Recipe = train.Paper()
	flags := cmd.Flags()
	flags.StringVarP(&f.Dir, "output", "o", "", "`directory` of models, tables and figures, OUT")
	flags.StringVar(&f.data, "data", "", "`directory` of the tasks' data")
	flags.Float64SliceVar(&f.Lambdas, "lambda", paper.Lambdas, "`weights` λ to choose from")
	flags.Lookup("lambda").DefValue = "[0.1,0.5,1]" // pflag prints six decimals
	flags.IntSliceVar(&f.Factors, "factor", paper.Factors, "K to choose from, as `multiples` of the dense dimensions")
	cmd.MarkFlagRequired("output")
	cmd.MarkFlagRequired("data")
	registerInput(cmd, &f.ReadOptions)
	f.registerDevice(cmd)
	f.registerPrecision(cmd)
	f.registerProgress(cmd, "an epoch")
}

func (f *experimentFlags) run(cmd *cobra.Command, path string, experiments func() error) error {
	err := f.open(cmd, path)
	if err == nil {
		err = experiments()
	}
	if errors.Is(err, context.Canceled) {
		return interrupted{"the same command continues with the models in " + f.Dir}
	}
	return err
}

// open checks the flags and reads the vectors at path and the tasks.
func (f *experimentFlags) open(cmd *cobra.Command, path string) error {
	if err := f.deviceFlags.check(cmd, nil); err != nil {
		return err
	}
	const maxFactor = 1000 // far beyond practical sizes
	outside := func(factor int) bool { return factor < 1 || factor > maxFactor }
	info, err := os.Stat(f.Dir)
	switch {
	case f.Dir == "-" || err == nil && !info.IsDir():
		return usagef("-o is %.100q, want a directory", f.Dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usageError{err}
	case len(f.Lambdas) == 0 || slices.ContainsFunc(f.Lambdas, func(lambda float64) bool { return !(lambda > 0 && lambda < math.MaxFloat32) }):
		return usagef("--lambda is %v, want positive numbers", f.Lambdas)
	case len(f.Factors) == 0 || slices.ContainsFunc(f.Factors, outside):
		return usagef("--factor is %v, want integers from 1 to %d", f.Factors, maxFactor)
	case slices.ContainsFunc(f.Lengths, outside):
		return usagef("--length is %v, want integers from 1 to %d", f.Lengths, maxFactor)
	}
	if err := cmp.Or(refuseRepeated("--lambda", f.Lambdas), refuseRepeated("--factor", f.Factors), refuseRepeated("--length", f.Lengths)); err != nil {
		return err
	}
	var missing []string
	tasks, err := input.Wait(cmd.Context(), func() (tasks []eval.Task, err error) {
		tasks, missing, err = paper.ReadTasks(f.data)
		return tasks, err
	})
	if err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	if missing != nil {
		warn(stderr, "%s has no data for %s, which are skipped", f.data, strings.Join(missing, ", "))
	}
	log := f.log(stderr)
	f.Tasks, f.Device = tasks, chosenDevice{&f.deviceFlags, log}
	f.Log = func(format string, args ...any) { say(log, format, args...) }
	f.Show = func(r model.Recipe) (train.Options, func()) {
		p := &progress{stderr: stderr, log: log, lines: f.lines}
		p.start(f.X.Len(), 2, r.Base().Epochs)
		return train.Options{Begin: p.begin, Progress: p.rows, Epoch: p.epoch, Note: p.note}, p.bar.clear
	}
	f.X, f.Source, err = readVectors(cmd, path, f.ReadOptions)
	return err
}

func newPaperTune() *cobra.Command {
	var f experimentFlags
	cmd := &cobra.Command{
		Use:   "tune VECTORS --data DIR -o OUT",
		Short: "Choose λ and K by grid search",
		Long: `Tune trains method A with each --lambda and each --factor, the paper's grid (§3). It
chooses the setting with the highest score in WS-353 among those with a sparsity of
90 % or more, or the sparsest if there is none. It prints a table and writes it to
OUT/tune.tsv, with a figure, OUT/tune.svg.
` + aboutExperiment,
		Example: `  overcomplete paper tune glove.txt --data eval -o tuned
  overcomplete paper tune glove.txt --data eval -o tuned --lambda 1,2 --factor 5,10`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], func() error {
				t, err := f.Tune(cmd.Context())
				if err != nil {
					return err
				}
				return show(cmd, t, func(b *strings.Builder) {
					fmt.Fprintf(b, "%s\n%s\n", t.Table().Text("r"), t.Verdict())
				})
			})
		},
	}
	f.register(cmd)
	addJSON(cmd, "print the settings as JSON")
	return cmd
}

func newPaperReport() *cobra.Command {
	var f experimentFlags
	var reference string
	cmd := &cobra.Command{
		Use:   "report VECTORS --data DIR -o OUT",
		Short: "Repeat the paper's experiments and write their tables and figures",
		Long: `Report chooses λ and K as tune does, trains methods A and B with them, and compares
the dense vectors X, two transformations of them (thresh1: 1 where a value is positive;
thresh2: 1 or -1 beyond the mean of the positive or negative values), A and B by all
tasks. It scores vectors of each --length, the dimensions of X, A and B by word
intrusion, which --reference judges, and shows dimensions of B beside clusters of X by
k-means, and the codes of the words of each --heatmap as a heat map. It writes
OUT/report.md with tables (.tsv) and figures (.svg) beside it, and prints its name.
` + aboutExperiment,
		Example: `  overcomplete paper report glove.txt --data eval -o glove.paper
  overcomplete paper report sg.bin --data eval --reference glove.6B.50d.txt -o sg.paper --lambda 0.5 --factor 10`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], func() error {
				if reference != "" {
					judge, _, err := readDense(cmd, reference)
					if err != nil {
						return err
					}
					if f.Test, err = intrusion.NewTest(f.X, judge, f.X.IDs); err != nil {
						return intrusionError(err, args[0], args[0], reference)
					}
				}
				if err := f.Report(cmd.Context()); err != nil {
					return err
				}
				say(cmd.OutOrStdout(), "%s", filepath.Join(f.Dir, paper.ReportFile))
				return nil
			})
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&f.Lengths, "length", paper.Lengths, "K to compare, as `multiples` of the dense dimensions")
	flags.StringVar(&reference, "reference", "", "`file` of other vectors of the same words, to judge word intrusion by")
	flags.StringArrayVar(&f.Groups, "heatmap", paper.Groups, "`words` of a group in the heat map, separated by commas")
	return cmd
}
