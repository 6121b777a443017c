package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/lab/classes"
	"overcomplete/interpret"
)

func newColumns() *cobra.Command {
	var values, dimensions int
	cmd := &cobra.Command{
		Use:   "columns MODEL [COLUMN]",
		Short: "Show the dimensions that separate the values of a column of texts",
		Long: `Columns prints the columns of a model of texts, such as label or split, and their numbers
of values. For each of the most frequent values of one COLUMN it prints the dimensions that
separate its rows from all others, with the AUC: the probability that one of its rows has
a larger value in the dimension than another row. It also prints the number of dimensions
with p < 0.001, which is one in a thousand by chance.

` + aboutLabels,
		Example: `  overcomplete columns model
  overcomplete columns model label --values 6 --dimensions 5`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			texts := x.Codes.Texts
			if texts == nil || len(texts.Columns) == 0 {
				return usagef("%s has no columns: only models of tables of texts have some", args[0])
			}
			if len(args) == 1 {
				return listColumns(cmd, x)
			}
			i := slices.Index(texts.Names(), args[1])
			if i < 0 {
				return usagef("%s has no column %.60q; it has %s", args[0], args[1], wordList(texts.Names(), ", "))
			}
			found, err := classes.Separate(cmd.Context(), x, texts.Columns[i].Values, values, dimensions)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return usagef("no value of column %.60q has at least ten rows, and ten others beside", args[1])
			}
			type separation struct {
				Label string `json:"label"`
				classes.Separation
			}
			type class struct {
				classes.Class
				Dimensions []separation `json:"dimensions"`
			}
			var all []class
			for _, c := range found {
				labelled := class{Class: c, Dimensions: []separation{}}
				for _, d := range c.Dimensions {
					pole := interpret.Pole{Dimension: d.Dimension, Negative: d.AUC < 0.5} // that of the class
					if !slices.Contains(x.Poles(d.Dimension), pole) {
						pole.Negative = false
					}
					labelled.Dimensions = append(labelled.Dimensions, separation{labels.Name(x, pole), d})
				}
				all = append(all, labelled)
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
	flags.IntVar(&values, "values", 10, "most values of the column to print")
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
			fmt.Fprintf(b, "%s: %d values, most often %s\n", wordList([]string{c.Name}, ""), c.Values, wordList(most, ", "))
		}
	})
}
