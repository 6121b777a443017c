package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/lab/eval"
	"overcomplete/internal/lab/experiment"
	"overcomplete/model"
	"overcomplete/train"
)

// experimentFlags are what tune, sweep, frontier and paper share: how to train, and where
// what is finished is kept.
type experimentFlags struct {
	trainFlags
	data string
}

const aboutExperiment = `
Flags of a recipe are those of train. The recipe is paper unless --recipe best is given,
as these are the paper's experiments; the λ of the two recipes can't be compared.

What is finished is kept in OUT as plain files: a model directory and a .json file
of its recipe, metrics and scores for each point. The same command goes on where it was
interrupted, tune and sweep of the same vectors and recipe can share OUT, and a point
that is there is not trained again. OUT of other vectors, settings or evaluation data is
refused.`

func (f *experimentFlags) register(cmd *cobra.Command) {
	f.Paper, f.recipe = train.Paper(), train.Paper()
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "`directory` for what is tried and what comes out, OUT")
	flags.StringVar(&f.data, "data", "", "`directory` with the folders wordsim, sst2, trec, 20news-bydate and np-bracketing")
	cmd.MarkFlagRequired("output")
}

// registerRest adds the flags that come last.
func (f *experimentFlags) registerRest(cmd *cobra.Command) {
	f.registerTrainingDevice(cmd)
	f.registerProgress(cmd.Flags(), "an epoch and a task")
}

// load reads the vectors at path for an experiment in dir, which is not touched.
func (f *experimentFlags) load(cmd *cobra.Command, path, dir string) (*experiment.Experiment, error) {
	if err := f.available(); err != nil {
		return nil, err
	}
	stderr := cmd.ErrOrStderr()
	log := f.log(stderr)
	x, source, err := f.read(cmd, path, log, true)
	if err != nil {
		return nil, err
	}
	e := &experiment.Experiment{
		Dir: dir,
		Setting: experiment.Setting{
			Input:    model.Input{Name: source.Name, SHA256: source.SHA256, Words: x.Len(), Dim: x.Dim, WordsSHA256: source.WordsSHA256},
			Protocol: eval.Options{OOV: eval.Skip, Case: eval.Fallback, Seed: 1},
		},
		X: x, Source: source, Device: chosenDevice{&f.deviceFlags, log}, Log: log,
		Show: func(r model.Recipe) (train.Options, func()) { return f.show(r, x.Len(), log, stderr) },
		ShowTasks: func(name string, tasks []eval.Task) (func(task string), func()) {
			return showTasks(log, f.lines, name, tasks)
		},
	}
	return e, nil
}

// interruption returns err, or how to go on if it is of an interruption.
func (f *experimentFlags) interruption(err error) error {
	if errors.Is(err, context.Canceled) {
		return interrupted{"the same command goes on with what is finished in " + f.output}
	}
	return err
}

func newTune() *cobra.Command {
	var f experimentFlags
	cmd := &cobra.Command{
		Use:   "tune VECTORS -o OUT",
		Short: "Choose λ and K by the paper's grid, or λ by the share of zeros",
		Long: `Tune trains with λ of 0.1, 0.5 and 1 and K of 10 and 20 times the dense length, the
paper's grid (§3), and chooses what has the highest correlation with people in the
task WS-353 among the models with at least 90 % zeros. If none has as many, it says
so and names the sparsest. With --recipe best, which takes a share of zeros as it is,
the grid has 90, 95 and 97 % instead of λ.

With --sparsity or --nonzeros it trains for this share of zeros instead: by the recipe
paper it looks for the λ that gives it, to half a point, in at most six trainings. --data
is then needed only to see WS-353 as well.

It prints a table of all that was tried and draws it, as OUT/tune.png and .svg. Of
method B the binary vectors are measured, as in the paper.
` + aboutExperiment,
		Example: `  overcomplete tune glove.txt --data eval -o tuned
  overcomplete tune glove.txt --data eval -o tuned.best --recipe best
  overcomplete tune glove.txt --sparsity 0.92 -k 1000 -o tuned`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			_, isPaper := f.recipe.(model.Paper)
			switch changed := cmd.Flags().Changed; {
			case isPaper && changed("lambda"):
				return usagef("--lambda is what tune chooses with the recipe paper; drop it")
			case !f.searches() && (changed("atoms") || changed("factor")):
				return usagef("-k and --factor go with --sparsity or --nonzeros; the paper's grid has K of its own")
			case !f.searches() && f.data == "":
				return usagef("tuning needs --data, or else --sparsity or --nonzeros")
			}
			t, err := f.tune(cmd, args[0])
			if err != nil {
				return f.interruption(err)
			}
			if err := t.Panel().Save(filepath.Join(f.output, "tune")); err != nil {
				return err
			}
			return show(cmd, t, func(b *strings.Builder) {
				fmt.Fprintf(b, "%s\n%s\nmodel: %s\n", t.Table().Text("lr", nil), t.Verdict(), escape.Text(t.Model))
			})
		},
	}
	f.register(cmd)
	f.registerAtoms(cmd)
	f.registerRecipe(cmd, model.Paper{})
	flags := cmd.Flags()
	flags.Lookup("sparsity").Usage = "train for this `share` of zeros, such as 0.92, instead of the grid"
	flags.Lookup("atoms").Usage = "with --sparsity or --nonzeros: " + flags.Lookup("atoms").Usage
	flags.Lookup("factor").Usage = "with --sparsity or --nonzeros: " + flags.Lookup("factor").Usage
	flags.Lookup("lambda").Usage = fmt.Sprintf("best: weight λ of the codes' Σ|a| (default %v of the mean squared norm)", train.Best().Lambda)
	f.registerInput(cmd)
	f.registerRest(cmd)
	addJSON(cmd, "print what was tried as JSON")
	return cmd
}

func (f *experimentFlags) tune(cmd *cobra.Command, path string) (*experiment.Tuned, error) {
	ctx := cmd.Context()
	var tasks []eval.Task
	if f.data != "" {
		task, err := readTask(ctx, eval.TuningTask, f.data)
		if err != nil {
			return nil, err
		}
		tasks = []eval.Task{task}
	}
	e, err := f.load(cmd, path, f.output)
	if err != nil {
		return nil, err
	}
	h, err := f.at(cmd, f.atoms(e.X.Len(), e.X.Dim), e.X)
	if err != nil {
		return nil, err
	}
	if !f.searches() { // found out before anything is written
		results, err := eval.Run(ctx, eval.NewDense("X", e.X), tasks, e.Setting.Protocol, nil)
		if err != nil {
			return nil, err
		}
		if note := results[0].Note; note != "" {
			return nil, usagef("%s can't be tuned on %s: %s", path, eval.TuningTask, note)
		}
	}
	if err := experiment.Open(e, f.recipe, f.data); err != nil {
		return nil, err
	}
	if f.searches() {
		return e.Sparsity(ctx, h, tasks)
	}
	return e.Tune(ctx, h, tasks[0])
}
