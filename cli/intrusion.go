package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/printing"
	"overcomplete/lab/intrusion"
	"overcomplete/model"
	"overcomplete/train"
)

func newIntrusion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "intrusion",
		Short: "Test interpretability by word intrusion",
		Long: `Intrusion is the paper's test of the meaning of dimensions (§4.1): four of five words have
the largest values in a dimension, the fifth does not. If the dimension means something,
people find this intruder. Make and score test with people, auto without.`,
		Example: `  overcomplete intrusion make X=glove.txt A=model -o test.tsv
  overcomplete intrusion score test.key.json ann.tsv ben.tsv
  overcomplete intrusion auto model --input glove.txt --reference other.txt`,
	}
	cmd.AddCommand(newIntrusionMake(), newIntrusionScore(), newIntrusionAuto())
	return cmd
}

type autoFlags struct {
	input, reference string
	seed             uint64
	save             bool
}

func newIntrusionAuto() *cobra.Command {
	var f autoFlags
	cmd := &cobra.Command{
		Use:   "auto MODEL... --input VECTORS --reference VECTORS",
		Short: "Measure word intrusion accuracy without people, beside controls",
		Long: `Auto asks about all live dimensions of each model. The answer is the word with the
smallest mean cosine to the other four in --reference, other vectors of the same words,
minus their mean. They should be learned from other text or by another method. It prints
accuracies in percent with 95 % confidence intervals from a bootstrap over dimensions;
chance is 20:

  any        the top four words of a dimension and any intruder: ten questions each
  matched    the same with intruders next to the top words in the order of words, so that
             their frequency doesn't give them away: ten questions each

The top words of any direction in good vectors are similar. Compare with the controls:
equally sparse codes with random atoms ("random dictionary") and with random frequent words
of --input as atoms ("word rows"), and --input itself, which has no zeros.

Negative poles of signed codes are measured, too. Only words that all files have count;
they are looked up in lower case if the reference does not have them as they stand.`,
		Example: `  overcomplete intrusion auto model --input sg.bin --reference glove.6B.50d.txt
  overcomplete intrusion auto model --input sg.bin --reference glove.6B.50d.txt --save
  overcomplete top model --sort intrusion`,
		Args: cobra.MinimumNArgs(1),
		RunE: f.auto,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "", "`file` of the dense vectors that the models were trained on")
	flags.StringVar(&f.reference, "reference", "", "`file` of other vectors of the same words, which replace the judges")
	flags.Var(seedOf(&f.seed, 1), "seed", "seed of questions and controls")
	flags.BoolVar(&f.save, "save", false, "write the accuracy of each dimension into the models' directories")
	addSkipBad(cmd)
	addJSON(cmd, "print the same, and the accuracy of each dimension, as JSON")
	cmd.MarkFlagRequired("input")
	cmd.MarkFlagRequired("reference")
	return cmd
}

func (f *autoFlags) auto(cmd *cobra.Command, paths []string) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	input, source, err := readDense(cmd, f.input)
	if err != nil {
		return err
	}
	reference, judge, err := readDense(cmd, f.reference)
	if err != nil {
		return err
	}
	var models []*model.Model
	var identities []modeldir.Identity
	var words [][]string
	for _, path := range paths {
		identity, _ := modeldir.Identify(path)
		m, err := loadModel(cmd, path)
		if err != nil {
			return err
		}
		if m.Dictionary.Dim != input.Dim {
			return usagef("%s: wrong length of vectors for %s (got %d, want %d); --input must be the vectors that it was trained on", f.input, path, input.Dim, m.Dictionary.Dim)
		}
		if m.Info.Encoding.Input.SHA256 != source.SHA256 {
			warn(stderr, "%s was trained on another file, %s, than %s", path, m.Info.Encoding.Input.Name, f.input)
		}
		models, identities, words = append(models, m), append(identities, identity), append(words, m.Codes.IDs)
	}
	t, err := intrusion.NewTest(input, reference, words...)
	if err != nil {
		return intrusionError(err, strings.Join(paths, ", ")+", "+f.input, f.input, f.reference)
	}
	t.Name, t.Seed = judge.Name, f.seed
	var r autoResult
	var accuracies []*intrusion.Accuracy // one per model
	for i, m := range models {
		results, err := t.Score(ctx, filepath.Base(paths[i]), i, m, cpu.Device{})
		if errors.Is(err, train.ErrIdenticalRows) {
			return usagef("%s: the first %d words that all files have share one vector", f.input, train.TrainingRows(t.X, m.Codes.Cols).Len())
		}
		if err != nil {
			return err
		}
		accuracies, r.Sets = append(accuracies, results[0].Accuracy), append(r.Sets, results...)
	}
	dense, err := t.MeasureDense(ctx)
	if err != nil {
		return err
	}
	dense.Scores = nil
	r.Sets = append(r.Sets, intrusion.Result{Name: filepath.Base(f.input), Accuracy: dense})
	if f.save {
		for i, a := range accuracies {
			save := func() error { return a.Save(ctx, filepath.Join(paths[i], modeldir.Intrusion)) }
			if err := identities[i].WriteBeside(ctx, save); err != nil {
				return err
			}
		}
	}
	return show(cmd, r, r.print)
}

// intrusionError adds the names of the files to an error of [intrusion.NewTest].
func intrusionError(err error, others, input, reference string) error {
	switch {
	case errors.Is(err, intrusion.ErrNoWords):
		return usagef("no word is in all of %s and %s", others, reference)
	case errors.Is(err, intrusion.ErrSameVectors):
		return usagef("%s has the same vectors as %s; --reference must be vectors from other text", reference, input)
	}
	return err
}

type autoResult struct {
	Sets []intrusion.Result `json:"sets"`
}

func (r *autoResult) print(b *strings.Builder) {
	rows := printing.Table{{"", "dimensions", "any", "matched"}}
	add := func(name string, a *intrusion.Accuracy) {
		percent := func(e intrusion.Estimate) string {
			if a.Dimensions == 0 {
				return "–"
			}
			return fmt.Sprintf("%.1f (%.1f to %.1f)", 100*e.Mean, 100*e.Low, 100*e.High)
		}
		rows = append(rows, []string{name, strconv.Itoa(a.Dimensions), percent(a.Any), percent(a.Matched)})
	}
	for _, s := range r.Sets {
		name := printing.Word(s.Name)
		if s.Control != "" {
			name = "  " + string(s.Control)
		}
		add(name, s.Accuracy)
		if s.Negative != nil {
			add("  negative poles", s.Negative)
		}
	}
	rows = append(rows, []string{"chance", "", "20.0", "20.0"})
	fmt.Fprintf(b, "word intrusion accuracy, %%, over %d words\n%s", r.Sets[0].Words, rows.Text("lr"))
}
