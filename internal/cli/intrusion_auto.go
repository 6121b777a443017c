package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/escape"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// autoFlags are what intrusion auto was asked for.
type autoFlags struct {
	input, reference    string
	seed                uint64
	save, skipBad, json bool
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

All are restricted to the words that all have. A word that the reference does not have
as it stands is looked up in lower case.

--save writes the score of each dimension into the directories of the models, as
coherence.json, for "overcomplete top --sort coherence". It replaces older scores.`,
		Example: `  overcomplete intrusion auto model --input sg.bin --reference glove.6B.50d.txt
  overcomplete intrusion auto model --input sg.bin --reference glove.6B.50d.txt --save
  overcomplete top model --sort coherence`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.auto(cmd, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.input, "input", "", "`file` of the dense vectors that the models were trained on")
	flags.StringVar(&f.reference, "reference", "", "`file` of other vectors of the same words, to judge by")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of questions and controls")
	flags.BoolVar(&f.save, "save", false, "write the score of each dimension into the models' directories")
	addSkipBad(cmd, &f.skipBad)
	flags.BoolVar(&f.json, "json", false, "print the same, and the score of each dimension, as JSON")
	cmd.MarkFlagRequired("input")
	cmd.MarkFlagRequired("reference")
	return cmd
}

func (f *autoFlags) auto(cmd *cobra.Command, paths []string) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	input, source, err := readDense(ctx, stderr, f.input, f.skipBad)
	if err != nil {
		return err
	}
	reference, judge, err := readDense(ctx, stderr, f.reference, f.skipBad)
	if err != nil {
		return err
	}
	var models []*model.Model
	var marks []model.Mark
	for _, path := range paths {
		mark, _ := model.MarkOf(path)
		marks = append(marks, mark)
		m, err := loadModel(ctx, stderr, path)
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
	shared := newSharedWords(input, reference, words...)
	if err := shared.check(strings.Join(paths, ", ")+", "+f.input, f.input, f.reference); err != nil {
		return err
	}
	score := func(codes *vectors.Sparse) (interpret.Coherence, error) {
		return shared.score(ctx, codes, judge.Name, f.seed)
	}
	var r autoResult
	var found []interpret.Coherence // of each model
	for i, m := range models {
		name, codes := filepath.Base(paths[i]), interpret.SelectRows(m.Codes, shared.rows[i])
		y, _ := standardised(shared.input, codes.Cols)
		if y == nil {
			return usagef("%s: of the words that all have, the first, %d, have one vector: there is nothing to tell them apart by", f.input, train.Frequent(shared.input, codes.Cols).Len())
		}
		control := func(d model.Dictionary) (*vectors.Sparse, error) {
			most := encode.Most(float64(codes.Nonzeros())/float64(codes.Rows*codes.Cols), codes.Cols)
			encoded, err := encodeControl(ctx, d, y, cpu.Device{}, m.Info.Training.Recipe.Base().Method, most)
			if err != nil {
				return nil, err
			}
			return encoded.Codes, nil
		}
		c, err := score(codes)
		if err != nil {
			return err
		}
		found = append(found, c)
		r.add(name, "", c)
		for _, control := range []struct {
			name  string
			codes func() (*vectors.Sparse, error)
		}{
			{"random directions", func() (*vectors.Sparse, error) {
				return interpret.RandomProjection(ctx, shared.centered(&m.Dictionary), &codes.CSR, m.Info.Training.Recipe.Base().Method == model.Nonnegative, f.seed)
			}},
			{"random dictionary", func() (*vectors.Sparse, error) {
				return control(randomAtoms(codes.Cols, y.Dim, f.seed))
			}},
			{"word rows", func() (*vectors.Sparse, error) {
				return control(rowAtoms(y, codes.Cols, f.seed))
			}},
		} {
			codes, err := control.codes()
			if err != nil {
				return err
			}
			c, err := score(codes)
			if err != nil {
				return err
			}
			c.Scores = nil
			r.add(name, control.name, c)
		}
	}
	c, err := score(interpret.FromDense(shared.input))
	if err != nil {
		return err
	}
	c.Scores = nil
	r.add(filepath.Base(f.input), "", c)
	if f.save {
		for i, path := range paths {
			file, err := coherenceFile(path)
			if err == nil {
				err = marks[i].Check()
			}
			if err == nil {
				err = found[i].Save(ctx, file)
			}
			if err != nil {
				return err
			}
		}
	}
	if f.json {
		return printJSON(cmd.OutOrStdout(), r)
	}
	return r.print(cmd.OutOrStdout())
}

// sharedWords are the words that all of an auto test know, in the order of the
// first model, and the rows that belong to them.
type sharedWords struct {
	input, reference *vectors.Dense
	rows             [][]int // of each model
}

// newSharedWords takes the words of each model.
func newSharedWords(input, reference *vectors.Dense, models ...[]string) *sharedWords {
	inInput, inReference := rowsByWord(input.Words), rowsByWord(reference.Words)
	inModel := make([]map[string]int, len(models))
	for i, words := range models {
		inModel[i] = rowsByWord(words)
	}
	// Words must differ in the reference, too: "The" goes with "the" only where
	// "the" is no word itself.
	referenceRow := func(word string) (int, bool) {
		row, ok := inReference[word]
		if lower := strings.ToLower(word); !ok && lower != word {
			if _, taken := inModel[0][lower]; !taken {
				row, ok = inReference[lower]
				delete(inReference, lower) // of "May" and "MAY" the first has it
			}
		}
		return row, ok
	}
	s := &sharedWords{rows: make([][]int, len(models))}
	var inputRows, referenceRows []int
words:
	for i, word := range models[0] {
		if inModel[0][word] != i {
			continue // a repetition
		}
		rows := make([]int, len(models))
		for m := range models {
			row, ok := inModel[m][word]
			if !ok {
				continue words
			}
			rows[m] = row
		}
		in, ok := inInput[word]
		if !ok {
			continue
		}
		ref, ok := referenceRow(word)
		if !ok {
			continue
		}
		inputRows, referenceRows = append(inputRows, in), append(referenceRows, ref)
		for m, row := range rows {
			s.rows[m] = append(s.rows[m], row)
		}
	}
	s.input, s.reference = selectDense(input, inputRows), selectDense(reference, referenceRows)
	return s
}

// check returns an error, which names what was to have words in common, unless there is
// something to play with.
func (s *sharedWords) check(others, input, reference string) error {
	if len(s.input.Words) == 0 {
		return usagef("no word is in all of %s and %s", others, reference)
	}
	if slices.Equal(s.input.Data, s.reference.Data) {
		return usagef("%s has the same vectors as %s: --reference is to be others, which were not trained on", reference, input)
	}
	return nil
}

// score plays the test with codes of these words. Reference is its name.
func (s *sharedWords) score(ctx context.Context, codes *vectors.Sparse, reference string, seed uint64) (interpret.Coherence, error) {
	c, err := interpret.NewIntrusion(interpret.NewIndex(codes)).OddOneOut(ctx, s.reference, seed)
	c.Reference = reference
	return c, err
}

func rowsByWord(words []string) map[string]int {
	rows := make(map[string]int, len(words))
	for i, w := range words {
		if _, ok := rows[w]; !ok {
			rows[w] = i
		}
	}
	return rows
}

func selectDense(x *vectors.Dense, rows []int) *vectors.Dense {
	s := &vectors.Dense{Dim: x.Dim, Data: make([]float32, 0, len(rows)*x.Dim)}
	for _, i := range rows {
		s.Words, s.Data = append(s.Words, x.Words[i]), append(s.Data, x.Row(i)...)
	}
	return s
}

// centered returns the input less the mean of a dictionary.
func (s *sharedWords) centered(d *model.Dictionary) *vectors.Dense {
	x := &vectors.Dense{Words: s.input.Words, Dim: s.input.Dim, Data: make([]float32, len(s.input.Data))}
	d.Center(x.Data, s.input.Data)
	return x
}

type autoResult struct {
	Sets []autoSet `json:"sets"`
}

// autoSet is what was found of a model, of a control for it, or of the input. Dimensions
// have scores of their own only where a model's are.
type autoSet struct {
	Name    string `json:"name"`
	Control string `json:"control,omitempty"` // of the model of that name
	interpret.Coherence
}

func (r *autoResult) add(name, control string, c interpret.Coherence) {
	r.Sets = append(r.Sets, autoSet{name, control, c})
}

func (r *autoResult) print(w io.Writer) error {
	label := func(s autoSet) string {
		if s.Control != "" {
			return "  " + s.Control
		}
		return escape.Word(s.Name)
	}
	wide := 0
	for _, s := range r.Sets {
		wide = max(wide, utf8.RuneCountInString(label(s)))
	}
	percent := func(s autoSet, e interpret.Estimate) string {
		if s.Dimensions == 0 { // which have words enough that the reference knows
			return "    –"
		}
		return fmt.Sprintf("%5.1f (%.1f to %.1f)", 100*e.Mean, 100*e.Low, 100*e.High)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "intruders found, in %% of questions, over %d words\n", r.Sets[0].Words)
	fmt.Fprintf(&b, "%-*s  dimensions  %-20s  %-20s     q1     q2     q3     q4  of dimensions\n", wide, "", "any intruder", "as frequent")
	for _, s := range r.Sets {
		fmt.Fprintf(&b, "%-*s  %10d  %-20s  %-20s", wide, label(s), s.Dimensions, percent(s, s.Any), percent(s, s.Matched))
		for _, q := range s.Quarters {
			fmt.Fprintf(&b, "  %5.1f", 100*q.Mean)
		}
		if s.Quartered > 0 {
			fmt.Fprintf(&b, "  %13d", s.Quartered)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%-*s  %10s  %-20s  %-20s", wide, "guessing", "", " 20.0", " 20.0")
	b.WriteString(strings.Repeat("   20.0", 4) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}
