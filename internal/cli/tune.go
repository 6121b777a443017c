package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/table"
	"overcomplete/lab/eval"
	"overcomplete/lab/experiment"
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
Models are trained by the recipe paper, and λ is that of "train --recipe paper": the
recipe best, which train has by default, takes other ones.

What is finished is kept in OUT as plain files: a model directory and a .json file
of its hyperparameters, metrics and scores for each point. The same command goes on
where it was interrupted, tune and sweep of the same vectors can share OUT, and a
point that is there is not trained again. OUT of other vectors, settings or
evaluation data is refused.`

func (f *experimentFlags) register(cmd *cobra.Command) {
	f.Paper, f.recipeName = train.Paper(), model.Paper{}.String()
	f.factor = 10
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "`directory` for what is tried and what comes out, OUT")
	flags.StringVar(&f.data, "data", "", "`directory` with the folders wordsim, sst2, trec, 20news-bydate and np-bracketing")
	cmd.MarkFlagRequired("output")
}

// registerRest adds the flags that come last.
func (f *experimentFlags) registerRest(cmd *cobra.Command) {
	f.registerTrainingDevice(cmd)
	f.registerProgress(cmd.Flags(), "an epoch and a task")
}

// open reads the vectors at path and opens their experiment in dir.
func (f *experimentFlags) open(cmd *cobra.Command, path, dir string) (*experiment.Experiment, error) {
	e, err := f.load(cmd, path, dir)
	if err != nil {
		return nil, err
	}
	return e, experiment.Open(e, f.Paper, f.data)
}

// load reads the vectors at path for an experiment in dir, which is not touched.
func (f *experimentFlags) load(cmd *cobra.Command, path, dir string) (*experiment.Experiment, error) {
	if err := f.available(); err != nil {
		return nil, err
	}
	stderr := cmd.ErrOrStderr()
	log := f.log(stderr)
	x, source, err := f.read(cmd, path, log)
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

// dense measures the vectors that the experiment is about.
func dense(ctx context.Context, e *experiment.Experiment, tasks []eval.Task) (*experiment.Record, error) {
	return e.Untrained(ctx, "X", tasks, func() *eval.Representation { return eval.NewDense("X", e.X) })
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
	var sparsity float64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tune VECTORS -o OUT",
		Short: "Choose λ and K by the paper's grid, or λ by the share of zeros",
		Long: `Tune trains with λ of 0.1, 0.5 and 1 and K of 10 and 20 times the dense length, the
paper's grid (§3), and chooses what has the highest correlation with people in the
task WS-353 among the models with at least 90 % zeros. If none has as many, it says
so and names the sparsest.

With --sparsity it looks for the λ that gives this share of zeros instead, to half a
point, in at most six trainings; --data is then needed only to see WS-353 as well.

