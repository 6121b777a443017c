// Package topics describes the topics of texts, and the themes within topics: labels, shares, typical texts,
// and values of a column.
//
// This prints twenty topics of a model:
//
//	x := interpret.NewIndex(m.Codes)
//	table, err := topics.New(ctx, m, x, 20)
//	for _, t := range table.Topics {
//		fmt.Printf("%.1f %% %s\n", 100*t.Share, t.Label)
//	}
package topics

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"overcomplete/internal/dates"
	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// An ID is the number of a topic or a theme, see [model.Themes.Cut], or [None].
type ID int32

// None means no topic or theme. In JSON it is null.
const None ID = -1

// MarshalJSON implements [encoding/json.Marshaler].
func (id ID) MarshalJSON() ([]byte, error) {
	if id == None {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(id), 10), nil
}

// A Topic is a topic, or a theme within one.
type Topic struct {
	ID       ID        `json:"id"`
	Label    string    `json:"label"`              // a name (see [Table.Rename]) or the Words with commas
	Words    []string  `json:"words"`              // keywords
	Share    float64   `json:"share"`              // share of all rows, 0 to 1
	Count    int       `json:"count"`              // number of rows
	Parent   ID        `json:"parent"`             // topic of a theme; None for a topic
	Examples []Example `json:"examples,omitempty"` // of a topic; themes have none
	Values   []Value   `json:"values,omitempty"`   // see [Table.BreakDown] and [Table.OverTime]

	rows []int
}

// An Example is a typical row.
type Example struct {
	Row  int    `json:"row"`
	Word string `json:"word"` // word, or id of a text
	Text string `json:"text,omitempty"`
}

// A Value is a value of a column, or a period, and the number of rows of a topic that have it.
type Value struct {
	Value string  `json:"value"` // a period of time is such as 2024-03-05, 2024-03, 2024-Q1 or 2024; a week is its Monday
	Count int     `json:"count"`
	Share float64 `json:"share"` // of the topic's rows

	AfterGap bool `json:"after_gap,omitempty"` // periods without rows before this one are left out; set in Table.Periods
}

// A Table lists the topics and the themes that have rows, each in decreasing order of the number of rows.
type Table struct {
	Topics []Topic `json:"topics"`
	Themes []Topic `json:"themes"`
	Rows   []ID    `json:"rows"`  // topic of each row
	Blank  int     `json:"blank"` // number of rows with empty texts, which have no topic
	Other  int     `json:"other"` // number of other rows without a topic

	Dimensions []ID `json:"dimensions"` // theme of each dimension, see [Table.AssignDimensions]

	By      string  `json:"by,omitempty"`      // length of a period, such as "month", see [Table.OverTime]
	Periods []Value `json:"periods,omitempty"` // of all rows, in order of time

	Codes   *vectors.CSR `json:"-"` // cosines of rows with themes, see [Encode]
	TopicOf []int32      `json:"-"` // topic of each theme
	ThemeOf []ID         `json:"-"` // theme of each row
}

const (
	exampleRows = 3    // examples of a topic
	labelWords  = 3    // words of a label
	maxRows     = 1000 // rows among which examples are chosen
)

// New returns the topics of the rows of m, a model with M themes. The argument x must index the codes of m;
// number is the number of topics, 1 to M. A row belongs to the topic whose themes have the largest sum of squared
// cosines with the row ([Encode]), and to the nearest theme of that topic. If ctx is cancelled, New returns
// ctx.Err().
func New(ctx context.Context, m *model.Model, x *interpret.Index, number int) (*Table, error) {
	codes, err := Encode(ctx, m)
	if err != nil {
		return nil, err
	}
	return cut(ctx, m, x, codes, number)
}

// Cut returns the table of the same model for another number of topics, 1 to M. It is faster than [New].
func (t *Table) Cut(ctx context.Context, m *model.Model, x *interpret.Index, number int) (*Table, error) {
	return cut(ctx, m, x, t.Codes, number)
}

