package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/dates"
	"overcomplete/internal/printing"
	"overcomplete/interpret"
	"overcomplete/lab/classes"
	"overcomplete/model"
	"overcomplete/vectors"
)

func newColumns() *cobra.Command {
	var values, dimensions int
	var against, by string
	cmd := &cobra.Command{
		Use:        "columns MODEL [COLUMN] [--against FILE]",
		SuggestFor: []string{"contrast", "drift", "classes"},
		Short:      "Compare sets of rows by their dimensions: values of a column, or files",
		Long: `Columns MODEL prints the columns of a model of texts, such as label or split, and their
numbers of values. Columns MODEL COLUMN compares the rows of each of the most frequent
values with all other rows. Rows without a value are left out. Dates (2024-03-05) are
grouped into days, weeks, months, quarters, years, decades or centuries, in order of time:
by the shortest of them that gives at most --values periods, or by --by, which prints all
periods unless --values is given. A period needs 10 rows. Columns MODEL --against FILE compares the rows of MODEL with the rows of FILE, a file of dense vectors of
the same kind, which it encodes with the dictionary and the settings of MODEL.

Each set is described by the dimensions that separate it best from the other rows:

  share    percentage of the rows in which the dimension isn't zero, on either side
  AUC      effect size: the probability that a row of the set has a larger value in the
           dimension than another row; 0.5 is chance
  p        two-sided p-value of the AUC (Mann and Whitney), adjusted for the number of
           dimensions (Benjamini and Hochberg): of the dimensions with p < 0.05, at most
           5 % are expected to be chance
  example  the row with the largest value, from the side with the larger share

The p-value assumes independent rows: near-duplicates make it too small.

` + aboutLabels,
		Example: `  overcomplete columns model
  overcomplete columns model label --values 6 --dimensions 5
  overcomplete columns model day --by year
  overcomplete columns model --against new.parquet`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case against != "" && len(args) == 2:
				return usagef("--against compares all rows; drop it, or column %.60q", args[1])
			case against != "":
				return compareFiles(cmd, args[0], against, dimensions)
			case len(args) == 1:
				if err := refuseFlags(cmd, "is for a COLUMN", "values", "dimensions", "by"); err != nil {
					return err
				}
			}
			return compareValues(cmd, args[0], args[1:], by, values, dimensions)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&against, "against", "", "compare with the rows of this `file` of dense vectors")
	flags.StringVar(&by, "by", "", "`period` of a column of dates: day, week, month, quarter, year, decade or century")
	flags.Var(count(&values, 10), "values", "most values of the column to print; with --by, all by default")
	flags.Var(count(&dimensions, 5), "dimensions", "most dimensions of each set")
	excludes(cmd, "against", "values", "by")
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON, with three examples of each dimension and whole texts")
	return cmd
}

// minSet is the minimum number of rows of a set. Below it, the normal approximation of U is inaccurate.
const minSet = 10

// compareValues compares the values of the given column, or lists the columns if none is given.
func compareValues(cmd *cobra.Command, path string, name []string, by string, values, dimensions int) error {
	x, labels, err := loadLabelled(cmd, path)
	if err != nil {
		return err
	}
	texts := x.Codes.Texts
	if texts == nil || len(texts.Columns) == 0 {
		return usagef("%s has no columns; only models of tables of texts do", path)
	}
	if len(name) == 0 {
		return listColumns(cmd, x)
	}
	column, err := columnOf(path, x.Codes, name[0])
	if err != nil {
		return err
	}
	column, notDates := byPeriod(column, by, values)
	if by != "" && notDates != nil {
		return usagef("--by %.20s, column %.60q: %w", by, name[0], notDates)
	}
	if notDates != nil && dates.Mostly(column) {
		warn(cmd.ErrOrStderr(), "column %.60q isn't grouped by time: %v", name[0], notDates)
	}
	order, counts := byFrequency(column)
	rows := len(column) - counts[""]
	delete(counts, "")
	order = slices.DeleteFunc(order, func(v string) bool { return counts[v] < minSet || rows-counts[v] < minSet })
	if len(order) == 0 {
		return usagef("column %.60q: too few rows to compare (got %d values in %d rows, want a value with at least %d rows, and as many other rows)", name[0], len(counts), rows, minSet)
	}
	others := ""
	if len(counts) == 2 { // the comparison of the second value is the same
		others, order = order[1], order[:1]
	}
	if by == "" || cmd.Flags().Changed("values") {
		if notDates == nil && len(order) > values {
			warn(cmd.ErrOrStderr(), "column %.60q: the %d most frequent of %d periods are shown, %d are left out", name[0], values, len(order), len(order)-values)
		}
		order = order[:min(values, len(order))]
	}
	if notDates == nil {
		slices.Sort(order) // in order of time
	}
	found, err := classes.Separate(cmd.Context(), x, column, order, dimensions)
	if err != nil {
		return err
	}
	return showSets(cmd, x, found, others, func(p interpret.Pole) string { return labels.Name(x, p) })
}

// byPeriod replaces the values of a column of dates by their periods. Without by, there are at most n periods,
// unless they are centuries. If the values aren't dates, byPeriod returns the column and an error.
func byPeriod(column []string, by string, n int) (periods []string, err error) {
	days, err := dates.Parse(column)
	if err != nil {
		return column, err
	}
	s := dates.Divide(days, n, n)
	if by != "" {
		if s, err = dates.DivideBy(days, by); err != nil {
			return column, err
		}
	}
	periods = make([]string, len(column))
	for i, p := range s.Of {
		if p >= 0 {
			periods[i] = s.Periods[p].Label
		}
	}
	return periods, nil
}

