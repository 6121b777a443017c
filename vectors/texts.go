package vectors

import (
	"fmt"
	"slices"
	"strings"

	"overcomplete/vectors/internal/tabular"
)

// A Kind is the kind of rows.
type Kind string

// Words are unique, and name their rows. Texts, such as sentences or documents, have ids.
const (
	KindWords Kind = tabular.Words
	KindTexts Kind = tabular.Texts
)

// Texts stores the texts of V rows. The IDs of these rows are a column of the input, or the row numbers, from 0.
type Texts struct {
	Text    []string // UTF-8, at most 16 MiB each; may be empty or repeated, and may contain line breaks
	Columns []Column // other columns of the input
}

// A Column stores a value for each of V rows, such as the class of a text.
type Column struct {
	Name   string
	Values []string
}

// maxText is the maximum length of a text, in bytes.
const maxText = 1 << 24

// Table returns the names of the rows as columns, without codes. If rows are words, it returns one column, whose name
// is the argument words. If rows are texts, it returns their ids, their texts and their columns. It appends underscores
// to a column's name that is in taken, ignoring case, because names in SQL have no case.
func (s *Sparse) Table(words string, taken ...string) []Column {
	if s.Texts == nil {
		return []Column{{words, s.IDs}}
	}
	table := []Column{{tabular.IDName, s.IDs}, {tabular.TextName, s.Texts.Text}}
	others := s.Texts.Names()
	has := func(names []string, name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) })
	}
	for _, c := range s.Texts.Columns {
		if has(taken, c.Name) {
			for has(taken, c.Name) || has(others, c.Name) {
				c.Name += "_"
			}
			others = append(others, c.Name)
		}
		table = append(table, c)
	}
	return table
}

// Blank reports whether text i is empty or only white space. If t is nil, rows are words and Blank
// returns false.
func (t *Texts) Blank(i int) bool { return t != nil && strings.TrimSpace(t.Text[i]) == "" }

// Names returns the names of the columns.
func (t *Texts) Names() []string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// newTexts returns empty texts with the named columns.
func newTexts(columns []string) *Texts {
	t := new(Texts)
	for _, name := range columns {
		t.Columns = append(t.Columns, Column{Name: name})
	}
	return t
}

// Grow reserves memory for n more rows. It does nothing if t is nil.
func (t *Texts) Grow(n int) {
	if t == nil {
		return
	}
	t.Text = slices.Grow(t.Text, n)
	for i := range t.Columns {
		t.Columns[i].Values = slices.Grow(t.Columns[i].Values, n)
	}
}

// Add adds a row, with a value for each column.
func (t *Texts) Add(text string, columns []string) {
	t.Text = append(t.Text, text)
	for i, value := range columns {
		t.Columns[i].Values = append(t.Columns[i].Values, value)
	}
}

func (t *Texts) set(i int, text string, columns []string) {
	t.Text[i] = text
	for c, value := range columns {
		t.Columns[c].Values[i] = value
	}
}

// row returns the values of row i in the columns.
func (t *Texts) row(i int) []string {
	values := make([]string, len(t.Columns))
	for c, column := range t.Columns {
		values[c] = column.Values[i]
	}
	return values
}

// Slice returns rows lo to hi−1, which share the memory of t. If t is nil, it returns nil.
func (t *Texts) Slice(lo, hi int) *Texts {
	if t == nil {
		return nil
	}
	part := &Texts{Text: t.Text[lo:hi:hi]}
	for _, c := range t.Columns {
		part.Columns = append(part.Columns, Column{c.Name, c.Values[lo:hi:hi]})
	}
	return part
}

// Select returns copies of the given rows. If t is nil, it returns nil.
func (t *Texts) Select(rows []int) *Texts {
	if t == nil {
		return nil
	}
	part := newTexts(t.Names())
	for _, i := range rows {
		part.Add(t.Text[i], t.row(i))
	}
	return part
}

// Join appends other, which has the same kind and columns, to t and returns the result, like append. If t is nil, it
// returns other.
func (t *Texts) Join(other *Texts) *Texts {
	if t == nil || other == nil {
		return other
	}
	t.Text = append(t.Text, other.Text...)
	for i := range t.Columns {
		t.Columns[i].Values = append(t.Columns[i].Values, other.Columns[i].Values...)
	}
	return t
}

// Validate returns an error unless t, which may be nil, has n texts, n values per column, and
// distinct column names.
func (t *Texts) Validate(n int) error {
	if t == nil {
		return nil
	}
	if len(t.Text) != n {
		return fmt.Errorf("texts and rows differ in number (got %d and %d)", len(t.Text), n)
	}
	for i, c := range t.Columns {
		if len(c.Values) != n {
			return fmt.Errorf("column %.60q has the wrong number of values (got %d, want %d)", c.Name, len(c.Values), n)
		}
		if slices.ContainsFunc(t.Columns[:i], func(o Column) bool { return o.Name == c.Name }) || c.Name == tabular.IDName || c.Name == tabular.TextName {
			return fmt.Errorf("two columns are named %.60q", c.Name)
		}
	}
	return nil
}

// Name returns the name of row i to display: its word, or its text in one line, or its id if the
// text is blank.
func (s *Sparse) Name(i int) string {
	if s.Texts != nil {
		if line := strings.Join(strings.Fields(s.Texts.Text[i]), " "); line != "" {
			return line
		}
	}
	return s.IDs[i]
}
