// Package topics describes the tree of the topics of texts, whose leaves are themes: labels, shares, typical texts,
// and values of a column.
//
// This prints eight broad topics of a model, each with its subtopics:
//
//	x := interpret.NewIndex(m.Codes)
//	table, err := topics.New(ctx, m, x, 8)
//	for _, t := range table.Topics {
//		fmt.Printf("%.1f %% %s\n", 100*t.Share, t.Label)
//		for _, sub := range table.Children(t.ID) {
//			fmt.Printf("  %.1f %% %s\n", 100*sub.Share, sub.Label)
//		}
//	}
package topics

import (
	"cmp"
	"context"
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"overcomplete/internal/dates"
	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// An ID is the number of a topic, or [None]. Themes, the leaves of the tree, have the ids 0 to M−1. Split j of
// [model.Themes] divides branch M+j. Ids thus don't depend on the rows. The topic "other" has the id 2M−1.
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

// A Topic is a node of the tree. Its label and its rows don't depend on the number of broad topics.
type Topic struct {
	ID       ID        `json:"id"`
	Label    string    `json:"label"`              // a name (see [Table.Rename]), or the Words joined with commas
	Words    []string  `json:"words"`              // keywords
	Share    float64   `json:"share"`              // share of all rows, 0 to 1
	Count    int       `json:"count"`              // number of rows
	Parent   ID        `json:"parent"`             // None for a broad topic
	Examples []Example `json:"examples,omitempty"` // see [Topic.Typical]
	Values   []Value   `json:"values,omitempty"`   // see [Table.BreakDown] and [Table.OverTime]

	rows []int32 // in the order of their themes
}

// An Example is a typical row.
type Example struct {
	Row   int    `json:"row"`
	Word  string `json:"word"`            // word, or id of a text
	Text  string `json:"text,omitempty"`  // excerpt, see [interpret.Index.Excerpt]
	Alike int    `json:"alike,omitempty"` // number of other typical texts that share a passage of eight words with the text
}

// A Value is a value of a column, or a period, and the number of rows of a topic that have it.
type Value struct {
	Value string  `json:"value"` // a period looks like 2024-03-05, 2024-03, 2024-Q1 or 2024; a week is the date of its Monday
	Count int     `json:"count"`
	Share float64 `json:"share"` // share of the topic's rows

	AfterGap bool `json:"after_gap,omitempty"` // in Table.Periods: periods without rows are left out before this one
}

// A Table lists the topics that have rows. Topics with the same parent are in decreasing order of the number of rows.
//
// The last broad topic is "other", if there are rows for it: rows that fit no theme, and rows of small branches. A branch
// is small if its number of rows is below 0.5 % of all rows and below a sixth of the mean of the broad topics. It is also
// small if the number is below the mean, and less than 15 % of its texts contain a word of its label. Small branches
// are subtopics of "other".
type Table struct {
	Topics    []Topic `json:"topics"`    // broad topics
	Subtopics []Topic `json:"subtopics"` // topics below the broad ones, down to the themes; a topic precedes its subtopics
	Rows      []ID    `json:"rows"`      // broad topic of each row
	Blank     int     `json:"blank"`     // number of rows with empty texts, which have no topic

	Dimensions []ID `json:"dimensions"` // theme of each dimension, see [Table.AssignDimensions]

	By      string  `json:"by,omitempty"`      // length of a period, such as "month", see [Table.OverTime]
	Periods []Value `json:"periods,omitempty"` // counts of all rows, in order of time

	Codes   *vectors.CSR `json:"-"` // cosines of rows with themes, see [Encode]
	ThemeOf []ID         `json:"-"` // theme of each row
}

const (
	exampleRows = 3     // largest number of examples of a topic
	exampleText = 160   // characters of an example
	compared    = 60    // number of top-ranked rows that are compared with the examples, to count similar ones
	maxText     = 20000 // bytes of a text that are compared
	labelWords  = 3     // largest number of words of a label
	maxRows     = 1000  // largest number of a topic's rows that Typical considers
	maxChildren = 6     // largest number of direct subtopics of a topic

	// Limits of small branches; see Table.
	smallShare  = 0.005
	smallOfMean = 1. / 6
	minReach    = 0.15
)

// New returns the topics of the rows of m, a model with M themes. The index x must be an index of the codes of m. The
// argument number, 1 to M, is the number of broad topics. [Encode] gives each row up to sixteen themes. The row
// descends the tree from the root to one of these themes, and belongs to all topics on its path. If ctx is cancelled,
// New returns ctx.Err().
func New(ctx context.Context, m *model.Model, x *interpret.Index, number int) (*Table, error) {
	codes, err := Encode(ctx, m)
	if err != nil {
		return nil, err
	}
	themes := m.Info.Training.Themes
	t := &Table{Topics: []Topic{}, Subtopics: []Topic{}, Codes: codes, Rows: slices.Repeat([]ID{None}, codes.Rows), ThemeOf: make([]ID, codes.Rows)}
	tree := newTree(themes)
	parallel.Ranges(codes.Rows, func(lo, hi int) {
		var powers [rowThemes]float32
		for i := lo; i < hi; i++ {
			near, cosines := codes.Row(i)
			for j, c := range cosines {
				powers[j] = power(c)
			}
			t.ThemeOf[i] = tree.descend(near, powers[:len(near)])
		}
	})
	tree.addRows(t.ThemeOf)
	labels, reach := tree.label(x, themes.Topics)
	var add func(to *[]Topic, id, parent ID, rows, children []int32)
	add = func(to *[]Topic, id, parent ID, rows, children []int32) {
		topic := labels[id]
		topic.ID, topic.Parent, topic.rows, topic.Count = id, parent, rows, len(rows)
		topic.Share = float64(len(rows)) / float64(codes.Rows)
		*to = append(*to, topic)
		for _, child := range tree.largestFirst(children) {
			add(&t.Subtopics, ID(child), id, tree.rowsOf(child), tree.children(child))
		}
	}
	mean := float64(codes.Rows) / float64(number)
	least := min(smallShare*float64(codes.Rows), smallOfMean*mean)
	var broad, small []int32
	for _, id := range tree.divide(tree.root(), number) {
		switch rows := len(tree.rowsOf(id)); {
		case rows == 0:
		case float64(rows) < least, float64(rows) < mean && reach[id] < minReach:
			small = append(small, id)
		default:
			broad = append(broad, id)
		}
	}
	for _, id := range tree.largestFirst(broad) {
		add(&t.Topics, ID(id), None, tree.rowsOf(id), tree.children(id))
	}
	var rest []int32
	for _, id := range small {
		rest = append(rest, tree.rowsOf(id)...)
	}
	for i, theme := range t.ThemeOf {
		if theme == None && x.Codes.Texts.Blank(i) {
			t.Blank++
		} else if theme == None {
			rest = append(rest, int32(i))
		}
	}
	if other := ID(len(labels) - 1); len(rest) > 0 {
		add(&t.Topics, other, None, rest, small)
	}
	for _, topic := range t.Topics {
		for _, i := range topic.rows {
			t.Rows[i] = topic.ID
		}
	}
	if err := t.each(ctx, func(topic *Topic) { topic.Examples = topic.Typical(x, exampleRows, exampleText) }); err != nil {
		return nil, err
	}
	return t, ctx.Err()
}

// each calls f for all topics, several at once.
func (t *Table) each(ctx context.Context, f func(topic *Topic)) error {
	broad := len(t.Topics)
	return parallel.Each(ctx, broad+len(t.Subtopics), func(i int) {
		if i < broad {
			f(&t.Topics[i])
		} else {
			f(&t.Subtopics[i-broad])
		}
	})
}

// label returns a labelled topic for each branch, by id, and one more for "other". It also returns the share of each
// branch's texts that contain a word of the label (see [interpret.Index.GroupLabels]). The argument broad is the
// default number of broad topics.
func (t *tree) label(x *interpret.Index, broad int) (topics []Topic, reach []float64) {
	groups, ranges := make([][]int32, len(t.branches)), make([][2]int32, len(t.branches))
	for id, b := range t.branches {
		if rows := t.rowsOf(int32(id)); len(rows) > 0 && t.smallest(int32(id)) == int32(id) {
			groups[id], ranges[id] = rows, [2]int32{b.lo, b.hi}
		}
	}
	words, reach := x.GroupLabels(groups, ranges, labelWords)
	topics = make([]Topic, len(words)+1)
	order := t.shownFirst(broad) // broad topics first, so that Distinct doesn't number their labels
	ordered := make([][]string, len(words))
	for i, id := range order {
		ordered[i] = words[id]
	}
	for i, label := range interpret.Distinct(ordered) {
		topics[order[i]] = Topic{Words: ordered[i], Label: strings.Join(label, ", ")}
	}
	for id := range t.branches {
		same := t.smallest(int32(id))
		topics[id], reach[id] = topics[same], reach[same]
	}
	if x.Codes.Texts != nil { // the root has all texts, so no words describe it
		topics[t.root()], reach[t.root()] = Topic{Words: []string{}, Label: "all"}, 1
	}
	topics[len(words)] = Topic{Words: []string{}, Label: "other"}
	return topics, reach
}

// shownFirst returns the ids of all branches: first broad topics, then the subtopics below them, then the rest.
func (t *tree) shownFirst(broad int) []int32 {
	order := t.largestFirst(t.divide(t.root(), broad))
	listed := make([]bool, len(t.branches))
	for i := 0; i < len(order); i++ {
		order[i] = t.smallest(order[i])
		listed[order[i]] = true
		order = append(order, t.largestFirst(t.children(order[i]))...)
	}
	for id := range t.branches {
		if !listed[id] {
			order = append(order, int32(id))
		}
	}
	return order
}

// largestFirst sorts branches in decreasing order of the number of rows.
func (t *tree) largestFirst(ids []int32) []int32 {
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(len(t.rowsOf(b)), len(t.rowsOf(a))) })
	return ids
}

