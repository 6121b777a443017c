package experiment

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"

	"overcomplete/internal/escape"
	"overcomplete/internal/lab/eval"
	"overcomplete/internal/table"
	"overcomplete/model"
)

// Repeated is what the paper's experiments found with a file of vectors.
type Repeated struct {
	Name       string // in the report; its figures are in the directory of that name
	dim, words int
	tuned      *Tuned // nil if it could not be
	untuned    string // why
	a, b       *Record
	all        *eval.Table // of X, thresh1, thresh2, A and B
	sweep      *Swept
}

// Repeat does all of the paper's experiments with the experiment's vectors, and draws them. A
// and B are trained with h, but for what A's tuning decides.
func (e *Experiment) Repeat(ctx context.Context, name string, h model.Paper, tasks []eval.Task) (*Repeated, error) {
	in := &Repeated{Name: name, dim: e.X.Dim, words: e.X.Len()}
	points := append([]model.Recipe{nil, nil, nil}, multiples(h, in.dim, []int{10, 10})...) // of compare
	if tasks[0].Name() == eval.TuningTask {
		points = append(append(points, nil), grid(h, in.dim)...) // X tells whether it can be tuned
	}
	e.expect(append(append(points, nil), multiples(h, in.dim, Lengths)...)...)
	b := h
	b.Method = model.Nonnegative
	if err := in.tune(ctx, e, &h, tasks); err != nil {
		return nil, err
	}
	if err := in.compare(ctx, e, h, b, tasks); err != nil {
		return nil, err
	}
	var err error
	if in.sweep, err = e.Sweep(ctx, multiples(h, in.dim, Lengths), tasks); err != nil {
		return nil, err
	}
	if in.tuned != nil {
		if err := in.tuned.Panel().Save(e.path("tune")); err != nil {
			return nil, err
		}
	}
	return in, in.sweep.Panel().Save(e.path("sweep"))
}

// tune sets λ and K of h to what the grid says, or to the defaults.
func (in *Repeated) tune(ctx context.Context, e *Experiment, h *model.Paper, tasks []eval.Task) error {
	h.Atoms = 10 * e.X.Dim
	if tasks[0].Name() != eval.TuningTask {
		in.untuned = "there are no data of " + eval.TuningTask
		return nil
	}
	x, err := e.Dense(ctx, tasks[:1])
	if err != nil {
		return err
	}
	if in.untuned = x.Result(eval.TuningTask).Note; in.untuned != "" {
		return nil
	}
	if in.tuned, err = e.Tune(ctx, *h, tasks[0]); err != nil {
		return err
	}
	*h = in.tuned.Best.Paper()
	return nil
}

// compare measures X, its alternative transformations, A and B.
func (in *Repeated) compare(ctx context.Context, e *Experiment, a, b model.Paper, tasks []eval.Task) error {
	names := eval.Names(tasks)
	in.all = &eval.Table{Tasks: names, Options: e.Setting.Protocol}
	add := func(name string, r *Record, err error) error {
		if err == nil {
			in.all.Rows = append(in.all.Rows, r.Row(name, names))
		}
		return err
	}
	x, err := e.Dense(ctx, tasks)
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
	b.Lambda, b.Atoms = a.Lambda, a.Atoms // but its own epochs
	in.b, err = e.Point(ctx, b, tasks)
	return add("B", in.b, err)
}

// WriteReport writes a report of all inputs in Markdown.
func WriteReport(w io.Writer, inputs []*Repeated, missing []string) error {
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

func writeHyper(b *strings.Builder, inputs []*Repeated) {
	b.WriteString("## Hyperparameters\n\nChosen for A by the grid below, and kept for B.\n\n")
	rows := table.Table{{"X", "words", "L", "λ", "τ", "K", "zeros in A, %", "in B, %", "chosen by"}}
	for _, in := range inputs {
		h := in.a.Paper()
		by := eval.TuningTask
		switch {
		case in.tuned == nil:
			by = "default: " + in.untuned
		case !in.tuned.Reached:
			by = fmt.Sprintf("sparsest: none has %v %% zeros", 100*MinSparsity)
		}
		rows = append(rows, []string{in.Name, strconv.Itoa(in.words), strconv.Itoa(in.dim), number(h.Lambda), number(h.Tau), strconv.Itoa(h.Atoms),
			fmt.Sprintf("%.1f", 100*in.a.Metrics.Sparsity), fmt.Sprintf("%.1f", 100*in.b.Metrics.Sparsity), by})
	}
	b.WriteString(rows.Markdown(nil))
	for _, in := range inputs {
		fmt.Fprintf(b, "\n### %s\n\n", escape.Markdown(in.Name))
		if in.tuned == nil {
			fmt.Fprintf(b, "Not tuned: %s. λ and K are the defaults of `overcomplete train`.\n", escape.Markdown(in.untuned))
			continue
		}
		fmt.Fprintf(b, "%s\n%s.\n\n![%s against the share of zeros](%s/tune.svg)\n", in.tuned.Table().Markdown(nil), upperFirst(in.tuned.Verdict()), eval.TuningTask, url.PathEscape(in.Name))
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

func writeResults(b *strings.Builder, inputs []*Repeated) {
	b.WriteString("## Results\n")
	for _, in := range inputs {
		fmt.Fprintf(b, "\n### %s\n\n", escape.Markdown(in.Name))
		rows := in.all.Rows
		table := *in.all
		table.Rows = []eval.Row{rows[0], rows[3], rows[4]}
		table.WriteMarkdown(b) // a Builder takes everything
	}
	b.WriteString("\n")
}

func writeCompare(b *strings.Builder, inputs []*Repeated) {
	b.WriteString("## Alternative transformations\n\nAverages of the tasks, ± standard error.\n\n")
	rows := table.Table{{""}}
	for _, in := range inputs {
		rows[0] = append(rows[0], in.Name)
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

func writeLength(b *strings.Builder, inputs []*Repeated) {
	b.WriteString("## Length of the vectors\n\nThe bars are standard errors of single averages. All lengths were measured on the same test items, so that\n" +
		"differences between them are surer than the bars.\n")
	for _, in := range inputs {
		fmt.Fprintf(b, "\n### %s, λ = %s\n\n", escape.Markdown(in.Name), number(in.a.Paper().Lambda))
		if len(in.sweep.Averaged()) == 0 {
			b.WriteString("No task has a score for all lengths, so that there is no average to draw.\n\n")
		} else {
			fmt.Fprintf(b, "![average against K/L](%s/sweep.svg)\n\n", url.PathEscape(in.Name))
		}
		in.sweep.WriteMarkdown(b)
	}
}
