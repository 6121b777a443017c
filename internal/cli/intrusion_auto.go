package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/internal/escape"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/table"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
)

// autoFlags are what intrusion auto was asked for.
type autoFlags struct {
	input, reference string
	seed             uint64
	save             bool
}

func newIntrusionAuto() *cobra.Command {
	var f autoFlags
	cmd := &cobra.Command{
		Use:   "auto MODEL... --input VECTORS --reference VECTORS",
		Short: "Score models by word intrusion without people, beside controls",
		Long: `Auto plays the test on all live dimensions of each model. The answer is the word whose
mean cosine to the other four is the smallest in other vectors of the same words,
--reference, learned from other text or by another method, less their mean. It prints
the percentage of right answers, guessing being 20, with 95 % confidence intervals from
a bootstrap over dimensions (those of q1 to q4 are in --json):

  any intruder    the top four words of a dimension: ten questions each
  as frequent     the same, with intruders next to the top words in the order of words,
                  so that frequency does not give them away: ten questions each
  q1 to q4        top words are few of those that have a dimension. Here four words
                  are drawn from each quarter of its positive values, q1 the largest;
                  the intruder, as frequent, has the value 0: five questions each, about
                  dimensions with sixteen such words or more

A score alone says little: the top words of any direction in good vectors are alike. So
there are controls, always:

  random directions    --input projected on them, with as many nonzeros for each word as
                       the model has
  random dictionary    codes as "overcomplete encode" makes them, as sparse as the
                       model's, with atoms of random directions
  word rows            the same with frequent words of --input, drawn at random, for
                       atoms: their vectors less the mean of these, scaled to one norm,
                       as many as the model has atoms or as there are
  and --input itself   in which no value is 0

Of models with codes of both signs, the same is asked about the negative sides of
dimensions, whose top words have the most negative values.

All are restricted to the words that all have. A word that the reference does not have
as it stands is looked up in lower case.

--save writes the scores of each dimension into the directories of the models, as
coherence.json, for "overcomplete top --sort intrusion". It replaces older scores.`,
		Example: `  overcomplete intrusion auto model --input sg.bin --reference glove.6B.50d.txt
  overcomplete intrusion auto model --input sg.bin --reference glove.6B.50d.txt --save
  overcomplete top model --sort intrusion`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.auto(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "", "`file` of the dense vectors that the models were trained on")
	flags.StringVar(&f.reference, "reference", "", "`file` of other vectors of the same words, to judge by")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of questions and controls")
	flags.BoolVar(&f.save, "save", false, "write the scores of each dimension into the models' directories")
	addSkipBad(cmd)
	addJSON(cmd, "print the same, and the score of each dimension, as JSON")
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
	var marks []modeldir.Identity
	for _, path := range paths {
		mark, _ := modeldir.Identify(path)
		marks = append(marks, mark)
		m, err := loadModel(cmd, path)
		if err != nil {
			return err
		}
		if m.Dictionary.Dim != input.Dim {
			return usagef("%s has %d dimensions, but %s was trained on vectors of %d: --input is to be those", f.input, input.Dim, path, m.Dictionary.Dim)
		}
		if m.Info.Encoding.Input.SHA256 != source.SHA256 {
			warn(stderr, "%s was trained on another file, %s, than %s", path, m.Info.Encoding.Input.Name, f.input)
		}
		if _, err := coherenceFile(path); f.save && err != nil {
			return err
		}
		models = append(models, m)
	}
	var words [][]string
	for _, m := range models {
		words = append(words, m.Codes.Words)
	}
	t, err := intrusion.NewTest(input, reference, words...)
	if err != nil {
		return intrusionError(err, strings.Join(paths, ", ")+", "+f.input, f.input, f.reference)
	}
	t.Name, t.Seed = judge.Name, f.seed
	var r autoResult
	var found []interpret.Coherence // of each model
	for i, m := range models {
		results, err := t.Score(ctx, filepath.Base(paths[i]), i, m, cpu.Device{}, intrusion.Controls...)
		if errors.Is(err, train.ErrAllSame) {
			return usagef("%s: of the words that all have, the first, %d, have one vector: there is nothing to tell them apart by", f.input, train.Frequent(t.X, m.Codes.Cols).Len())
		}
		if err != nil {
			return err
		}
		found = append(found, results[0].Coherence)
		r.Sets = append(r.Sets, results...)
	}
	dense, err := t.ScoreDense(ctx, filepath.Base(f.input))
	if err != nil {
		return err
	}
	r.Sets = append(r.Sets, dense)
	if f.save {
		for i, path := range paths {
			file, err := coherenceFile(path)
			if err != nil {
				return err
			}
			if err := marks[i].WriteBeside(ctx, func() error { return found[i].Save(ctx, file) }); err != nil {
				return err
			}
		}
	}
	return show(cmd, r, r.print)
}

// intrusionError names what was to have words in common, if err says that they can't be
// played with.
func intrusionError(err error, others, input, reference string) error {
	switch {
	case errors.Is(err, intrusion.ErrNoWords):
		return usagef("no word is in all of %s and %s", others, reference)
	case errors.Is(err, intrusion.ErrSameVectors):
		return usagef("%s has the same vectors as %s: --reference is to be others, which were not trained on", reference, input)
	}
	return err
}

type autoResult struct {
	Sets []intrusion.Result `json:"sets"`
}

func (r *autoResult) print(b *strings.Builder) {
	rows := table.Table{{"", "dimensions", "any intruder", "as frequent", "q1", "q2", "q3", "q4", "of dimensions"}}
	add := func(name string, c *interpret.Coherence) {
		percent := func(e interpret.Estimate) string {
			if c.Dimensions == 0 { // which have words enough that the reference knows
				return "–"
			}
			return fmt.Sprintf("%.1f (%.1f to %.1f)", 100*e.Mean, 100*e.Low, 100*e.High)
		}
		row := []string{name, strconv.Itoa(c.Dimensions), percent(c.Any), percent(c.Matched), "", "", "", "", ""}
		for i, q := range c.Quarters { // four, or none
			row[4+i], row[8] = fmt.Sprintf("%.1f", 100*q.Mean), strconv.Itoa(c.Quartered)
		}
		rows = append(rows, row)
	}
	for _, s := range r.Sets {
		name := escape.Word(s.Name)
		if s.Control != "" {
			name = "  " + string(s.Control)
		}
		add(name, &s.Coherence)
		if s.Negative != nil {
			add("  negative sides", s.Negative)
		}
	}
	rows = append(rows, []string{"guessing", "", "20.0", "20.0", "20.0", "20.0", "20.0", "20.0", ""})
	fmt.Fprintf(b, "intruders found, in %% of questions, over %d words\n%s", r.Sets[0].Words, rows.Text("lr", nil))
}
