package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/table"
	"overcomplete/lab/eval"
	"overcomplete/lab/experiment"
	"overcomplete/model"
	"overcomplete/train"
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
			b := f.Paper
			b.Method = model.Nonnegative
			b.Epochs = train.DefaultEpochs(b)
			if err := runPaper(cmd, &f, b, args); err != nil {
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

// paperInput is one of VECTORS and what was found about it.
type paperInput struct {
	name, path string
	dim, words int
	tuned      *tuned // nil if it could not be
	untuned    string // why
	a, b       *experiment.Record
	// all has the rows X, thresh1, thresh2, A and B, and sweep X and those of each
	// length.
	all, sweep *eval.Table
}

func runPaper(cmd *cobra.Command, f *experimentFlags, b model.Paper, paths []string) error {
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
	for i, in := range inputs {
		if len(inputs) > 1 {
			say(f.log(cmd.ErrOrStderr()), "%s (vectors %d of %d)", in.name, i+1, len(inputs))
		}
		if err := in.run(cmd, f, b, tasks); err != nil {
			return err
		}
	}
	return experiment.WriteFile(filepath.Join(f.output, reportFile), func(w io.Writer) error {
		return writeReport(w, inputs, missing)
	})
}

// paperInputs names the inputs by their files.
func paperInputs(paths []string) (inputs []*paperInput, err error) {
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
		inputs = append(inputs, &paperInput{name: name, path: path})
	}
	return inputs, nil
}

// run does all of the paper's experiments with an input. b is what B is trained with,
// but for what A's tuning decides.
func (in *paperInput) run(cmd *cobra.Command, f *experimentFlags, b model.Paper, tasks []eval.Task) error {
	dir := filepath.Join(f.output, in.name)
	e, err := f.open(cmd, in.path, dir)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	in.dim, in.words = e.X.Dim, e.X.Len()
	h := f.Paper
	lengths := []int{in.dim, in.dim, in.dim, 10 * in.dim, 10 * in.dim} // of compare
	if tasks[0].Name() == eval.TuningTask {
		lengths = append(lengths, gridLengths(in.dim)...)
	}
	e.Plan(append(lengths, sweepLengths(in.dim, paperFactors)...)...)
	if err := in.tune(ctx, e, &h, tasks); err != nil {
		return err
	}
	if err := in.compare(ctx, e, h, b, tasks); err != nil {
		return err
	}
	if in.sweep, err = sweep(ctx, e, h, paperFactors, tasks); err != nil {
		return err
	}
	if in.tuned != nil {
		if err := in.tuned.draw(filepath.Join(dir, "tune")); err != nil {
			return err
		}
	}
	return drawSweep(in.sweep, paperFactors, filepath.Join(dir, "sweep"))
}

// tune sets λ and K of h to what the grid says, or to the defaults.
func (in *paperInput) tune(ctx context.Context, e *experiment.Experiment, h *model.Paper, tasks []eval.Task) error {
	h.Atoms = 10 * e.X.Dim
	if tasks[0].Name() != eval.TuningTask {
		in.untuned = "there are no data of " + eval.TuningTask
		return nil
	}
	x, err := dense(ctx, e, tasks[:1])
	if err != nil {
		return err
	}
	if in.untuned = x.Result(eval.TuningTask).Note; in.untuned != "" {
		return nil
	}
	if in.tuned, err = grid(ctx, e, *h, tasks[0], x); err != nil {
		return err
	}
	*h = in.tuned.Best.Paper()
	return nil
}

// compare measures X, its alternative transformations, A and B.
func (in *paperInput) compare(ctx context.Context, e *experiment.Experiment, a, b model.Paper, tasks []eval.Task) error {
	names := namesOf(tasks)
	in.all = &eval.Table{Tasks: names, Options: e.Setting.Protocol}
	add := func(name string, r *experiment.Record, err error) error {
		if err == nil {
			in.all.Rows = append(in.all.Rows, r.Row(name, names))
		}
		return err
	}
	x, err := dense(ctx, e, tasks)
	if err := add("X", x, err); err != nil {
		return err
	}
	for _, name := range []string{"thresh1", "thresh2"} {
		r, err := e.Untrained(ctx, name, tasks, func() *eval.Representation {
			return eval.NewSparse(name, eval.Transforms[name](e.X))
		})
		if err := add(name, r, err); err != nil {
			return err
		}
	}
	in.a, err = e.Point(ctx, a, tasks)
	if err := add("A", in.a, err); err != nil {
		return err
	}
	b.Lambda, b.Atoms = a.Lambda, a.Atoms
	in.b, err = e.Point(ctx, b, tasks)
	return add("B", in.b, err)
}

