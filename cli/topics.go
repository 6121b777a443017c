package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/dates"
	"overcomplete/internal/printing"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
	"overcomplete/vectors"
)

func newTopics() *cobra.Command {
	var number int
	var column, by, vocabulary string
	cmd := &cobra.Command{
		Use:        "topics MODEL [TOPIC]",
		SuggestFor: []string{"themes"},
		Short:      "Show the topics of texts, their shares and typical texts",
		Long: `Topics prints the broad topics of the rows of a model, the largest first: the id, the
share and the number of rows, the label, the largest subtopics and three typical texts.
Topics are the branches of a tree whose leaves are themes. Topics MODEL TOPIC prints the
subtopics of the topic with this id in the same way, and so on down to the themes. The rows
and the label of a topic don't depend on the number of broad topics, which --topics changes
without another training; encoded rows have the topics and ids of their model, and with
--vocabulary MODEL its labels. The topic
"other" joins branches with less than half a percent of the rows, small ones whose texts
share no words, and rows that fit no theme. Empty texts have no topic.

With --column, the most frequent values of a column are printed for each topic. If they are
dates (2024-03-05 or 2024-03-05T10:11:12Z), a bar for each period is printed instead, in
order of time: the height is the number of the topic's rows, a dot is a period without
rows. Days, weeks, months, quarters, years, decades or centuries are chosen by the span of
the dates, or with --by. A date counts as it is written, whatever its offset from UTC.

--json prints the whole tree: the broad "topics" and all "subtopics", each with id, label,
words, share, count, parent, "examples" and, with --column, "values". It also prints
"rows", the id of the broad topic of each row, or null; the count of "blank" texts; and
"dimensions", the theme with which each dimension co-occurs most. For dates, it also prints
the length of a period ("by") and the "periods" of all rows; "values" then has each period,
in the same order.`,
		Example: `  overcomplete topics model
  overcomplete topics model 146
  overcomplete topics model --topics 8 --column label
  overcomplete topics model --column day --by month
  overcomplete topics model --json > topics.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := loadModel(cmd, args[0])
			if err != nil {
				return err
			}
			if isSet(cmd, "json") && len(args) == 2 {
				return usagef("--json prints the whole tree; drop it, or topic %.20q", args[1])
			}
			var values []string
			if column != "" {
				if values, err = columnOf(args[0], m.Codes, column); err != nil {
					return err
				}
			}
			x, err := newIndex(cmd, args[0], m)
			if err != nil {
				return err
			}
			t, err := newTopicTable(cmd.Context(), args[0], m, x, number)
			if err != nil {
				return err
			}
			if vocabulary != "" {
				if err := renameTopics(cmd, t, args[0], vocabulary, number); err != nil {
					return err
				}
			}
			t.AssignDimensions(&m.Codes.CSR)
			if column != "" {
				if err := breakDown(cmd, t, column, values, by); err != nil {
					return err
				}
			}
			list := t.Topics
			if len(args) == 2 {
				if list, err = subtopics(t, args[1]); err != nil {
					return err
				}
			}
			return show(cmd, t, func(b *strings.Builder) { printTopics(b, t, list, column) })
		},
	}
	cmd.Flags().Var(count(&number, 0), "topics", "number of topics (default the model's)")
	cmd.Flags().StringVar(&column, "column", "", "print the most frequent values of this `column` of the texts")
	cmd.Flags().StringVar(&by, "by", "", "`period` of a column of dates: day, week, month, quarter, year, decade or century (default by the span of the dates)")
	needs(cmd, "column", "by")
	cmd.Flags().StringVar(&vocabulary, "vocabulary", "", "label topics of encoded rows as this `model` does")
	addJSON(cmd, "print the same as JSON, with the topic of each row")
	return cmd
}

// renameTopics gives the topics the labels of the model that encoded the codes at path.
func renameTopics(cmd *cobra.Command, t *topics.Table, path, vocabulary string, number int) error {
	m, x, _, err := loadVocabulary(cmd, path, vocabulary)
	if err != nil {
		return err
	}
	by, err := newTopicTable(cmd.Context(), vocabulary, m, x, number)
	if err != nil {
		return err
	}
	var labels interpret.Labels
	for _, topic := range slices.Concat(by.Topics, by.Subtopics) {
		labels = append(labels, interpret.Label{ID: int(topic.ID), Name: topic.Label, Topic: true})
	}
	slices.SortFunc(labels, func(a, b interpret.Label) int { return cmp.Compare(a.ID, b.ID) })
	t.Rename(labels)
	return nil
}

func subtopics(t *topics.Table, id string) ([]topics.Topic, error) {
	for _, topic := range slices.Concat(t.Topics, t.Subtopics) {
		if fmt.Sprint(topic.ID) != id {
			continue
		}
		if list := t.Children(topic.ID); len(list) > 0 {
			return list, nil
		}
		return nil, usagef("topic %s, %s, is a theme: it has no subtopics", id, topic.Label)
	}
	return nil, usagef("no topic %.20q among %d broad topics and %d subtopics", id, len(t.Topics), len(t.Subtopics))
}

// breakDown sets the values of topics to the values of a column or, for a column of dates, to periods.
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
	distinct := slices.Compact(slices.Sorted(slices.Values(values)))
	switch {
	case !slices.ContainsFunc(distinct, func(s string) bool { return strings.TrimSpace(s) != "" }):
		warn(cmd.ErrOrStderr(), "column %.60q is empty", column)
	case len(distinct) > manyValues:
		warn(cmd.ErrOrStderr(), "column %.60q has %d values: the %d most frequent of each topic are shown", column, len(distinct), shownValues)
	}
	return nil
}

// newTopicTable returns the topics of the model at path. If number is 0, it returns the default number of topics.
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

// shownValues limits the values of a column per topic.
const shownValues = 4

// course returns a line with the first period, a bar for each period, the last period, and the largest one. The height
// of a bar stands for a number of rows. In long series, adjacent periods share a bar.
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

// printTopics prints a line for each topic of a list, with details and its subtopics below it.
func printTopics(b *strings.Builder, t *topics.Table, list []topics.Topic, column string) {
	if t.By != "" {
		column += " by " + t.By
		dated := 0
		for _, p := range t.Periods {
			dated += p.Count
		}
		of := "all rows"
		if dated < len(t.Rows) {
			of = fmt.Sprintf("%d of %d rows", dated, len(t.Rows))
		}
		fmt.Fprintf(b, "%s, %s: %s\n", printing.Text(column), of, course(t.Periods, t.Periods))
	}
	rows := printing.Table{{"topic", "share", "rows", "label"}}
	add := func(topic topics.Topic, indent string) {
		rows = append(rows, []string{fmt.Sprint(topic.ID), fmt.Sprintf("%.1f %%", 100*topic.Share), fmt.Sprint(topic.Count), indent + topic.Label})
	}
	detail := func(format string, args ...any) {
		rows = append(rows, []string{"         " + fmt.Sprintf(format, args...)})
	}
	for _, topic := range list {
		add(topic, "")
		var values []string
		for _, v := range topic.Values {
			if v.Share < 0.005 { // would be printed as 0 %
				continue
			}
			values = append(values, fmt.Sprintf("%s %.0f %%", shortText(v.Value, shownText/shownValues), 100*v.Share))
		}
		if t.By != "" {
			values = []string{course(t.Periods, topic.Values)}
		}
		if len(values) > 0 {
			detail("%s: %s", column, strings.Join(values, ", "))
		}
		for _, e := range topic.Examples {
			detail("%v", item{e.Word, &e.Text, func() string { return e.Text }})
		}
		for _, sub := range t.Children(topic.ID) {
			add(sub, "  ")
		}
	}
	b.WriteString(rows.Text("rrrl"))
	if t.Blank > 0 {
		fmt.Fprintf(b, "empty texts: %d\n", t.Blank)
	}
}
