package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/lab/eval"
	"overcomplete/model"
)

// evalFlags are which tasks to evaluate by, and how.
type evalFlags struct {
	data     string
	tasks    []string
	wordsim  []string
	labelled []string
	oov      string
	look     string
	features string
	seed     uint64
}

func (f *evalFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "`directory` with the folders wordsim, sst2, trec, 20news-bydate and np-bracketing")
	flags.StringVar(&f.oov, "oov", string(eval.Skip), "words without a vector: skip (left out), zero or mean (of all vectors)")
	flags.StringVar(&f.look, "case", string(eval.Fallback), "look tokens up as they stand, else in lower case (fallback), exact or lower")
	flags.StringVar(&f.features, "features", "unit", "features of a text: scaled to unit length (unit) or as they are (raw)")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of random splits and of the bootstrap")
}

func (f *evalFlags) options() eval.Options {
	return eval.Options{OOV: eval.OOV(f.oov), Case: eval.Case(f.look), Raw: f.features == "raw", Seed: f.seed}
}

// read reads the tasks that were chosen.
func (f *evalFlags) read() (tasks []eval.Task, err error) {
	add := func(task eval.Task, err error) error {
		if err != nil {
			return err
		}
		if name := task.Name(); len(tasks) >= len(f.tasks) && (slices.Contains(eval.TaskNames(), name) || name == eval.Average) {
			return usagef("a task of your own is called %s, as the paper's; give it another name", name)
		}
		if slices.ContainsFunc(tasks, func(t eval.Task) bool { return t.Name() == task.Name() }) {
			return usagef("task %s is given twice", task.Name())
		}
		tasks = append(tasks, task)
		return nil
	}
	if len(f.tasks) > 0 && f.data == "" {
		return nil, usagef("the paper's tasks need --data; tasks of your own are given with --wordsim and --labelled")
	}
	for _, name := range f.tasks {
		if !slices.Contains(eval.TaskNames(), name) {
			return nil, usagef("--tasks has %q, want some of %s", name, strings.Join(eval.TaskNames(), ","))
		}
		if err := add(eval.ReadTask(name, f.data)); err != nil {
			return nil, err
		}
	}
	for _, path := range f.wordsim {
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if err := add(eval.ReadWordSimilarity(name, path)); err != nil {
			return nil, err
		}
	}
	for _, given := range f.labelled {
		name, files, _ := strings.Cut(given, "=")
		paths := strings.Split(files, ",")
		if name == "" || len(paths) < 2 || len(paths) > 3 || slices.Contains(paths, "") {
			return nil, usagef("--labelled is %q, want NAME=TRAIN,TEST or NAME=TRAIN,DEV,TEST", given)
		}
		if err := add(eval.ReadLabelled(name, paths)); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

func newEval() *cobra.Command {
	var f evalFlags
	var progress progressFlags
	var markdown, latex, json bool
	cmd := &cobra.Command{
		Use:   "eval VECTORS… [--data DIR]",
		Short: "Measure vectors by the paper's benchmark tasks",
		Long: `Eval measures vectors by the tasks of the paper: two of word similarity, sentiment
(SST), questions (TREC), three pairs of newsgroups and the bracketing of noun
phrases. It prints a table as the paper's, a row for each of VECTORS, which are

  FILE            dense vectors, in any format that train reads
  MODEL           a model directory, whose sparse vectors are meant
  MODEL:binary    the binary vectors of a model of method B
  thresh1:FILE    1 where a dense vector is positive, 0 elsewhere
  thresh2:FILE    1 and -1 beyond the mean of all positive and negative values

Every score has its standard error; differences that are smaller mean little. The
lines below the table say how many pairs and tokens had vectors, and what the
protocol was: scores of other choices can't be compared. Interrupted, it prints the
rows that are finished.`,
		Example: `  overcomplete eval glove.txt model model:binary thresh1:glove.txt thresh2:glove.txt --data eval
  overcomplete eval model --data eval --tasks WS-353,SST --json
  overcomplete eval model --labelled spam=train.tsv,test.tsv --wordsim men.txt`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := countTrue(markdown, latex, json); n > 1 {
				return usagef("give one of --markdown, --latex and --json")
			}
			if own := len(f.wordsim)+len(f.labelled) > 0; own && f.data == "" && !cmd.Flags().Changed("tasks") {
				f.tasks = nil
			}
			tasks, err := input.Wait(cmd.Context(), f.read)
			if err != nil {
				return err
			}
			if len(tasks) == 0 {
				return usagef("no tasks: give some with --tasks, --wordsim or --labelled")
			}
			table := &eval.Table{Options: f.options(), Tasks: eval.Names(tasks)}
			// All are opened first: what is wrong with one should not come out when
			// others are done.
			var representations []*eval.Representation
			for _, spec := range args {
				r, err := openRepresentation(cmd, spec)
				if err != nil {
					return err
				}
				representations = append(representations, r)
			}
			log := progress.log(cmd.ErrOrStderr())
			first := time.Now()
			for i, r := range representations {
				start := time.Now()
				finished, end := showTasks(log, progress.lines, r.Name, tasks)
				var results []eval.Result
				results, err = eval.Run(cmd.Context(), r, tasks, table.Options, finished)
				if end(); err != nil {
					break
				}
				representations[i] = nil // its memory is free
				table.Rows = append(table.Rows, eval.Row{Name: r.Name, Results: results})
				say(log, "evaluated %s in %.1f s%s", r.Name, time.Since(start).Seconds(), remaining(first, i+1, len(representations)))
			}
			if len(table.Rows) == 0 {
				return err
			}
			if errors.Is(err, context.Canceled) {
				err = interrupted{"the table has the vectors that were finished"}
			}
			written := writeTable(table, cmd.OutOrStdout(), markdown, latex, json)
			return cmp.Or(err, written)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.tasks, "tasks", eval.TaskNames(), "tasks of the paper to evaluate by")
	flags.StringArrayVar(&f.wordsim, "wordsim", nil, "another word similarity task: a `file` with lines \"word word score\"")
	flags.StringArrayVar(&f.labelled, "labelled", nil, "a classification task of your own: `NAME=TRAIN,TEST`, files with lines \"label<TAB>text\"; NAME=TRAIN,DEV,TEST chooses C on DEV")
	addSkipBad(cmd)
	flags.BoolVar(&markdown, "markdown", false, "print the table in Markdown")
	flags.BoolVar(&latex, "latex", false, "print the table in LaTeX")
	flags.BoolVar(&json, "json", false, "print the results as JSON")
	progress.registerProgress(flags, "a task")
	return cmd
}

func writeTable(t *eval.Table, w io.Writer, markdown, latex, json bool) error {
	switch {
	case markdown:
		return t.WriteMarkdown(w)
	case latex:
		return t.WriteLaTeX(w)
	case json:
		return t.WriteJSON(raw(w))
	}
	_, bold := terminalOf(w)
	return t.WriteText(raw(w), bold)
}

func countTrue(b ...bool) int {
	n := 0
	for _, b := range b {
		if b {
			n++
		}
	}
	return n
}

// openRepresentation reads what eval was given.
func openRepresentation(cmd *cobra.Command, spec string) (*eval.Representation, error) {
	if name, path, ok := strings.Cut(spec, ":"); ok {
		if transform := eval.Transforms[name]; transform != nil {
			x, _, err := readDense(cmd, path)
			if err != nil {
				return nil, err
			}
			return eval.NewSparse(spec, transform(x)), nil
		}
	}
	path, binary := strings.CutSuffix(spec, ":binary")
	if !binary && !model.Is(path) {
		x, _, err := readDense(cmd, path)
		if err != nil {
			return nil, err
		}
		return eval.NewDense(spec, x), nil
	}
	m, err := loadModel(cmd, path)
	if err != nil {
		return nil, err
	}
	if binary {
		if err := checkBinary(m); err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
		m.Codes = m.Codes.Binary()
	}
	return eval.NewSparse(spec, m.Codes), nil
}