// writeReport writes the report in Markdown.
func writeReport(w io.Writer, inputs []*paperInput, missing []string) error {
	var b strings.Builder
	b.WriteString("# Sparse overcomplete word vectors: the paper's experiments\n\n" +
		"Written by `overcomplete paper`, after Faruqui, Tsvetkov, Yogatama, Dyer and Smith (ACL 2015), §3. X are the dense\n" +
		"vectors, A the sparse ones of method A, B the binary ones of method B.\n\n")
	if len(missing) > 0 {
		b.WriteString("Data that are not there, so that the tables have no such column:\n\n")
		for _, m := range missing {
			b.WriteString("- " + escape.Markdown(m) + "\n")
		}
		b.WriteString("\n")
	}
	writeHyper(&b, inputs)
	writeResults(&b, inputs)
	writeCompare(&b, inputs)
	writeLength(&b, inputs)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeHyper(b *strings.Builder, inputs []*paperInput) {
	b.WriteString("## Hyperparameters\n\nChosen for A by the grid below, and kept for B.\n\n")
	rows := table.Table{{"X", "words", "L", "λ", "τ", "K", "zeros in A, %", "in B, %", "chosen by"}}
	for _, in := range inputs {
		h := in.a.Paper()
		by := eval.TuningTask
		switch {
		case in.tuned == nil:
			by = "default: " + in.untuned
		case !in.tuned.Reached:
			by = fmt.Sprintf("sparsest: none has %v %% zeros", 100*experiment.MinSparsity)
		}
		rows = append(rows, []string{in.name, strconv.Itoa(in.words), strconv.Itoa(in.dim), shortest(h.Lambda), shortest(h.Tau), strconv.Itoa(h.Atoms),
			fmt.Sprintf("%.1f", 100*in.a.Metrics.Sparsity), fmt.Sprintf("%.1f", 100*in.b.Metrics.Sparsity), by})
	}
	b.WriteString(rows.Markdown(nil))
	for _, in := range inputs {
		fmt.Fprintf(b, "\n### %s\n\n", escape.Markdown(in.name))
		if in.tuned == nil {
			fmt.Fprintf(b, "Not tuned: %s. λ and K are the defaults of `overcomplete train`.\n", escape.Markdown(in.untuned))
			continue
		}
		fmt.Fprintf(b, "%s\n%s.\n\n![%s against the share of zeros](%s/tune.svg)\n", in.tuned.table().Markdown(nil), upperFirst(in.tuned.verdict()), eval.TuningTask, url.PathEscape(in.name))
	}
	b.WriteString("\n")
}

// upperFirst capitalises a sentence, unless it begins with λ.
func upperFirst(s string) string {
	if strings.HasPrefix(s, "λ") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func writeResults(b *strings.Builder, inputs []*paperInput) {
	b.WriteString("## Results\n")
	for _, in := range inputs {
		fmt.Fprintf(b, "\n### %s\n\n", escape.Markdown(in.name))
		rows := in.all.Rows
		table := *in.all
		table.Rows = []eval.Row{rows[0], rows[3], rows[4]}
		table.WriteMarkdown(b) // a Builder takes everything
	}
	b.WriteString("\n")
}

func writeCompare(b *strings.Builder, inputs []*paperInput) {
	b.WriteString("## Alternative transformations\n\nAverages of the tasks, ± standard error.\n\n")
	rows := table.Table{{""}}
	for _, in := range inputs {
		rows[0] = append(rows[0], in.name)
	}
	rows[0] = append(rows[0], "Average")
	for i, row := range inputs[0].all.Rows {
		line := []string{row.Name}
		var sum, variances float64
		for _, in := range inputs {
			a := in.all.Average(in.all.Rows[i])
			sum, variances = sum+a.Score, variances+a.Stderr*a.Stderr
			line = append(line, a.String())
		}
		n := float64(len(inputs))
		rows = append(rows, append(line, eval.Result{Score: sum / n, Stderr: math.Sqrt(variances) / n}.String()))
	}
	b.WriteString(rows.Markdown(nil) + "\n")
}

func writeLength(b *strings.Builder, inputs []*paperInput) {
	b.WriteString("## Length of the vectors\n\nThe bars are standard errors of single averages. All lengths were measured on the same test items, so that\n" +
		"differences between them are surer than the bars.\n")
	for _, in := range inputs {
		fmt.Fprintf(b, "\n### %s, λ = %s\n\n", escape.Markdown(in.name), shortest(in.a.Paper().Lambda))
		if len(in.sweep.Averaged()) == 0 {
			b.WriteString("No task has a score for all lengths, so that there is no average to draw.\n\n")
		} else {
			fmt.Fprintf(b, "![average against K/L](%s/sweep.svg)\n\n", url.PathEscape(in.name))
		}
		in.sweep.WriteMarkdown(b)
	}
}