// Typical returns up to n rows, with excerpts of up to length characters. It divides the topic into n parts in the
// order of its themes, and returns the row of each part that is nearest, by cosine, to the mean of the topic's
// normalised codes. It prefers texts whose length in bytes is between the quartiles of the topic, and leaves out texts
// that share a passage of eight words with another example. It considers at most 1,000 rows.
func (t *Topic) Typical(x *interpret.Index, n, length int) []Example {
	rows := t.Spread(maxRows)
	lengths := make([]int, len(rows))
	if x.Codes.Texts != nil {
		for at, i := range rows {
			lengths[at] = len(x.Codes.Texts.Text[i])
		}
	}
	quartiles := slices.Sorted(slices.Values(lengths))
	ranked := ranking.Ranking{N: len(rows)}
	for at, score := range interpret.Centrality(x, rows) {
		if last := len(rows) - 1; lengths[at] < quartiles[last/4] || lengths[at] > quartiles[3*last/4] {
			score -= 2 * float64(len(rows)) // no other score is lower than −len(rows)
		}
		ranked.Add(ranking.Item{Index: at, Score: score})
	}
	found := []Example{}
	excerpts, telling := make([]string, len(rows)), make([]bool, len(rows)) // by index in rows, for rows that were tried
	taken := map[uint64]int{}                                               // index in found, by passage of an example
	parts, done := map[int]bool{}, map[int]bool{}                           // parts with an example; rows that are, or resemble, an example
	items := ranked.Items()
	for try := range 3 { // 0: telling excerpts, different parts; 1: telling excerpts, any part; 2: any row
		for rank, item := range items {
			part := item.Index * n / len(rows)
			wanted := len(found) < n && (try > 0 || !parts[part])
			if done[item.Index] || !wanted && (try > 0 || rank >= compared) {
				continue
			}
			e := Example{Row: rows[item.Index], Word: x.Codes.IDs[rows[item.Index]]}
			passages := passagesOf(x.Codes.Name(e.Row))
			isTaken := func(passage uint64) bool { _, ok := taken[passage]; return ok }
			if i := slices.IndexFunc(passages, isTaken); i >= 0 {
				found[taken[passages[i]]].Alike++
				done[item.Index] = true
				continue
			}
			if wanted && excerpts[item.Index] == "" && x.Codes.Texts != nil {
				excerpts[item.Index], telling[item.Index] = x.Excerpt(e.Row, t.Words, length)
			}
			if !wanted || !telling[item.Index] && x.Codes.Texts != nil && try < 2 {
				continue
			}
			e.Text = excerpts[item.Index]
			for _, passage := range passages {
				taken[passage] = len(found)
			}
			parts[part], done[item.Index] = true, true
			found = append(found, e)
		}
	}
	return found
}