func cut(ctx context.Context, m *model.Model, x *interpret.Index, codes *vectors.CSR, number int) (*Table, error) {
	t := &Table{Rows: make([]ID, x.Codes.Rows), ThemeOf: make([]ID, x.Codes.Rows), Codes: codes, TopicOf: m.Info.Training.Themes.Cut(number)}
	topics, themes := make([]int32, len(t.Rows)), make([]int32, len(t.Rows))
	parallel.Ranges(len(t.Rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			topics[i], themes[i] = t.strongest(i)
			t.Rows[i], t.ThemeOf[i] = ID(topics[i]), ID(themes[i])
		}
	})
	for i := range t.Rows {
		switch {
		case topics[i] >= 0:
		case x.Codes.Texts.Blank(i):
			t.Blank++
		default:
			t.Other++
		}
	}
	var err error
	if t.Topics, err = describe(ctx, x, topics); err != nil {
		return nil, err
	}
	if t.Themes, err = describe(ctx, x, themes); err != nil {
		return nil, err
	}
	if err := parallel.Each(ctx, len(t.Topics), func(i int) { t.Topics[i].Examples = examples(x, t.Topics[i].rows) }); err != nil {
		return nil, err
	}
	for i, theme := range t.Themes {
		t.Themes[i].Parent = ID(t.TopicOf[theme.ID])
	}
	return t, nil
}

// strongest returns the topic and the theme of a row, or −1 and −1.
func (t *Table) strongest(row int) (topic, theme int32) {
	themes, cosines := t.Codes.Row(row)
	topic, theme = -1, -1
	best, nearest := float32(0), float32(0)
	for _, k := range themes {
		sum := float32(0)
		for j, other := range themes {
			if t.TopicOf[other] == t.TopicOf[k] {
				sum += cosines[j] * cosines[j]
			}
		}
		if sum > best {
			best, topic = sum, t.TopicOf[k]
		}
	}
	for j, k := range themes {
		if t.TopicOf[k] == topic && cosines[j] > nearest {
			nearest, theme = cosines[j], k
		}
	}
	return topic, theme
}

// describe returns the groups of rows, largest first. The argument groups holds the group of each row. If ctx is
// cancelled, describe returns ctx.Err().
func describe(ctx context.Context, x *interpret.Index, groups []int32) ([]Topic, error) {
	var all []Topic
	for g, words := range x.GroupLabels(groups, labelWords) {
		all = append(all, Topic{ID: ID(g), Parent: None, Words: words})
	}
	for i, g := range groups {
		if g >= 0 {
			all[g].rows = append(all[g].rows, i)
			all[g].Count++
		}
	}
	all = slices.DeleteFunc(all, func(t Topic) bool { return t.Count == 0 })
	slices.SortStableFunc(all, func(a, b Topic) int { return cmp.Compare(b.Count, a.Count) })
	var labels [][]string
	for _, t := range all {
		labels = append(labels, t.Words)
	}
	for i, label := range interpret.Distinct(labels) {
		all[i].Label = strings.Join(label, ", ")
		all[i].Share = float64(all[i].Count) / float64(len(groups))
	}
	return all, ctx.Err()
}