It prints a table of all that was tried and draws it, as OUT/tune.png and .svg. Of
method B the binary vectors are measured, as in the paper.
` + aboutExperiment,
		Example: `  overcomplete tune glove.txt --data eval -o tuned
  overcomplete tune glove.txt --sparsity 0.92 -k 1000 -o tuned`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			changed := cmd.Flags().Changed
			switch search := changed("sparsity"); {
			case search && !(sparsity > 0 && sparsity < 1):
				return usagef("--sparsity is %v, want a share between 0 and 1", sparsity)
			case !search && changed("atoms"):
				return usagef("-k goes with --sparsity; the paper's grid has K of its own")
			case !search && f.data == "":
				return usagef("tuning needs --data, or else --sparsity")
			}
			t, err := f.tune(cmd, args[0], sparsity)
			if err != nil {
				return f.interruption(err)
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), t)
			}
			return t.print(cmd.OutOrStdout())
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&sparsity, "sparsity", 0, "find the λ with this `share` of zeros, such as 0.92, instead")
	flags.IntVarP(&f.Atoms, "atoms", "k", 0, "K, the dimensions of the sparse vectors, with --sparsity (default 10 times the dense ones)")
	flags.StringVar((*string)(&f.Method), "method", string(f.Method), "A, or B for binary vectors")
	flags.BoolVar(&f.Center, "center", false, "subtract the mean of the frequent words first")
	f.registerInput(cmd)
	f.registerRest(cmd)
	flags.BoolVar(&asJSON, "json", false, "print what was tried as JSON")
	return cmd
}

// tuned is what tune found.
type tuned struct {
	Best    *experiment.Record   `json:"best"`
	Model   string               `json:"model"`   // its directory
	Reached bool                 `json:"reached"` // best has as many zeros as it should
	Tried   []*experiment.Record `json:"tried"`
	Dense   *experiment.Record   `json:"dense"` // X's

	wanted float64 // 0 for the paper's grid
}

func (f *experimentFlags) tune(cmd *cobra.Command, path string, sparsity float64) (*tuned, error) {
	var tasks []eval.Task
	if f.data != "" {
		task, err := readTask(cmd.Context(), eval.TuningTask, f.data)
		if err != nil {
			return nil, err
		}
		tasks = []eval.Task{task}
	}
	e, err := f.load(cmd, path, f.output)
	if err != nil {
		return nil, err
	}
	if sparsity == 0 { // found out before anything is written
		results, err := eval.Run(cmd.Context(), eval.NewDense("X", e.X), tasks, e.Setting.Protocol, nil)
		if err != nil {
			return nil, err
		}
		if note := results[0].Note; note != "" {
			return nil, usagef("%s can't be tuned on %s: %s", path, eval.TuningTask, note)
		}
	}
	if err := experiment.Open(e, f.Paper, f.data); err != nil {
		return nil, err
	}
	if sparsity == 0 {
		e.Plan(gridLengths(e.X.Dim)...)
	}
	x, err := dense(cmd.Context(), e, tasks)
	if err != nil {
		return nil, err
	}
	t := &tuned{Dense: x, wanted: sparsity}
	if sparsity == 0 {
		t, err = grid(cmd.Context(), e, f.Paper, tasks[0], x)
	} else {
		h := f.Paper
		if h.Atoms == 0 {
			h.Atoms = f.factor * e.X.Dim
		}
		t.Tried, t.Best, t.Reached, err = e.Sparsity(cmd.Context(), h, sparsity, tasks)
	}
	if err != nil {
		return nil, err
	}
	t.Model = e.ModelDir(t.Best.Paper())
	return t, t.draw(filepath.Join(f.output, "tune"))
}

// gridLengths returns the lengths of X and of the points of the paper's grid.
func gridLengths(dim int) []int {
	lengths := []int{dim}
	for _, factor := range experiment.Factors {
		for range experiment.Lambdas {
			lengths = append(lengths, factor*dim)
		}
	}
	return lengths
}

// grid chooses by the paper's grid.
func grid(ctx context.Context, e *experiment.Experiment, h model.Paper, task eval.Task, dense *experiment.Record) (*tuned, error) {
	t := &tuned{Dense: dense}
	var err error
	if t.Tried, err = e.Grid(ctx, h, task); err != nil {
		return nil, err
	}
	t.Best, t.Reached = experiment.Best(t.Tried, eval.TuningTask)
	t.Model = e.ModelDir(t.Best.Paper())
	return t, nil
}

func shortest(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// table has a row for X and for each point that was tried.
func (t *tuned) table() table.Table {
	measured := len(t.Dense.Scores) > 0 // else there is nothing to say of WS-353, nor of X
	rows := table.Table{{"vectors", "λ", "K", "zeros %", "error"}}
	if measured {
		rows[0] = append(rows[0], eval.TuningTask)
		rows = append(rows, []string{"X", "", "", "", "", t.Dense.Result(eval.TuningTask).String()})
	}
	for _, r := range t.Tried {
		h := r.Paper()
		row := []string{string(h.Method), shortest(h.Lambda), strconv.Itoa(h.Atoms), fmt.Sprintf("%.2f", 100*r.Metrics.Sparsity), fmt.Sprintf("%.4f", r.Metrics.Error)}
		if measured {
			row = append(row, r.Result(eval.TuningTask).String())
		}
		rows = append(rows, row)
	}
	for i := range rows {
		mark := ""
		if first := len(rows) - len(t.Tried); i >= first && t.Tried[i-first] == t.Best {
			mark = "chosen"
		}
		rows[i] = append(rows[i], mark)
	}
	return rows
}

// verdict says in a line what was chosen and why.
func (t *tuned) verdict() string {
	h := t.Best.Paper()
	what := fmt.Sprintf("λ = %s, K = %d: %.2f %% zeros", shortest(h.Lambda), h.Atoms, 100*t.Best.Metrics.Sparsity)
	switch {
	case t.Reached && t.wanted > 0:
		return what
	case t.Reached:
		return fmt.Sprintf("%s, the highest %s of those with %v %% or more", what, eval.TuningTask, 100*experiment.MinSparsity)
	case t.wanted > 0:
		return fmt.Sprintf("%s, which is the nearest, but not within %v of the %v %% that were wanted", what, 100*train.SparsityTolerance, 100*t.wanted)
	}
	return fmt.Sprintf("no point has %v %% zeros; the sparsest is %s", 100*experiment.MinSparsity, what)
}

func (t *tuned) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n%s\nmodel: %s\n", t.table().Text(nil), t.verdict(), escape.Text(t.Model))
	return err
}

// draw draws WS-353 against the share of zeros for each K, or the share of zeros
// against λ.
func (t *tuned) draw(name string) error {
	if t.wanted > 0 {
		p := experiment.Panel{Title: "zeros, %", XLabel: "λ", LogX: true, YMark: experiment.Mark{Name: "wanted", At: 100 * t.wanted}}
		line := experiment.Line{Look: experiment.Look{Name: fmt.Sprintf("K = %d", t.Best.Paper().Atoms)}}
		for _, r := range t.Tried {
			line.Points = append(line.Points, experiment.FigurePoint{X: r.Paper().Lambda, Y: 100 * r.Metrics.Sparsity, Label: shortest(r.Paper().Lambda)})
		}
		p.Lines = []experiment.Line{line}
		return p.Save(name)
	}
	p := experiment.Panel{Title: eval.TuningTask + ", ρ × 100", XLabel: "zeros, %",
		XMark: experiment.Mark{Name: fmt.Sprintf("%v %%", 100*experiment.MinSparsity), At: 100 * experiment.MinSparsity},
		YMark: experiment.Mark{Name: "X", At: t.Dense.Result(eval.TuningTask).Score}}
	for _, r := range t.Tried {
		name := fmt.Sprintf("K = %d", r.Paper().Atoms)
		if n := len(p.Lines); n == 0 || p.Lines[n-1].Name != name {
			p.Lines = append(p.Lines, experiment.Line{Look: experiment.Look{Name: name}})
		}
		s := r.Result(eval.TuningTask)
		line := &p.Lines[len(p.Lines)-1]
		line.Points = append(line.Points, experiment.FigurePoint{X: 100 * r.Metrics.Sparsity, Y: s.Score, Deviation: s.Stderr, Label: "λ = " + shortest(r.Paper().Lambda)})
	}
	return p.Save(name)
}
