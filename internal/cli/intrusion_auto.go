package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

func newIntrusionAuto() *cobra.Command {
	var inputPath, referencePath string
	var seed uint64
	var skipBad, asJSON bool
	cmd := &cobra.Command{
		Use:   "auto MODEL... --input VECTORS --reference VECTORS",
		Short: "Score models by word intrusion without people, beside controls",
		Long: `Auto plays the test on all live dimensions of each model, ten intruders each: the
answer is the word whose mean cosine to the other four is the smallest in other vectors
of the same words, --reference, learned from other text or by another method. It prints
the percentage of right answers, guessing being 20, with 95 % confidence intervals from a
bootstrap over dimensions.

A score alone says little: the top words of any direction in good vectors are alike.
So there are controls, always: the dense vectors that were trained on, --input; their
projection on random directions, with as many nonzeros for each word as the
model has; and intruders that are as frequent as the top words, next to them in the
order of words, so that frequency does not give them away.

All are restricted to the words that all have. A word that the reference does not have
as it stands is looked up in lower case.`,
		Example: "  overcomplete intrusion auto model --input sg.bin --reference glove.6B.50d.txt",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, source, err := readDense(cmd.Context(), cmd.ErrOrStderr(), inputPath, skipBad)
			if err != nil {
				return err
			}
			reference, _, err := readDense(cmd.Context(), cmd.ErrOrStderr(), referencePath, skipBad)
			if err != nil {
				return err
			}
			var models []*model.Model
			for _, path := range args {
				m, err := loadModel(cmd.Context(), path)
				if err != nil {
					return err
				}
				if m.Info.Input.Dim != input.Dim {
					return usagef("%s has %d dimensions, but %s was trained on vectors of %d: --input is to be those", inputPath, input.Dim, path, m.Info.Input.Dim)
				}
				if m.Info.Input.SHA256 != source.SHA256 {
					warn(cmd.ErrOrStderr(), "%s was trained on another file, %s, than %s", path, m.Info.Input.Name, inputPath)
				}
				models = append(models, m)
			}
			shared := newSharedWords(input, reference, models)
			if len(shared.input.Words) == 0 {
				return usagef("no word is in all of %s, %s and %s", strings.Join(args, ", "), inputPath, referencePath)
			}
			if slices.Equal(shared.input.Data, shared.reference.Data) {
				return usagef("%s has the same vectors as %s: --reference is to be others, which were not trained on", referencePath, inputPath)
			}
			r := autoResult{Words: len(shared.input.Words)}
			play := func(name string, codes *vectors.Sparse) error {
				t := interpret.NewIntrusion(interpret.NewIndex(codes))
				coherence, err := t.OddOneOut(cmd.Context(), shared.reference, seed)
				r.Sets = append(r.Sets, autoSet{name, coherence})
				return err
			}
			for i, m := range models {
				name := filepath.Base(args[i])
				if err := play(name, shared.codes[i]); err != nil {
					return err
				}
				x := shared.centered(&m.Dictionary)
				random, err := interpret.RandomProjection(cmd.Context(), x, &shared.codes[i].CSR, m.Info.Training.Method == "B", seed)
				if err != nil {
					return err
				}
				if err := play(name+", random directions", random); err != nil {
					return err
				}
			}
			if err := play(filepath.Base(inputPath), interpret.FromDense(shared.input)); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r)
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&inputPath, "input", "", "`file` of the dense vectors that the models were trained on")
	flags.StringVar(&referencePath, "reference", "", "`file` of other vectors of the same words, to judge by")
	flags.Uint64Var(&seed, "seed", 1, "seed of intruders and random directions")
	addSkipBad(cmd, &skipBad)
	flags.BoolVar(&asJSON, "json", false, "print the same as JSON")
	cmd.MarkFlagRequired("input")
	cmd.MarkFlagRequired("reference")
	return cmd
}

// sharedWords are the words that all of an auto test know, in the order of the
// first model, and the rows that belong to them.
type sharedWords struct {
	input, reference *vectors.Dense
	codes            []*vectors.Sparse // of each model
}

func newSharedWords(input, reference *vectors.Dense, models []*model.Model) *sharedWords {
	inInput, inReference := rowsByWord(input.Words), rowsByWord(reference.Words)
	inModel := make([]map[string]int, len(models))
	for i, m := range models {
		inModel[i] = rowsByWord(m.Codes.Words)
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
	s := &sharedWords{codes: make([]*vectors.Sparse, len(models))}
	var inputRows, referenceRows []int
	modelRows := make([][]int, len(models))
words:
	for i, word := range models[0].Codes.Words {
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
			modelRows[m] = append(modelRows[m], row)
		}
	}
	s.input, s.reference = selectDense(input, inputRows), selectDense(reference, referenceRows)
	for m := range models {
		s.codes[m] = interpret.SelectRows(models[m].Codes, modelRows[m])
	}
	return s
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
	Words int       `json:"words"` // that all sets and the reference have
	Sets  []autoSet `json:"sets"`
}

type autoSet struct {
	Name string `json:"name"`
	interpret.Coherence
}

func (r autoResult) print(w io.Writer) error {
	wide := 0
	for _, s := range r.Sets {
		wide = max(wide, utf8.RuneCountInString(escape.Word(s.Name)))
	}
	percent := func(e interpret.Estimate) string {
		return fmt.Sprintf("%5.1f (%.1f to %.1f)", 100*e.Mean, 100*e.Low, 100*e.High)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "intruders found, in %% of instances, over %d words\n", r.Words)
	fmt.Fprintf(&b, "%-*s  dimensions  %-20s  %s\n", wide, "", "any intruder", "as frequent as the top words")
	for _, s := range r.Sets {
		fmt.Fprintf(&b, "%-*s  %10d  %-20s  %s\n", wide, escape.Word(s.Name), s.Dimensions, percent(s.Any), percent(s.Matched))
	}
	fmt.Fprintf(&b, "%-*s  %10s  %5.1f\n", wide, "guessing", "", 20.)
	_, err := io.WriteString(w, b.String())
	return err
}