// examples returns the rows of a group that are nearest, by cosine, to the mean of its normalised codes. It
// prefers texts whose length in bytes is between the quartiles of the group, and leaves out repeated texts. It
// considers at most maxRows rows, evenly spaced.
func examples(x *interpret.Index, group []int) []Example {
	rows := make([]int, min(len(group), maxRows))
	for i := range rows {
		rows[i] = group[i*len(group)/len(rows)]
	}
	mean := make([]float64, x.Codes.Cols)
	lengths := make([]int, len(rows))
	for n, i := range rows {
		code, norm := x.Code(i), x.Norm(i)
		for j, k := range code.Index {
			mean[k] += float64(code.Value[j]) / norm
		}
		if x.Codes.Texts != nil {
			lengths[n] = len(x.Codes.Texts.Text[i])
		}
	}
	quartiles := slices.Sorted(slices.Values(lengths))
	ranked := ranking.Ranking{N: 20 * exampleRows}
	for n, i := range rows {
		code, norm, score := x.Code(i), x.Norm(i), 0.0
		for j, k := range code.Index {
			score += mean[k] * float64(code.Value[j]) / norm
		}
		if last := len(rows) - 1; lengths[n] < quartiles[last/4] || lengths[n] > quartiles[3*last/4] {
			score -= 2 * float64(len(rows)) // no other score is lower than −len(rows)
		}
		ranked.Add(ranking.Item{Index: i, Score: score})
	}
	found, shown := []Example{}, map[string]bool{}
	for _, item := range ranked.Items() {
		name := x.Codes.Name(item.Index)
		if len(found) == exampleRows || shown[name] {
			continue
		}
		shown[name] = true
		e := Example{Row: item.Index, Word: x.Codes.Words[item.Index]}
		if x.Codes.Texts != nil {
			e.Text = x.Codes.Texts.Text[item.Index]
		}
		found = append(found, e)
	}
	return found
}

// Children returns the themes of a topic.
func (t *Table) Children(topic ID) (children []Topic) {
	for _, theme := range t.Themes {
		if theme.Parent == topic {
			children = append(children, theme)
		}
	}
	return children
}

// Rename sets the Label of the topics and themes that have a name among labels.
func (t *Table) Rename(labels interpret.Labels) {
	for _, topics := range [][]Topic{t.Topics, t.Themes} {
		for i := range topics {
			topics[i].Label = cmp.Or(labels.Topic(int(topics[i].ID)), topics[i].Label)
		}
	}
}

// BreakDown sets the Values of topics and themes to the n most frequent values of a column, which holds a value
// for each row. It ignores empty values.
func (t *Table) BreakDown(column []string, n int) {
	for _, topics := range [][]Topic{t.Topics, t.Themes} {
		parallel.Each(context.Background(), len(topics), func(i int) {
			topics[i].Values = mostFrequent(column, topics[i].rows, n)
		})
	}
}

// maxPeriods is the number of periods within which most dates are, unless the user chooses their length.
const maxPeriods = 60

// OverTime sets By, Periods, and the Values of topics and themes to the periods of a column of dates of ISO 8601, which
// holds a value for each row. It ignores empty values. The argument by is day, week, month, quarter, year, decade or
// century, or "" for the shortest of them such that at most 60 periods contain 90 % of the dates. Periods are in order of
// time. Each Values lists all periods, including those without rows, except long gaps in which no row has a date.
// OverTime returns an error, and changes nothing, if a value is no date or if there would be more than 1,000 periods.
func (t *Table) OverTime(column []string, by string) error {
	days, err := dates.Parse(column)
	if err != nil {
		return err
	}
	s := dates.Divide(days, maxPeriods, maxPeriods+maxPeriods/3)
	if by != "" {
		if s, err = dates.DivideBy(days, by); err != nil {
			return err
		}
	}
	t.By, t.Periods = s.Unit, nil
	for _, p := range s.Periods {
		t.Periods = append(t.Periods, Value{p.Label, p.Count, float64(p.Count) / float64(len(column)), p.AfterGap})
	}
	for _, topics := range [][]Topic{t.Topics, t.Themes} {
		parallel.Each(context.Background(), len(topics), func(i int) {
			values := make([]Value, len(s.Periods))
			for _, row := range topics[i].rows {
				if p := s.Of[row]; p >= 0 {
					values[p].Count++
				}
			}
			for p := range values {
				values[p].Value, values[p].Share = s.Periods[p].Label, float64(values[p].Count)/float64(topics[i].Count)
			}
			topics[i].Values = values
		})
	}
	return nil
}

func mostFrequent(column []string, rows []int, n int) []Value {
	counts := map[string]int{}
	for _, i := range rows {
		if column[i] != "" {
			counts[column[i]]++
		}
	}
	var values []Value
	for value, count := range counts {
		values = append(values, Value{Value: value, Count: count, Share: float64(count) / float64(len(rows))})
	}
	slices.SortFunc(values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	return values[:min(n, len(values))]
}
