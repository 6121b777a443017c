package vectors

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A Kind is what rows are.
type Kind string

const (
	KindWords Kind = "words" // each is there once, and called by itself
	KindTexts Kind = "texts" // such as sentences or documents: called by an id
)

// ParseKind returns the Kind of that name.
func ParseKind(name string) (Kind, error) {
	if k := Kind(name); k == KindWords || k == KindTexts {
		return k, nil
	}
	return "", fmt.Errorf("%.60q is no kind of rows; want %s or %s", name, KindWords, KindTexts)
}

// Texts are what V rows say that are texts, such as sentences, and no words. What is Words of
// such rows are their ids: those of a column of the input, or else their numbers in it, from 0.
type Texts struct {
	Text    []string // in UTF-8, of at most [MaxText] bytes; may be empty, have line breaks and be there twice
	Columns []Column // what else the input knows of each row
}

// A Column is one thing that is known of each of V rows, such as the class that a text is of.
type Column struct {
	Name   string
	Values []string
}

// MaxText bounds a text, in bytes.
const MaxText = 1 << 24

// The name of a table's column can't be that of the ids or of the texts where all are together,
// as in a model's directory.
const (
	IDName   = "id"
	TextName = "text"
)

// Table returns what is known of the rows beside their codes, as columns: the words, by the name
// that is given, or the ids, texts and columns of texts. A column whose name is taken gets as
// many underscores after it as it needs to have its own.
func (s *Sparse) Table(words string, taken ...string) []Column {
	if s.Texts == nil {
		return []Column{{words, s.Words}}
	}
	table := []Column{{IDName, s.Words}, {TextName, s.Texts.Text}}
	others := s.Texts.Names()
	for _, c := range s.Texts.Columns {
		if slices.Contains(taken, c.Name) {
			for slices.Contains(taken, c.Name) || slices.Contains(others, c.Name) {
				c.Name += "_"
			}
			others = append(others, c.Name)
		}
		table = append(table, c)
	}
	return table
}

// Names returns the names of the columns.
func (t *Texts) Names() []string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// newTexts returns texts without rows, with columns of these names.
func newTexts(columns []string) *Texts {
	t := new(Texts)
	for _, name := range columns {
		t.Columns = append(t.Columns, Column{Name: name})
	}
	return t
}

// Add adds a row, with a value for each column.
func (t *Texts) Add(text string, columns []string) {
	t.Text = append(t.Text, text)
	for i, value := range columns {
		t.Columns[i].Values = append(t.Columns[i].Values, value)
	}
}

// Set replaces row i.
func (t *Texts) Set(i int, text string, columns []string) {
	t.Text[i] = text
	for c, value := range columns {
		t.Columns[c].Values[i] = value
	}
}

// Row returns the values of row i in the columns.
func (t *Texts) Row(i int) []string {
	values := make([]string, len(t.Columns))
	for c, column := range t.Columns {
		values[c] = column.Values[i]
	}
	return values
}

// Slice returns the rows from lo to before hi, as parts of t; nil of nil.
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

// Select returns copies of some rows; nil of nil.
func (t *Texts) Select(rows []int) *Texts {
	if t == nil {
		return nil
	}
	part := newTexts(t.Names())
	for _, i := range rows {
		part.Add(t.Text[i], t.Row(i))
	}
	return part
}

// Join returns t followed by other, which has the same columns. Of nil and nil it is nil. It
// may take the memory of t.
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

// Validate returns an error unless t, which may be nil, has a text for each of so many rows, and
// a value for each of its columns, whose names differ.
func (t *Texts) Validate(rows int) error {
	if t == nil {
		return nil
	}
	if len(t.Text) != rows {
		return fmt.Errorf("%d texts for %d rows", len(t.Text), rows)
	}
	for i, c := range t.Columns {
		if len(c.Values) != rows {
			return fmt.Errorf("%d values of column %.60q for %d rows", len(c.Values), c.Name, rows)
		}
		if slices.ContainsFunc(t.Columns[:i], func(o Column) bool { return o.Name == c.Name }) || c.Name == IDName || c.Name == TextName {
			return fmt.Errorf("two columns are called %.60q", c.Name)
		}
	}
	return nil
}

// Name returns what people call row i: its word, or its text in one line, or its id if that is
// empty.
func (s *Sparse) Name(i int) string {
	if s.Texts != nil {
		if line := strings.Join(strings.Fields(s.Texts.Text[i]), " "); line != "" {
			return line
		}
	}
	return s.Words[i]
}

// areTexts reports whether what rows begin with are texts, and no words: one of them has a
// line break, or most of them have three words or are long.
func areTexts(rows []string) bool {
	const long = 24 // bytes: 8 characters of Chinese
	most := 0
	for _, r := range rows {
		if strings.ContainsAny(r, "\n\r") {
			return true
		}
		if len(r) >= long || len(strings.Fields(r)) > 2 {
			most++
		}
	}
	return 2*most > len(rows)
}

// kind returns what the rows are.
func (b *builder) kind() Kind {
	if b.texts {
		return KindTexts
	}
	return KindWords
}

// tell decides what the rows are, of which the first are given: what was asked for, or what they
// look like.
func (b *builder) tell(first []string) {
	const some = 1000
	b.texts = b.options.Rows == KindTexts || b.options.Rows == "" && areTexts(first[:min(some, len(first))])
}

// tellTable is tell for a table that begins with these rows. More than one in ten that are there
// before are no words.
func (b *builder) tellTable(t *Table, rows []Row) {
	if t.Kind != "" {
		b.texts = t.Kind == KindTexts
	} else {
		var first []string
		distinct := map[string]bool{}
		for _, r := range rows {
			first = append(first, r.Word)
			distinct[r.Word] = true
		}
		b.tell(first)
		if b.options.Rows == "" && 10*(len(first)-len(distinct)) > len(first) { // words are each there once
			b.texts = true
		}
	}
	if b.texts {
		b.ids, b.columns = t.IDs, t.Columns
	}
}

// tellLines is tell with the lines that a file begins with, the last of which is cut off if
// there are more.
func (b *builder) tellLines(head []byte) {
	var lines []string
	for line := range bytes.Lines(head) {
		lines = append(lines, string(bytes.TrimRight(line, "\r\n")))
	}
	if len(lines) > 1 && len(head) >= window {
		lines = lines[:len(lines)-1]
	}
	b.tell(lines)
}
