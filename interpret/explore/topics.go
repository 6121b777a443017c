package explore

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/vectors"
)

// Lengths of lists about topics.
const (
	listedValues    = 6    // values of a column in a topic
	typicalRows     = 24   // rows of a topic on its own page
	matchingRows    = 200  // rows of a topic from which its dimensions are computed
	unusualRows     = 12   // outliers, and pairs of near-duplicates
	duplicateCosine = 0.95 // smallest cosine of near-duplicates
)

// A topicTable holds the topics of a model, and outliers.
type topicTable struct {
	Topics    []topics.Topic `json:"topics"`
	Subtopics []topics.Topic `json:"subtopics"`
	Columns   []breakdown    `json:"columns"`  // in decreasing order of agreement with the topics
	Courses   []course       `json:"courses"`  // courses of the columns of dates
	Blank     int            `json:"blank"`    // rows with empty texts
	Outliers  []neighbour    `json:"outliers"` // rows with the smallest cosines with their nearest theme
	texts

	table *topics.Table
}

// A duplicatesAnswer lists near-duplicates.
type duplicatesAnswer struct {
	Pairs    []rowPair `json:"pairs"`    // the first pairs
	Repeated int       `json:"repeated"` // number of rows that are near-duplicates of earlier rows
	texts
}

// A breakdown holds the most frequent values of a column in all rows, and in each topic.
type breakdown struct {
	Name      string           `json:"name"`
	All       []topics.Value   `json:"all"`
	Topics    [][]topics.Value `json:"topics"`
	Subtopics [][]topics.Value `json:"subtopics"`
}

// A course counts the rows of each topic over time.
type course struct {
	Name      string         `json:"name"`    // of a column of dates
	By        string         `json:"by"`      // see [topics.Table.OverTime]
	Periods   []topics.Value `json:"periods"` // counts of all rows
	Topics    [][]int        `json:"topics"`  // number of rows of each topic in each period
	Subtopics [][]int        `json:"subtopics"`
}

// A rowPair holds two rows and the cosine of their codes.
type rowPair struct {
	Words  [2]string `json:"words"`
	Cosine float64   `json:"cosine"`
}

// A typicalAnswer describes a topic.
type typicalAnswer struct {
	Top      []topics.Example `json:"top"`
	Rows     int              `json:"rows"`     // number of rows among which Matching counts
	Matching []pair           `json:"matching"` // dimensions of these rows
}

// tabulate computes the table of a model with themes.
func (x *Explorer) tabulate() *topicTable {
	table, _ := topics.New(context.Background(), x.model, x.index, x.summary.Topics) // never cancelled, so that there are no errors
	t := &topicTable{Columns: []breakdown{}, Courses: []course{}, Blank: table.Blank, table: table}
	t.Topics, t.Subtopics = slices.Clone(table.Topics), slices.Clone(table.Subtopics) // without the values of columns
	t.Outliers = x.outliers(t)
	for _, c := range x.textColumns() {
		if table.OverTime(c.Values, "") == nil && len(table.Periods) > 1 {
			t.Courses = append(t.Courses, course{c.Name, table.By, table.Periods, countValues(table.Topics), countValues(table.Subtopics)})
		}
	}
	all := make([]int, x.model.Codes.Rows)
	for i := range all {
		all[i] = i
	}
	for _, c := range x.colourings(all) {
		if !slices.ContainsFunc(t.Courses, func(other course) bool { return other.Name == c.Name }) {
			t.Columns = append(t.Columns, breakDown(table, c))
		}
	}
	slices.SortStableFunc(t.Columns, func(a, b breakdown) int { return cmp.Compare(agreement(b), agreement(a)) })
	return t
}

// textColumns returns the columns that a user can select.
func (x *Explorer) textColumns() []vectors.Column {
	if !x.summary.Texts {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(x.model.Codes.Texts.Columns), func(c vectors.Column) bool { return c.Name == "" })
}

// countValues returns the counts of the values of each topic.
func countValues(list []topics.Topic) [][]int {
	counts := make([][]int, len(list))
	for i, t := range list {
		for _, v := range t.Values {
			counts[i] = append(counts[i], v.Count)
		}
	}
	return counts
}

func breakDown(table *topics.Table, c colouring) breakdown {
	b := breakdown{Name: c.Name, All: c.frequent}
	table.BreakDown(c.column.Values, listedValues)
	for _, t := range table.Topics {
		b.Topics = append(b.Topics, t.Values)
	}
	for _, t := range table.Subtopics {
		b.Subtopics = append(b.Subtopics, t.Values)
	}
	return b
}

