package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/table"
	"overcomplete/interpret"
)

func newTop() *cobra.Command {
	var words, dimensions int
	var order string
	cmd := &cobra.Command{
		Use:   "top MODEL [DIMENSION...]",
		Short: "Show the top words of dimensions",
		Long: `Top shows the words with the largest values in each of these dimensions, numbered
from 0, or in those of the highest variance over all words. Where values are negative, the
most negative ones have a line of their own, whose label has a minus; the side with the
larger values comes first.

With --sort coherence these are the dimensions that mean most: those in whose top words,
of the better side, "overcomplete intrusion auto --save" found the most intruders that are
as frequent, and among equal ones those in whose quarters q1 to q4 it did. The percentages
are shown. --sort likeness needs no other vectors: the eight strongest words of the better
side have the most in common but for the dimension, as the mean cosine of their codes
without it, less that of any two words. 0 is chance.

` + aboutLabels + `

` + aboutInput,
		Example: `  overcomplete top model
  overcomplete top model --sort coherence --dimensions 20
  overcomplete top model 210 218 --words 20
  overcomplete top glove.6B.300d.txt.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(1, count{"--words", words}, count{"--dimensions", dimensions}); err != nil {
				return err
			}
			if len(args) > 1 && (cmd.Flags().Changed("dimensions") || cmd.Flags().Changed("sort")) {
				return usagef("give dimensions, or --dimensions and --sort to choose them, not both")
			}
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			variances := x.Variances()
			var scores map[bool]map[int]interpret.Score // of positive sides, and of negative ones
			if order == "coherence" {
				if scores, err = readScores(args[0], len(variances)); err != nil {
					return err
				}
			}
			var chosen []int
			for _, arg := range args[1:] {
				k, err := strconv.Atoi(arg)
				if err != nil || k < 0 || k >= len(variances) {
					return usagef("there is no dimension %.100q in %s, want 0 to %d", arg, args[0], len(variances)-1)
				}
				chosen = append(chosen, k)
			}
			if len(chosen) == 0 {
				for k := range variances {
					_, positive := scores[false][k]
					if _, negative := scores[true][k]; positive || negative || order != "coherence" {
						chosen = append(chosen, k)
					}
				}
				better := func(k int) interpret.Score {
					return slices.MaxFunc([]interpret.Score{scores[false][k], scores[true][k]}, compareScores)
				}
				alike := make([]float64, len(variances)) // of the better sides
				if order == "likeness" {
					for k := range alike {
						alike[k] = x.Likeness(k, false)
						if negative := x.Likeness(k, true); !(alike[k] >= negative) && !math.IsNaN(negative) {
							alike[k] = negative
						}
					}
				}
				slices.SortStableFunc(chosen, func(a, b int) int { // NaN is less than all
					return cmp.Or(compareScores(better(b), better(a)), cmp.Compare(alike[b], alike[a]), cmp.Compare(variances[b], variances[a]))
				})
				chosen = chosen[:min(dimensions, len(chosen))]
			}
			top := []topDimension{}
			for _, k := range chosen {
				d := topDimension{Dimension: k, Variance: variances[k], Sides: []topSide{}}
				for _, negative := range []bool{x.Stronger(k), !x.Stronger(k)} {
					entries := x.Side(k, words, negative)
					if len(entries) == 0 {
						continue
					}
					side := topSide{Label: labels.Of(x, k, negative), Negative: negative}
					if score, ok := scores[negative][k]; ok {
						side.Coherence = &score
					}
					if order == "likeness" {
						if likeness := x.Likeness(k, negative); !math.IsNaN(likeness) {
							side.Likeness = &likeness
						}
					}
					for _, e := range entries {
						side.Words = append(side.Words, topWord{newItem(x, e.Row), e.Value})
					}
					d.Sides = append(d.Sides, side)
				}
				top = append(top, d)
			}
			return show(cmd, top, func(b *strings.Builder) { printTop(b, top, order, x.Codes.Texts != nil) })
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&words, "words", "n", 8, "words of each dimension")
	flags.IntVar(&dimensions, "dimensions", 5, "how many dimensions, if none are named")
	flags.StringVar(&order, "sort", "variance", "`what` puts dimensions first: a high variance, coherence, or likeness")
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the words with their values as JSON")
	return cmd
}

// compareScores orders scores by their matched intruders, and then by quarters.
func compareScores(a, b interpret.Score) int {
	return cmp.Or(cmp.Compare(a.Matched, b.Matched), slices.Compare(a.Quarters, b.Quarters))
}

// readScores returns the scores of the positive sides, and of the negative ones, of the dimensions
// of the model at path.
func readScores(path string, dimensions int) (map[bool]map[int]interpret.Score, error) {
	file, err := coherenceFile(path)
	if err != nil {
		return nil, err
	}
	c, err := interpret.ReadCoherence(file, dimensions)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef(`%s has no scores: first run "overcomplete intrusion auto %s --input VECTORS --reference VECTORS --save"`, path, path)
	}
	if err != nil {
		return nil, usageError{err}
	}
	scores := map[bool]map[int]interpret.Score{false: {}, true: {}}
	for negative, c := range map[bool]*interpret.Coherence{false: c, true: c.Negative} {
		if c != nil {
			for _, s := range c.Scores {
				scores[negative][s.Dimension] = s
			}
		}
	}
	return scores, nil
}

type topDimension struct {
	Dimension int       `json:"dimension"`
	Variance  float64   `json:"variance"`
	Sides     []topSide `json:"sides"` // that have words, the one with the larger values first
}

type topSide struct {
	Label     string           `json:"label"`
	Negative  bool             `json:"negative,omitempty"`
	Coherence *interpret.Score `json:"coherence,omitempty"` // with --sort coherence
	Likeness  *float64         `json:"likeness,omitempty"`  // with --sort likeness
	Words     []topWord        `json:"words"`
}

type topWord struct {
	item
	Value float32 `json:"value"`
}

// printTop prints sides of dimensions, a line each, and below it its texts if rows are texts.
func printTop(b *strings.Builder, top []topDimension, order string, texts bool) {
	scores := map[string][]string{"coherence": {"top", "q1", "q2", "q3", "q4"}, "likeness": {"alike"}}[order]
	words := "words"
	if texts {
		words = "texts"
	}
	rows := table.Table{append(append([]string{"dimension", "variance"}, scores...), "label", words)}
	for _, d := range top {
		row := []string{strconv.Itoa(d.Dimension), fmt.Sprintf("%.2e", d.Variance)}
		if len(d.Sides) == 0 { // no word uses it
			rows = append(rows, row)
		}
		for _, side := range d.Sides {
			row = append(append(row, side.scores(len(scores))...), side.Label)
			if texts {
				rows = append(rows, append(row, ""))
				for _, e := range side.Words {
					rows = append(rows, []string{fmt.Sprintf("%20.3g  %v", e.Value, e.item)})
				}
			} else {
				var words []string
				for _, e := range side.Words {
					words = append(words, e.Word)
				}
				rows = append(rows, append(row, wordList(words, " ")))
			}
			row = []string{"", ""} // the other side says no more of the dimension
		}
	}
	b.WriteString(rows.Text("rr"+strings.Repeat("r", len(scores))+"l", nil))
}

// scores returns the cells of a side's scores, n of them, blank where it has none.
func (s topSide) scores(n int) []string {
	cells := make([]string, n)
	if s.Coherence != nil {
		for i, score := range append([]float64{s.Coherence.Matched}, s.Coherence.Quarters...) {
			cells[i] = fmt.Sprintf("%3.0f", 100*score)
		}
	}
	if s.Likeness != nil {
		cells[0] = fmt.Sprintf("%.2f", *s.Likeness)
	}
	return cells
}