var seed = maphash.MakeSeed()

// passagesOf returns the hashes of all passages of eight words of a text. If the text has fewer words, they are the
// only passage. A quote of a text thus shares passages with that text, wherever lines break.
func passagesOf(text string) (passages []uint64) {
	const passageWords = 8
	var words []uint64
	for word := range strings.FieldsFuncSeq(strings.ToLower(text[:min(len(text), maxText)]), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		words = append(words, maphash.String(seed, word))
	}
	for first := range max(1, len(words)-passageWords+1) {
		sum := uint64(0)
		for _, word := range words[first:min(first+passageWords, len(words))] {
			sum = bits.RotateLeft64(sum, 7)*0x9e3779b97f4a7c15 + word // 2⁶⁴ / golden ratio
		}
		passages = append(passages, sum)
	}
	return passages
}

// Children returns the subtopics of a topic, the largest first.
func (t *Table) Children(topic ID) (children []Topic) {
	for _, sub := range t.Subtopics {
		if sub.Parent == topic {
			children = append(children, sub)
		}
	}
	return children
}

// Spread returns up to n rows of the topic, evenly spread over its themes.
func (t *Topic) Spread(n int) []int {
	rows := make([]int, min(n, len(t.rows)))
	for i := range rows {
		rows[i] = int(t.rows[i*len(t.rows)/len(rows)])
	}
	return rows
}