// agreement measures how much the values of a column differ between topics: the mean over rows i of the share of
// i's value in i's topic, minus the mean share of i's value in all rows.
func agreement(b breakdown) float64 {
	within, rows, all := 0.0, 0.0, 0.0
	for _, values := range b.Topics {
		for _, v := range values {
			within += float64(v.Count) * v.Share
			rows += float64(v.Count)
		}
	}
	for _, v := range b.All {
		all += v.Share * v.Share
	}
	return within/math.Max(rows, 1) - all
}

// outliers returns the rows with the smallest cosines with their nearest theme.
func (x *Explorer) outliers(t *topicTable) []neighbour {
	found := ranking.Ranking{N: unusualRows}
	for i := range x.model.Codes.Rows {
		if _, cosines := t.table.Codes.Row(i); len(cosines) > 0 {
			found.Add(ranking.Item{Index: i, Score: -float64(slices.Max(cosines))})
		}
	}
	rows := []neighbour{}
	for _, i := range found.Items() {
		rows = append(rows, neighbour{x.model.Codes.IDs[i.Index], -i.Score})
		t.add(x, i.Index, nil)
	}
	return rows
}

// nearDuplicates finds rows whose codes have a cosine of at least duplicateCosine with an earlier row. It compares a
// row only with the first twenty earlier rows that have the same three strongest dimensions.
func (x *Explorer) nearDuplicates() duplicatesAnswer {
	const maxCompared = 20
	n := x.model.Codes.Rows
	keys := make([][3]int32, n)
	parallel.Ranges(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			keys[i] = strongest(x.index.Code(i))
		}
	})
	firstRows := map[[3]int32][]int32{} // firstRows[key] lists the first rows with the key
	earlier := make([][]int32, n)       // earlier[i] lists the rows that row i is compared with
	for i, key := range keys {
		if key == strongest(interpret.Code{}) || x.model.Codes.Texts.Blank(i) {
			continue
		}
		earlier[i] = firstRows[key]
		if len(earlier[i]) < maxCompared {
			firstRows[key] = append(firstRows[key], int32(i))
		}
	}
	best, cosines := make([]int32, n), make([]float64, n)
	parallel.Ranges(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			best[i], cosines[i] = -1, duplicateCosine
			for _, other := range earlier[i] {
				if cosine := x.cosine(int(other), i); cosine >= cosines[i] {
					best[i], cosines[i] = other, cosine
				}
			}
		}
	})
	a := duplicatesAnswer{Pairs: []rowPair{}}
	for i, other := range best {
		if other < 0 {
			continue
		}
		if a.Repeated++; a.Repeated <= unusualRows {
			a.Pairs = append(a.Pairs, rowPair{[2]string{x.model.Codes.IDs[other], x.model.Codes.IDs[i]}, min(cosines[i], 1)})
			a.add(x, int(other), nil)
			a.add(x, i, nil)
		}
	}
	return a
}

// strongest returns the three dimensions of a code with the largest absolute values, sorted by number. −1
// replaces missing dimensions.
func strongest(code interpret.Code) [3]int32 {
	dimensions, values := [3]int32{-1, -1, -1}, [3]float32{}
	for j, k := range code.Index {
		v := max(code.Value[j], -code.Value[j])
		place := len(values)
		for place > 0 && v > values[place-1] {
			place--
		}
		if place < len(values) {
			copy(values[place+1:], values[place:])
			copy(dimensions[place+1:], dimensions[place:])
			dimensions[place], values[place] = k, v
		}
	}
	slices.Sort(dimensions[:])
	return dimensions
}

// cosine returns the cosine of the codes of two rows, which are not zero.
func (x *Explorer) cosine(first, second int) float64 {
	a, b, sum := x.index.Code(first), x.index.Code(second), 0.0
	j := 0
	for i, k := range a.Index {
		for j < len(b.Index) && b.Index[j] < k {
			j++
		}
		if j < len(b.Index) && b.Index[j] == k {
			sum += float64(a.Value[i]) * float64(b.Value[j])
		}
	}
	return sum / x.index.Norm(first) / x.index.Norm(second)
}

// typicalOf returns up to n typical rows of a topic, and its dimensions.
func (x *Explorer) typicalOf(topic topics.Topic, n int) typicalAnswer {
	a := typicalAnswer{Top: topic.Typical(x.index, n, listedText)}
	rows := topic.Spread(matchingRows)
	a.Rows, a.Matching = len(rows), x.matching(rows)
	return a
}

// answerTopic describes a topic by its id.
func (x *Explorer) answerTopic(id string) (any, error) {
	all := slices.Concat(x.topics().Topics, x.topics().Subtopics)
	i := slices.IndexFunc(all, func(t topics.Topic) bool { return strconv.Itoa(int(t.ID)) == id })
	if i < 0 {
		return nil, notFound("no topic %.20q", id)
	}
	return x.typicalOf(all[i], typicalRows), nil
}
