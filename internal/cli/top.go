package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func newTop() *cobra.Command {
	var words, dimensions int
	var skipBad, asJSON bool
	cmd := &cobra.Command{
		Use:   "top MODEL [DIMENSION...]",
		Short: "Show the top words of dimensions",
		Long: `Top shows the words with the largest values in each of these dimensions, numbered
from 0, or in those of the highest variance over all words.

` + aboutLabels + `

` + aboutInput,
		Example: `  overcomplete top model
  overcomplete top model 210 218 --words 20
  overcomplete top glove.6B.300d.txt.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(1, count{"--words", words}, count{"--dimensions", dimensions}); err != nil {
				return err
			}
			if len(args) > 1 && cmd.Flags().Changed("dimensions") {
				return usagef("give dimensions or --dimensions, how many, not both")
			}
			x, err := loadIndex(cmd, args[0], skipBad)
			if err != nil {
				return err
			}
			labels, err := loadLabels(args[0], x)
			if err != nil {
				return err
			}
			variances := x.Variances()
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
					chosen = append(chosen, k)
				}
				slices.SortStableFunc(chosen, func(a, b int) int { return cmp.Compare(variances[b], variances[a]) })
				chosen = chosen[:min(dimensions, len(chosen))]
			}
			top := []topDimension{}
			for _, k := range chosen {
				d := topDimension{Dimension: k, Label: labels.Of(x, k, false), Variance: variances[k], Words: []topWord{}}
				for _, e := range x.Top(k, words) {
					d.Words = append(d.Words, topWord{x.Codes.Words[e.Row], e.Value})
				}
				top = append(top, d)
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), top)
			}
			return printTop(cmd.OutOrStdout(), top)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&words, "words", "n", 8, "words of each dimension")
	flags.IntVar(&dimensions, "dimensions", 5, "how many dimensions of the highest variance")
	addSkipBad(cmd, &skipBad)
	flags.BoolVar(&asJSON, "json", false, "print the words with their values as JSON")
	return cmd
}

type topDimension struct {
	Dimension int       `json:"dimension"`
	Label     string    `json:"label"`
	Variance  float64   `json:"variance"`
	Words     []topWord `json:"words"`
}

type topWord struct {
	Word  string  `json:"word"`
	Value float32 `json:"value"`
}

func printTop(w io.Writer, top []topDimension) error {
	var b strings.Builder
	labels := make([]string, len(top))
	for i, d := range top {
		labels[i] = d.Label
	}
	cells := labelColumn(labels)
	fmt.Fprintf(&b, "dimension  variance  %s  words\n", cells[0])
	for i, d := range top {
		var words []string
		for _, e := range d.Words {
			words = append(words, e.Word)
		}
		fmt.Fprintf(&b, "%9d  %8.2e  %s  %s\n", d.Dimension, d.Variance, cells[i+1], wordList(words, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
