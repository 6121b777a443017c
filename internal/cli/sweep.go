package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/lab/eval"
	"overcomplete/internal/lab/experiment"
	"overcomplete/model"
)

func newSweep() *cobra.Command {
	var f experimentFlags
	var factors []int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sweep VECTORS --data DIR -o OUT",
		Short: "Show how the average score depends on the length of the sparse vectors",
		Long: `Sweep trains with K of 1, 2, 3, 5, 10, 15 and 20 times the dense length, or by
--factors, and measures each by the paper's tasks, as eval does. It prints the table
and draws the average against K/L, with its standard error, as the paper's figure
does (§3): OUT/sweep.png and .svg. With --sparsity or --nonzeros the recipe paper
looks for the λ that gives as many zeros at each length. A data set that is not there is
left out, and said so.
` + aboutExperiment,
		Example: `  overcomplete sweep glove.txt --data eval -o swept --lambda 1
  overcomplete sweep glove.txt --data eval -o swept.best --recipe best --factors 2,4,8`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			factors = slices.Compact(slices.Sorted(slices.Values(factors)))
			if len(factors) == 0 || factors[0] < 1 || factors[len(factors)-1] > mostFactor {
				return usagef("--factors is %v, want whole numbers from 1 to %d", factors, mostFactor)
			}
			tasks, missing, err := availableTasks(cmd.Context(), f.data)
			if err != nil {
				return err
			}
			for _, m := range missing {
				warn(cmd.ErrOrStderr(), "left out: %s", m)
			}
			e, err := f.load(cmd, args[0], f.output)
			if err != nil {
				return err
			}
			var points []model.Recipe
			for _, factor := range factors {
				h, err := f.at(cmd, factor*e.X.Dim, e.X)
				if err != nil {
					return err
				}
				points = append(points, h)
			}
			if err := experiment.Open(e, f.recipe, f.data); err != nil {
				return err
			}
			swept, err := e.Sweep(cmd.Context(), points, tasks)
			if err != nil {
				return f.interruption(err)
			}
			if len(swept.Averaged()) == 0 {
				return usagef("%s: no task but %s has a score for all lengths, so that there is nothing to average", args[0], eval.TuningTask)
			}
			if err := swept.Panel().Save(filepath.Join(f.output, "sweep")); err != nil {
				return err
			}
			return writeTable(&swept.Table, cmd.OutOrStdout(), false, false, asJSON)
		},
	}
	f.register(cmd)
	cmd.MarkFlagRequired("data")
	flags := cmd.Flags()
	flags.IntSliceVar(&factors, "factors", experiment.Lengths, "K as `multiples` of the dense length")
	f.registerRecipe(cmd, model.Paper{})
	f.registerInput(cmd)
	f.registerRest(cmd)
	flags.BoolVar(&asJSON, "json", false, "print the results as JSON")
	return cmd
}

// availableTasks reads the paper's tasks whose data are there, and says which
// are not.
func availableTasks(ctx context.Context, data string) (tasks []eval.Task, missing []string, err error) {
	for _, name := range eval.TaskNames() {
		task, err := readTask(ctx, name, data)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, fmt.Sprintf("%s (%v)", name, err))
		case err != nil:
			return nil, nil, err
		default:
			tasks = append(tasks, task)
		}
	}
	if len(tasks) == 0 {
		return nil, nil, usagef("--data %s has none of the paper's data: %s", data, strings.Join(missing, "; "))
	}
	return tasks, missing, nil
}

func readTask(ctx context.Context, name, data string) (eval.Task, error) {
	return input.Wait(ctx, func() (eval.Task, error) { return eval.ReadTask(name, data) })
}

// mostFactor is far beyond what anybody can train with.
const mostFactor = 1000