// Rename sets the Label of each topic that has a name in labels.
func (t *Table) Rename(labels interpret.Labels) {
	t.each(context.Background(), func(topic *Topic) { topic.Label = cmp.Or(labels.Topic(int(topic.ID)), topic.Label) })
}

// BreakDown sets the Values of topics to the n most frequent values of a column, which holds a value
// for each row. It ignores empty values.
func (t *Table) BreakDown(column []string, n int) {
	t.each(context.Background(), func(topic *Topic) {
		values := slices.DeleteFunc(MostFrequent(column, topic.rows, n+1), func(v Value) bool { return v.Value == "" })
		topic.Values = values[:min(n, len(values))]
	})
}

// maxPeriods limits the periods that contain the middle 90 % of the dates, if OverTime chooses their length.
const maxPeriods = 60

// OverTime sets By, Periods, and the Values of topics to the periods of a column of ISO 8601 dates, which holds a value
// for each row. It ignores empty values. The argument by is day, week, month, quarter, year, decade or century. If it
// is empty, OverTime chooses the shortest period such that at most 60 periods contain 90 % of the dates. Periods are in
// order of time. Each Values lists all periods, with or without rows, except long gaps in which no row has a date.
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
	t.each(context.Background(), func(topic *Topic) {
		topic.Values = make([]Value, len(s.Periods))
		for _, row := range topic.rows {
			if p := s.Of[row]; p >= 0 {
				topic.Values[p].Count++
			}
		}
		for p := range topic.Values {
			v := &topic.Values[p]
			v.Value, v.Share = s.Periods[p].Label, float64(v.Count)/float64(topic.Count)
		}
	})
	return nil
}

// MostFrequent returns the n most frequent values of a column in the given rows. Equal counts are in the order of the
// values.
func MostFrequent[R int | int32](column []string, rows []R, n int) []Value {
	counts := map[string]int{}
	for _, i := range rows {
		counts[column[i]]++
	}
	values := []Value{}
	for value, count := range counts {
		values = append(values, Value{Value: value, Count: count, Share: float64(count) / float64(len(rows))})
	}
	slices.SortFunc(values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	return values[:min(n, len(values))]
}
