package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/lab/experiment"
)

func newPaper() *cobra.Command {
	var f experimentFlags
	cmd := &cobra.Command{
		Use:   "paper VECTORS… --data DIR -o OUT",
		Short: "Repeat the paper's experiments and write a report",
		Long: `Paper does for each of VECTORS what the paper did for its four (§3): it tunes λ and K
of method A on WS-353, trains A and B with them, measures both, the dense vectors X
and the two alternative transformations by all tasks, and varies the length of A. It
writes OUT/report.md, with the tables of hyperparameters, of results, of the
transformations, and the figure of length, and prints its name.

A data set that is not there is named where it would count. OUT has a directory for
each of VECTORS, which tune and sweep can share. What is finished is kept, so that
the same command goes on where it was interrupted, and nothing is trained twice.`,
		Example: `  overcomplete paper glove.txt googlenews.bin --data eval -o paper`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if err := runPaper(cmd, &f, args); err != nil {
				return f.interruption(err)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), escape.Text(filepath.Join(f.output, reportFile)))
			return err
		},
	}
	f.register(cmd)
	cmd.MarkFlagRequired("data")
	f.registerMaxWords(cmd.Flags())
	f.registerRest(cmd)
	return cmd
}

const reportFile = "report.md"

// paperInput is one of VECTORS.
type paperInput struct{ name, path string }

func runPaper(cmd *cobra.Command, f *experimentFlags, paths []string) error {
	inputs, err := paperInputs(paths)
	if err != nil {
		return err
	}
	tasks, missing, err := availableTasks(cmd.Context(), f.data)
	if err != nil {
		return err
	}
	// Claimed before anything in it is replaced.
	if _, err := experiment.Claim(f.output, "paper.json", map[string]string{"command": "paper"}); err != nil {
		return err
	}
	var repeated []*experiment.Repeated
	for i, in := range inputs {
		if len(inputs) > 1 {
			say(f.log(cmd.ErrOrStderr()), "%s (vectors %d of %d)", in.name, i+1, len(inputs))
		}
		e, err := f.load(cmd, in.path, filepath.Join(f.output, in.name))
		if err != nil {
			return err
		}
		if err := experiment.Open(e, f.recipe, f.data); err != nil {
			return err
		}
		found, err := e.Repeat(cmd.Context(), in.name, f.Paper, tasks)
		if err != nil {
			return err
		}
		repeated = append(repeated, found)
	}
	return experiment.WriteFile(filepath.Join(f.output, reportFile), func(w io.Writer) error {
		return experiment.WriteReport(w, repeated, missing)
	})
}

// paperInputs names the inputs by their files.
func paperInputs(paths []string) (inputs []paperInput, err error) {
	seen := map[string]string{}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return nil, usagef("%w", err)
		}
		name := filepath.Base(path)
		for _, ending := range []string{".gz", ".zst", ".txt", ".vec", ".bin", ".npy", ".npz", ".safetensors"} {
			if short := strings.TrimSuffix(name, ending); strings.Trim(short, ".") != "" {
				name = short
			}
		}
		if seen[name] != "" {
			return nil, usagef("%s and %s would both be called %s in the report; rename one", seen[name], path, name)
		}
		seen[name] = path
		inputs = append(inputs, paperInput{name: name, path: path})
	}
	return inputs, nil
}
