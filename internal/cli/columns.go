package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/interpret"
)

func newColumns() *cobra.Command {
	var values, dimensions int
	cmd := &cobra.Command{
		Use:   "columns MODEL [COLUMN]",
		Short: "Show which dimensions tell the values of a column apart, where rows are texts",
		Long: `Columns prints the columns that a model of texts keeps, such as label or split, and how
many values each has. Of one COLUMN it prints, for each of the values that most rows
have, the dimensions that tell these rows from all others: the AUC, which is the chance
that one of them has a larger value in the dimension than one of the others, and how
many dimensions tell them apart with p < 0.001. One in a thousand does so by chance.

` + aboutLabels,
		Example: `  overcomplete columns model
  overcomplete columns model label --values 6 --dimensions 5`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(1, count{"--values", values}, count{"--dimensions", dimensions}); err != nil {
				return err
			}
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			texts := x.Codes.Texts
			if texts == nil || len(texts.Columns) == 0 {
				return usagef("%s has no columns: they are those of a table of texts that it was made from", args[0])
			}
			if len(args) == 1 {
				return listColumns(cmd, x)
			}
			i := slices.Index(texts.Names(), args[1])
			if i < 0 {
				return usagef("%s has no column %.60q; it has %s", args[0], args[1], wordList(texts.Names(), ", "))
			}
			classes, err := x.Separate(cmd.Context(), texts.Columns[i].Values, values, dimensions)
			if err != nil {
				return err
			}
			if len(classes) == 0 {
				return usagef("no value of column %.60q has at least ten rows, and ten others beside", args[1])
			}
			type separated struct {
				Label string `json:"label"`
				interpret.Separated
			}
			type class struct {
				interpret.Class
				Dimensions []separated `json:"dimensions"`
			}
			var all []class
			for _, c := range classes {
				of := class{Class: c, Dimensions: []separated{}}
				for _, d := range c.Dimensions { // its name is that of the side on which the class is
					negative := d.AUC < 0.5 && len(x.Bottom(d.Dimension, 1)) > 0
					of.Dimensions = append(of.Dimensions, separated{labels.Of(x, d.Dimension, negative), d})
				}
				all = append(all, of)
			}
			return show(cmd, all, func(b *strings.Builder) {
				for _, c := range all {
					fmt.Fprintf(b, "%s: %d rows; %d of %d dimensions with p < 0.001, %.0f by chance\n", wordList([]string{c.Value}, ""), c.Rows, c.Significant, x.Codes.Cols, float64(x.Codes.Cols)/1000)
					for _, d := range c.Dimensions {
						fmt.Fprintf(b, "%9d  AUC %.3f  %s\n", d.Dimension, d.AUC, escape.Text(d.Label))
					}
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&values, "values", 10, "most values of the column to show")
	flags.IntVar(&dimensions, "dimensions", 5, "dimensions of each")
	addJSON(cmd, "print the same as JSON")
	return cmd
}

// listColumns prints the columns, with their numbers of values and the most frequent ones.
func listColumns(cmd *cobra.Command, x *interpret.Index) error {
	const few = 5
	type column struct {
		Name   string   `json:"name"`
		Values int      `json:"values"`
		Most   []string `json:"most_frequent"`
	}
	var all []column
	for _, c := range x.Codes.Texts.Columns {
		counts := map[string]int{}
		order := []string{}
		for _, v := range c.Values {
			if counts[v] == 0 {
				order = append(order, v)
			}
			counts[v]++
		}
		slices.SortStableFunc(order, func(a, b string) int { return counts[b] - counts[a] })
		all = append(all, column{c.Name, len(order), order[:min(few, len(order))]})
	}
	return show(cmd, all, func(b *strings.Builder) {
		for _, c := range all {
			var most []string
			for _, v := range c.Most {
				most = append(most, shortText(v, shownText/few))
			}
			fmt.Fprintf(b, "%s: %d values, most of all %s\n", wordList([]string{c.Name}, ""), c.Values, wordList(most, ", "))
		}
	})
}
