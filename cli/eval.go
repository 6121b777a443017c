package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/lab/eval"
	"overcomplete/model"
)

type evalFlags struct {
	data    string
	tasks   []string
	wordsim []string
}

func (f *evalFlags) read() (tasks []eval.Task, err error) {
	if len(f.tasks) > 0 && f.data == "" {
		return nil, usagef("the paper's tasks need --data; give your own with --wordsim")
	}
	for _, name := range f.tasks {
		if !slices.Contains(eval.TaskNames(), name) {
			return nil, usagef("--tasks has %q, want some of %s", name, strings.Join(eval.TaskNames(), ","))
		}
		task, err := eval.ReadTask(name, f.data)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
	}
	for _, path := range f.wordsim {
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if name == eval.Average || slices.Contains(eval.TaskNames(), name) {
			return nil, usagef("task %s: the name is taken; give your own task another name", name)
		}
		task, err := eval.ReadWordSimilarity(name, path)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
	}
	if len(tasks) == 0 {
		return nil, usagef("no tasks: give some with --tasks or --wordsim")
	}
	return tasks, refuseRepeated("task", eval.Names(tasks))
}

func newEval() *cobra.Command {
	var f evalFlags
	var progress progressFlags
	var seed uint64
	var markdown bool
	cmd := &cobra.Command{
		Use:        "eval VECTORS… [--data DIR]",
		SuggestFor: []string{"evaluate", "benchmark", "score"},
		Short:      "Score vectors by the paper's benchmark tasks",
		Long: `Eval scores vectors by the tasks of the paper: word similarity (WS-353, SimLex-999),
sentiment (SST), questions (TREC), three pairs of newsgroups, and the bracketing of noun
phrases. It prints a table with a row for each of VECTORS, which are

  FILE            dense vectors, in any format that train reads
  MODEL           the sparse vectors of a model directory
  MODEL:binary    the binary vectors of a model of method B
  thresh1:FILE    1 where a dense vector is positive, 0 elsewhere
  thresh2:FILE    1 and -1 beyond the mean of all positive and negative values

Each score has a standard error. The lines below the table state the coverage and the
protocol: scores of other protocols can't be compared. If interrupted, eval prints the
finished rows.`,
		Example: `  overcomplete eval glove.txt model model:binary thresh1:glove.txt thresh2:glove.txt --data eval
  overcomplete eval model --data eval --tasks WS-353,SST --json
  overcomplete eval model --wordsim men.txt`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.wordsim) > 0 && f.data == "" && !cmd.Flags().Changed("tasks") {
				f.tasks = nil
			}
			tasks, err := input.Wait(cmd.Context(), f.read)
			if err != nil {
				return err
			}
			// All vectors are opened first, so that a mistake in one stops the command early.
			var representations []*eval.Representation
			for _, spec := range args {
				r, err := openRepresentation(cmd, spec)
				if err != nil {
					return err
				}
				representations = append(representations, r)
			}
			table := &eval.Table{Seed: seed, Tasks: eval.Names(tasks)}
			log := progress.log(cmd.ErrOrStderr())
			for i, r := range representations {
				start := time.Now()
				finished, end := showTasks(log, progress.lines, r.Name, tasks)
				var results []eval.Result
				results, err = eval.Run(cmd.Context(), r, tasks, seed, finished)
				if end(); err != nil {
					break
				}
				representations[i] = nil // frees its memory
				table.Rows = append(table.Rows, eval.Row{Name: r.Name, Results: results})
				say(log, "evaluated %s in %.1f s", r.Name, time.Since(start).Seconds())
			}
			if len(table.Rows) == 0 {
				return err
			}
			if errors.Is(err, context.Canceled) {
				err = interrupted{"the table has the vectors that were finished"}
			}
			return cmp.Or(err, show(cmd, table, func(b *strings.Builder) {
				if markdown {
					b.WriteString(table.Markdown())
				} else {
					b.WriteString(table.Text())
				}
			}))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "`directory` with the folders wordsim, sst2, trec, 20news-bydate and np-bracketing")
	flags.StringSliceVar(&f.tasks, "tasks", eval.TaskNames(), "tasks of the paper")
	complete(cmd, flags.Lookup("tasks"), eval.TaskNames())
	flags.StringArrayVar(&f.wordsim, "wordsim", nil, "another word similarity task: a `file` with lines \"word word score\"")
	flags.Var(seedOf(&seed, 1), "seed", "seed of random splits and of the bootstrap")
	addSkipBad(cmd)
	flags.BoolVar(&markdown, "markdown", false, "print the table in Markdown")
	addJSON(cmd, "print the results as JSON")
	excludes(cmd, "json", "markdown")
	progress.registerProgress(cmd, "a task")
	return cmd
}

// openRepresentation reads the vectors that an argument of "eval" names.
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
		x, err := readNonmodel(cmd, path)
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
