package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/dates"
	"overcomplete/internal/escape"
	"overcomplete/internal/table"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
	"overcomplete/vectors"
)

func newTopics() *cobra.Command {
	var number int
	var column, by string
	cmd := &cobra.Command{
		Use:   "topics MODEL",
		Short: "Show the topics of texts, their shares and typical texts",
		Long: `Topics prints the topics of the rows of a model, the largest first: the label, the share
and the number of rows, three typical texts, and the labels of the largest themes within
the topic. --topics chooses their number without another training: themes are the leaves
of a tree, and topics its branches, so that a smaller number joins whole topics.

With --column, the most frequent values of a column are printed for each topic. If they are
dates (2024-03-05 or 2024-03-05T10:11:12Z), a bar for each period is printed instead, in
order of time: the height is the number of the topic's rows, a dot is a period without
rows. Days, weeks, months, quarters, years, decades or centuries are chosen by the span of
the dates, or with --by. A date counts as it is written, whatever its offset from UTC.

Empty texts have no topic.

--json prints "topics" and "themes", each with id, label, words, share, count and parent;
topics also have "examples", and with --column both have its "values". It also prints
"rows", the id of the topic of each row, or null; the counts of "blank" texts and of
"other" rows without a topic; and "dimensions", the theme with which each dimension
co-occurs most. For dates, it also prints the length of a period ("by") and the "periods"
of all rows; "values" then has each period, in the same order.`,
		Example: `  overcomplete topics model
  overcomplete topics model --topics 8 --column label
  overcomplete topics model --column day --by month
  overcomplete topics model --json > topics.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := loadModel(cmd, args[0])
			if err != nil {
				return err
			}
			var values []string
			if column == "" {
				err = refuseFlags(cmd, "is for a --column of dates", "by")
			} else {
				values, err = columnOf(args[0], m.Codes, column)
			}
			if err != nil {
				return err
			}
			x, err := newIndex(cmd, args[0], m)
			if err != nil {
				return err
			}
			t, err := newTopicTable(cmd.Context(), args[0], m, x, number)
			if err != nil {
				return err
			}
			t.AssignDimensions(&m.Codes.CSR)
			if column != "" {
				if err := breakDown(cmd, t, column, values, by); err != nil {
					return err
				}
			}
			return show(cmd, t, func(b *strings.Builder) { printTopics(b, t, column) })
		},
	}
	cmd.Flags().IntVar(&number, "topics", 0, "number of topics (default the model's)")
	cmd.Flags().StringVar(&column, "column", "", "print the most frequent values of this `column` of the texts")
	cmd.Flags().StringVar(&by, "by", "", "`period` of a column of dates: day, week, month, quarter, year, decade or century (default by the span of the dates)")
	addJSON(cmd, "print the same as JSON, with the topic of each row")
	return cmd
}

// breakDown sets the values of topics and themes to the values of a column or, of dates, to periods.
func breakDown(cmd *cobra.Command, t *topics.Table, column string, values []string, by string) error {
	err := t.OverTime(values, by)
	if err == nil {
		return nil
	}
	if by != "" {
		return usagef("--by %.20s, column %.60q: %w", by, column, err)
	}
	if dates.Mostly(values) {
		warn(cmd.ErrOrStderr(), "column %.60q isn't shown over time: %v", column, err)
	}
	t.BreakDown(values, shownValues)
	if order, _ := byFrequency(values); len(order) > manyValues {
		warn(cmd.ErrOrStderr(), "column %.60q has %d values: the %d most frequent of each topic are shown", column, len(order), shownValues)
	}
	return nil
}

// newTopicTable returns the topics of the model at path; number is 0 for the default.
func newTopicTable(ctx context.Context, path string, m *model.Model, x *interpret.Index, number int) (*topics.Table, error) {
	themes := m.Info.Training.Themes
	switch {
	case themes == nil:
		return nil, usagef("%s has no topics: if its texts aren't empty, train it with --topics 20, or another number", path)
	case number < 0 || number > themes.Len():
		return nil, usagef("--topics is %d, want 1 to %d, the number of themes of %s", number, themes.Len(), path)
	}
	labels, err := loadLabels(path, m.Codes.Cols)
	if err != nil {
		return nil, err
	}
	if err := checkMemory(topics.Memory(m.Codes.Rows), "the topics of %d rows", m.Codes.Rows); err != nil {
		return nil, err
	}
	t, err := topics.New(ctx, m, x, cmp.Or(number, themes.Topics))
	if err == nil {
		t.Rename(labels)
	}
	return t, err
}

// columnOf returns the values of a column of a model of texts.
func columnOf(path string, s *vectors.Sparse, name string) ([]string, error) {
	var names []string
	if s.Texts != nil {
		names = s.Texts.Names()
	}
	i := slices.Index(names, name)
	if i < 0 {
		return nil, usagef("%s has no column %.60q; it has %s", path, name, cmp.Or(wordList(names, ", "), "none"))
	}
	return s.Texts.Columns[i].Values, nil
}

// manyValues is the number of values of a column above which a warning says that most are not shown.
const manyValues = 1000

// shownValues and shownThemes limit the values of a column and the themes per topic.
const shownValues, shownThemes = 4, 4

// course returns a bar for each period, whose height is a number of rows, with the first, the last and the largest
// period. It merges adjacent periods of long series.
func course(periods, values []topics.Value) string {
	const longest = 80
	bars := []rune("▁▂▃▄▅▆▇█")
	merged := (len(values) + longest - 1) / longest
	counts := make([]int, (len(values)+merged-1)/merged)
	largest := 0
	for i, v := range values {
		counts[i/merged] += v.Count
		if v.Count > values[largest].Count {
			largest = i
		}
	}
	most := slices.Max(counts)
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", values[0].Value)
	for i, n := range counts {
		if slices.ContainsFunc(periods[i*merged:min((i+1)*merged, len(periods))], func(p topics.Value) bool { return p.AfterGap }) {
			b.WriteRune('…')
		}
		if n == 0 {
			b.WriteRune('·')
		} else {
			b.WriteRune(bars[(n*len(bars)-1)/most])
		}
	}
	fmt.Fprintf(&b, " %s", values[len(values)-1].Value)
	if v := values[largest]; v.Count > 0 {
		fmt.Fprintf(&b, ", most in %s: %.0f %%", v.Value, 100*v.Share)
	}
	return b.String()
}

// printTopics prints a line for each topic, with details below it.
func printTopics(b *strings.Builder, t *topics.Table, column string) {
	const indent = "         "
	if t.By != "" {
		column += " by " + t.By
		fmt.Fprintf(b, "%s, all rows: %s\n", escape.Text(column), course(t.Periods, t.Periods))
	}
	rows := table.Table{{"topic", "share", "rows", "label"}}
	for _, topic := range t.Topics {
		rows = append(rows, []string{fmt.Sprint(topic.ID), fmt.Sprintf("%.1f %%", 100*topic.Share), fmt.Sprint(topic.Count), escape.Text(topic.Label)})
	}
	lines := strings.SplitAfter(rows.Text("rrrl"), "\n")
	b.WriteString(lines[0])
	for n, topic := range t.Topics {
		b.WriteString(lines[n+1])
		var values, themes []string
		for _, v := range topic.Values {
			values = append(values, fmt.Sprintf("%s %.0f %%", shortText(v.Value, shownText/shownValues), 100*v.Share))
		}
		if t.By != "" {
			values = []string{course(t.Periods, topic.Values)}
		}
		if len(values) > 0 {
			fmt.Fprintf(b, "%s%s: %s\n", indent, escape.Text(column), strings.Join(values, ", "))
		}
		for _, theme := range t.Children(topic.ID) {
			if len(themes) < shownThemes {
				themes = append(themes, theme.Label)
			}
		}
		fmt.Fprintf(b, "%sthemes: %s\n", indent, escape.Text(strings.Join(themes, "; ")))
		for _, e := range topic.Examples {
			i := item{Word: e.Word}
			if e.Text != "" {
				i.Text = &e.Text
			}
			fmt.Fprintf(b, "%s%v\n", indent, i)
		}
	}
	if t.Blank > 0 {
		fmt.Fprintf(b, "empty texts: %d\n", t.Blank)
	}
	if t.Other > 0 {
		fmt.Fprintf(b, "rows without a topic: %d\n", t.Other)
	}
}
