package paper

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/cluster"
	"overcomplete/internal/printing"
	"overcomplete/lab/eval"
	"overcomplete/lab/figure"
	"overcomplete/lab/intrusion"
	"overcomplete/model"
	"overcomplete/vectors"
)

// ReportFile is the name of the report in the directory of results.
const ReportFile = "report.md"

// Report runs all experiments with the λ and K that [Experiments.Tune] chooses. It writes
// [ReportFile] and, beside it, tables as TSV files and figures.
func (e *Experiments) Report(ctx context.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# The paper's experiments with %s\n\nWritten by `overcomplete paper report`: %d words of %d dimensions. X are the dense vectors, "+
		"A the sparse vectors of method A, B the binary vectors of method B.\n\n", printing.Markdown(e.Source.Name), e.X.Len(), e.X.Dim)
	t, err := e.Tune(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(&b, "## Choice of λ and K\n\n%s\n%s.\n\n![%s over sparsity](tune.svg)\n\n", t.Table().Markdown(nil), t.Verdict(), eval.TuningTask)
	chosen := t.Settings[t.Chosen]
	m, err := e.model(ctx, model.Signed, chosen.Lambda, chosen.Atoms)
	if err != nil {
		return err
	}
	binary, err := e.model(ctx, model.Nonnegative, chosen.Lambda, chosen.Atoms)
	if err != nil {
		return err
	}
	all, err := e.scores(ctx, &b, m, binary)
	if err != nil {
		return err
	}
	if err := e.lengths(ctx, &b, chosen.Lambda, all.Rows[0]); err != nil {
		return err
	}
	if err := e.intrusion(ctx, &b, m.Codes, binary.Codes); err != nil {
		return err
	}
	if err := e.clusters(ctx, &b, binary.Codes); err != nil {
		return err
	}
	if err := e.heatMap(&b, m.Codes); err != nil {
		return err
	}
	return atomicfile.WriteFile(ctx, filepath.Join(e.Dir, ReportFile), true, func(w io.Writer) error {
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// scores compares X with its transformations, A and B (§3, "Alternative Transformations" and the
// table of results).
func (e *Experiments) scores(ctx context.Context, b *strings.Builder, a, binary *model.Model) (*eval.Table, error) {
	t := &eval.Table{Tasks: eval.Names(e.Tasks), Seed: evalSeed}
	for _, r := range []*eval.Representation{
		eval.NewDense("X", e.X), eval.NewSparse("thresh1", eval.Transforms["thresh1"](e.X)), eval.NewSparse("thresh2", eval.Transforms["thresh2"](e.X)),
		representation("A", a), representation("B", binary),
	} {
		row, err := e.score(ctx, r, e.Tasks)
		if err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
	fmt.Fprintf(b, "## Scores\n\nSparsity: %.1f %% (A), %.1f %% (B).\n\n", 100*a.Info.Encoding.Sparsity, 100*binary.Info.Encoding.Sparsity)
	return t, e.write(b, "scores.tsv", t)
}

// lengths varies K (§3, "Effect of Vector Length"). The first row of its table scores X.
func (e *Experiments) lengths(ctx context.Context, b *strings.Builder, lambda float64, x eval.Row) error {
	t := &eval.Table{Tasks: eval.Names(e.Tasks), Seed: evalSeed, Rows: []eval.Row{x}}
	for _, factor := range e.Lengths {
		m, err := e.model(ctx, model.Signed, lambda, factor*e.X.Dim)
		if err != nil {
			return err
		}
		row, err := e.score(ctx, representation(fmt.Sprintf("K = %d·L", factor), m), e.Tasks)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, row)
	}
	var line figure.Line
	p := figure.Panel{Title: fmt.Sprintf("average of %d tasks (dotted: X)", len(t.Averaged())), XLabel: "K/L", Level: float64(t.Average(x).Score)}
	for i, factor := range e.Lengths {
		average := t.Average(t.Rows[i+1])
		line.Points = append(line.Points, figure.Point{X: float64(factor), Y: float64(average.Score), Deviation: float64(average.Stderr)})
	}
	p.Lines = append(p.Lines, line)
	if err := p.Save(filepath.Join(e.Dir, "lengths.svg")); err != nil {
		return err
	}
	fmt.Fprintf(b, "## Length\n\nMethod A with λ = %s. The standard errors hold for single averages; all lengths share their test items.\n\n"+
		"![Average score over K/L](lengths.svg)\n\n", number(lambda))
	return e.write(b, "lengths.tsv", t)
}

// write writes a table to the report and to a TSV file with one score per line.
func (e *Experiments) write(b *strings.Builder, file string, t *eval.Table) error {
	b.WriteString(t.Markdown() + "\n")
	rows := [][]string{{"vectors", "task", "score", "stderr", "covered", "total"}}
	for _, row := range t.Rows {
		for i, r := range row.Results {
			rows = append(rows, []string{row.Name, t.Tasks[i], number(float64(r.Score)), number(float64(r.Stderr)), strconv.Itoa(r.Covered), strconv.Itoa(r.Total)})
		}
	}
	return writeTSV(filepath.Join(e.Dir, file), rows)
}

// intrusion adds the word intrusion accuracy of X, A and B to the report (§4.1). The vectors of e.Test are the judge.
func (e *Experiments) intrusion(ctx context.Context, b *strings.Builder, a, binary *vectors.Sparse) error {
	if e.Test == nil {
		return nil
	}
	e.Test.Seed = 1
	rows := printing.Table{{"", "dimensions", "word intrusion accuracy, % ↑", "95 % interval"}}
	for i, measure := range []func() (*intrusion.Accuracy, error){
		func() (*intrusion.Accuracy, error) { return e.Test.MeasureDense(ctx) },
		func() (*intrusion.Accuracy, error) { return e.Test.Measure(ctx, e.Test.Codes(0, a)) },
		func() (*intrusion.Accuracy, error) { return e.Test.Measure(ctx, e.Test.Codes(0, binary)) },
	} {
		c, err := measure()
		if err != nil {
			return err
		}
		rows = append(rows, []string{[]string{"X", "A", "B"}[i], strconv.Itoa(c.Dimensions), fmt.Sprintf("%.1f", 100*c.Any.Mean), fmt.Sprintf("%.1f to %.1f", 100*c.Any.Low, 100*c.Any.High)})
	}
	rows = append(rows, []string{"guessing", "", "20.0", ""})
	fmt.Fprintf(b, "## Word intrusion\n\nThe reference vectors choose the word among five that is not a top word of the dimension.\n\n%s\n", rows.Markdown(nil))
	return writeTSV(filepath.Join(e.Dir, "intrusion.tsv"), rows)
}

// clusters lists the words of random dimensions of B beside the words of random k-means clusters of X (§2.2).
func (e *Experiments) clusters(ctx context.Context, b *strings.Builder, binary *vectors.Sparse) error {
	dimensions := make([][]string, binary.Cols)
	for i, word := range binary.IDs {
		index, _ := binary.Row(i)
		for _, k := range index {
			dimensions[k] = append(dimensions[k], word)
		}
	}
	clusters := make([][]string, min(100, e.X.Len()))
	of, err := cluster.KMeans(ctx, e.X.Data, e.X.Dim, len(clusters), 1)
	if err != nil {
		return err
	}
	for i, c := range of {
		clusters[c] = append(clusters[c], e.X.IDs[i])
	}
	rows := printing.Table{{"", "words", "first words"}}
	for i, groups := range [][][]string{dimensions, clusters} {
		shown := 0
		for _, k := range rand.New(rand.NewPCG(1, 0)).Perm(len(groups)) {
			if words := groups[k]; len(words) > 0 && shown < 5 {
				shown++
				name := []string{"dimension", "k-means"}[i]
				rows = append(rows, []string{fmt.Sprintf("%s %d", name, k), strconv.Itoa(len(words)), strings.Join(words[:min(8, len(words))], " ")})
			}
		}
	}
	fmt.Fprintf(b, "## Clusters\n\nRandom dimensions of B as clusters of words, beside random ones of %d clusters of X by k-means.\n\n%s\n", len(clusters), rows.Markdown(nil))
	return writeTSV(filepath.Join(e.Dir, "clusters.tsv"), rows)
}