// compareFiles compares the rows of a model with the rows of a file of dense vectors.
func compareFiles(cmd *cobra.Command, path, against string, dimensions int) error {
	if !model.Is(path) || model.Is(against) {
		return usagef("--against compares a model with a file of dense vectors (got %s and %s)", path, against)
	}
	m, own, labels, err := loadNamed(cmd, path)
	if err != nil {
		return err
	}
	e := m.Info.Encoding
	o := encode.Defaults(m.Info)
	if o.Steps, o.Gap = e.Steps, e.Gap; o.Steps == 0 && o.Gap == 0 {
		return usagef("the codes of %s are from its training, and codes of %s would be from encode, which differ; encode the vectors of %s, too, and compare that model", path, against, path)
	}
	skip, _ := cmd.Flags().GetBool("skip-bad")
	dense, _, err := readVectors(cmd, against, vectors.ReadOptions{SkipBad: skip, Rows: e.Input.Kind()})
	if err != nil {
		return err
	}
	if min(m.Codes.Rows, dense.Len()) < minSet {
		return usagef("%s has %d rows and %s %d, want at least %d of each", path, m.Codes.Rows, against, dense.Len(), minSet)
	}
	other, err := encode.Model(cmd.Context(), m, dense, cpu.Device{}, o)
	if cmd.Context().Err() != nil {
		return err
	}
	if err != nil {
		return usagef("%s: %w", against, err)
	}
	both := &vectors.Sparse{IDs: slices.Concat(m.Codes.IDs, other.Codes.IDs), CSR: vectors.CSR{Cols: m.Codes.Cols}}
	both.Append(&m.Codes.CSR)
	both.Append(&other.Codes.CSR)
	if m.Codes.Texts != nil && other.Codes.Texts != nil {
		both.Texts = &vectors.Texts{Text: slices.Concat(m.Codes.Texts.Text, other.Codes.Texts.Text)}
	}
	column := slices.Concat(slices.Repeat([]string{path}, m.Codes.Rows), slices.Repeat([]string{against}, other.Codes.Rows))
	x, err := indexCodes(both)
	if err != nil {
		return err
	}
	found, err := classes.Separate(cmd.Context(), x, column, []string{path}, dimensions)
	if err != nil {
		return err
	}
	return showSets(cmd, x, found, against, func(p interpret.Pole) string { return labels.Name(own, p) })
}

// A set is a class with names for its dimensions and examples.
type set struct {
	classes.Class
	Against    string       `json:"against,omitempty"` // the other rows, if they are a set
	Dimensions []separation `json:"dimensions"`
}

type separation struct {
	Label string `json:"label"`
	classes.Separation
	Examples []item `json:"examples"`
}

func showSets(cmd *cobra.Command, x *interpret.Index, found []classes.Class, others string, name func(interpret.Pole) string) error {
	var all []set
	for _, c := range found {
		s := set{Class: c, Against: others, Dimensions: []separation{}}
		for _, d := range c.Dimensions {
			examples := []item{}
			for _, row := range d.Examples {
				examples = append(examples, newItem(x, row, x.Label(d.Pole())...))
			}
			s.Dimensions = append(s.Dimensions, separation{name(d.Pole()), d, examples})
		}
		all = append(all, s)
	}
	return show(cmd, all, func(b *strings.Builder) {
		for i, s := range all {
			if i > 0 {
				b.WriteByte('\n')
			}
			s.print(b, x.Codes.Cols)
		}
	})
}

func (s set) print(b *strings.Builder, dimensions int) {
	others := "others"
	if s.Against != "" {
		others = shortText(s.Against, shownText)
	}
	fmt.Fprintf(b, "%s: %d rows; %s: %d; %d of %d dimensions with p < %v\n", shortText(s.Value, shownText), s.Rows, others, s.Others, s.Significant, dimensions, classes.Level)
	rows := printing.Table{{"dimension", "share", "others", "AUC", "p", "label", "example"}}
	for _, d := range s.Dimensions {
		example := ""
		if len(d.Examples) > 0 {
			example = d.Examples[0].String()
		}
		p := fmt.Sprintf("%.1g", d.P)
		if d.P == 0 {
			p = "<1e-300"
		}
		rows = append(rows, []string{strconv.Itoa(d.Dimension), fmt.Sprintf("%.1f %%", 100*d.Share), fmt.Sprintf("%.1f %%", 100*d.OtherShare),
			fmt.Sprintf("%.3f", d.AUC), p, d.Label, example})
	}
	b.WriteString(rows.Text("rrrrrl"))
}

// listColumns prints the columns, with their numbers of values and the most frequent ones.
func listColumns(cmd *cobra.Command, x *interpret.Index) error {
	const few = 5
	type column struct {
		Name   string   `json:"name"`
		Values int      `json:"values"`
		Most   []string `json:"most_frequent"`
		Dates  []string `json:"dates,omitempty"` // first and last day of a column of dates
	}
	var all []column
	for _, c := range x.Codes.Texts.Columns {
		order, _ := byFrequency(c.Values)
		all = append(all, column{c.Name, len(order), order[:min(few, len(order))], dates.Span(c.Values)})
	}
	return show(cmd, all, func(b *strings.Builder) {
		for _, c := range all {
			if c.Dates != nil {
				fmt.Fprintf(b, "%s: dates from %s to %s, %d values\n", wordList([]string{c.Name}, ""), c.Dates[0], c.Dates[1], c.Values)
				continue
			}
			var most []string
			for _, v := range c.Most {
				most = append(most, shortText(v, shownText/few))
			}
			fmt.Fprintf(b, "%s: %d values, most often %s\n", wordList([]string{c.Name}, ""), c.Values, wordList(most, ", "))
		}
	})
}
