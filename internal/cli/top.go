package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/interpret"
)

func newTop() *cobra.Command {
	var words, dimensions int
	var order string
	var skipBad bool
	cmd := &cobra.Command{
		Use:   "top MODEL [DIMENSION...]",
		Short: "Show the top words of dimensions",
		Long: `Top shows the words with the largest values in each of these dimensions, numbered
from 0, or in those of the highest variance over all words. Where no value is positive,
it shows those with the most negative ones, after a minus.

With --sort coherence these are the dimensions that mean most: those in whose top words
"overcomplete intrusion auto --save" found the most intruders that are as frequent, and
among equal ones those in whose quarters q1 to q4 it did. The percentages are shown.

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
			if order != "variance" && order != "coherence" {
				return usagef("--sort is %q, want variance or coherence", order)
			}
			x, labels, err := loadLabelled(cmd, args[0], skipBad)
			if err != nil {
				return err
			}
			variances := x.Variances()
			var scores map[int]interpret.Score
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
					if _, ok := scores[k]; ok || order == "variance" {
						chosen = append(chosen, k)
					}
				}
				slices.SortStableFunc(chosen, func(a, b int) int {
					return cmp.Or(cmp.Compare(scores[b].Matched, scores[a].Matched), slices.Compare(scores[b].Quarters, scores[a].Quarters), cmp.Compare(variances[b], variances[a]))
				})
				chosen = chosen[:min(dimensions, len(chosen))]
			}
			top := []topDimension{}
			for _, k := range chosen {
				entries, negative := topOrBottom(x, k, words)
				d := topDimension{Dimension: k, Label: labels.Of(x, k, negative), Variance: variances[k], Words: []topWord{}}
				if score, ok := scores[k]; ok {
					d.Coherence = &score
				}
				for _, e := range entries {
					d.Words = append(d.Words, topWord{newItem(x, e.Row), e.Value})
				}
				top = append(top, d)
			}
			return show(cmd, top, func(b *strings.Builder) { printTop(b, top, x.Codes.Texts != nil) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&words, "words", "n", 8, "words of each dimension")
	flags.IntVar(&dimensions, "dimensions", 5, "how many dimensions, if none are named")
	flags.StringVar(&order, "sort", "variance", "`what` puts dimensions first: a high variance, or coherence")
	addRare(cmd)
	addSkipBad(cmd, &skipBad)
	addJSON(cmd, "print the words with their values as JSON")
	return cmd
}

// readScores returns the scores of the dimensions of the model at path.
func readScores(path string, dimensions int) (map[int]interpret.Score, error) {
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
	scores := make(map[int]interpret.Score)
	for _, s := range c.Scores {
		scores[s.Dimension] = s
	}
	return scores, nil
}

type topDimension struct {
	Dimension int              `json:"dimension"`
	Label     string           `json:"label"`
	Variance  float64          `json:"variance"`
	Coherence *interpret.Score `json:"coherence,omitempty"` // with --sort coherence
	Words     []topWord        `json:"words"`
}

type topWord struct {
	item
	Value float32 `json:"value"`
}

// topOrBottom returns the words with the largest values in a dimension, up to n, or those with
// the most negative ones if none is positive.
func topOrBottom(x *interpret.Index, k, n int) (entries []interpret.Entry, negative bool) {
	if entries = x.Top(k, n); len(entries) > 0 {
		return entries, false
	}
	entries = x.Bottom(k, n)
	return entries, len(entries) > 0
}

// printTop prints dimensions, a line each, and below it its texts if rows are texts.
func printTop(b *strings.Builder, top []topDimension, texts bool) {
	cells := labelColumn(top, func(d topDimension) string { return d.Label })
	coherence := ""
	if len(top) > 0 && top[0].Coherence != nil {
		coherence = "  top   q1   q2   q3   q4"
	}
	words := "words"
	if texts {
		words = "texts"
	}
	fmt.Fprintf(b, "dimension  variance%s  %s  %s\n", coherence, cells[0], words)
	for i, d := range top {
		var words []string
		for _, e := range d.Words {
			words = append(words, e.Word)
		}
		coherence := ""
		if d.Coherence != nil {
			coherence = fmt.Sprintf("  %3.0f", 100*d.Coherence.Matched)
			for _, q := range d.Coherence.Quarters {
				coherence += fmt.Sprintf("  %3.0f", 100*q)
			}
			coherence = fmt.Sprintf("%-25s", coherence)
		}
		sign := ""
		if len(d.Words) > 0 && d.Words[0].Value < 0 {
			sign = "− "
		}
		if texts {
			words = nil
		}
		fmt.Fprintf(b, "%9d  %8.2e%s  %s  %s%s\n", d.Dimension, d.Variance, coherence, cells[i+1], sign, wordList(words, " "))
		for _, e := range d.Words {
			if texts {
				fmt.Fprintf(b, "%20.3g  %v\n", e.Value, e.item)
			}
		}
	}
}
