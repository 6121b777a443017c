package vectors

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"overcomplete/internal/float32s"
	"overcomplete/internal/input"
	"overcomplete/vectors/internal/tabular"
)

// A recordFormat parses the records of a text format of tables: CSV or JSON.
type recordFormat interface {
	name() string

	// cut is the function of a [splitter].
	cut(b []byte, last bool) (end, quote int)

	// columns returns the columns. The records of a file's first piece determine their kinds.
	columns(piece []byte) ([]tabular.Column, error)

	// parse returns the rows of a piece; the caller sets records.lines. parse must be safe for concurrent calls.
	parse(piece []byte, l *recordLayout) records
}

// records are the parsed rows of a piece. Line numbers count from the beginning of the piece.
type records struct {
	tabular.Block
	lines   int      // number of line breaks in the piece
	unknown []string // keys that aren't columns
}

// add adds a row. Its vector begins at index start of the numbers. If problem isn't nil, the row has no vector.
func (r *records) add(row tabular.Row, number, start int, problem error) {
	if problem != nil {
		r.Numbers = r.Numbers[:start]
	}
	row.Number, row.Len, row.Err = number, len(r.Numbers)-start, problem
	r.Rows = append(r.Rows, row)
}

// A recordLayout is a layout that also stores the role of each column by index.
type recordLayout struct {
	*tabular.Layout
	position []int // index in the vector, or -1
	list     int   // column of lists, or -1
}

func newRecordLayout(l *tabular.Layout) *recordLayout {
	all := &recordLayout{l, slices.Repeat([]int{-1}, len(l.Columns)), -1}
	if len(l.Vectors) > 0 && l.Columns[l.Vectors[0]].Kind != tabular.Number {
		all.list = l.Vectors[0]
		l.Columns[all.list].Kind = tabular.List // also for lists in strings, because the parser reads them, not Layout.Row
		l.Strings = slices.DeleteFunc(l.Strings, func(i int) bool { return i == all.list })
		return all
	}
	for position, i := range l.Vectors {
		all.position[i] = position
	}
	return all
}

// detectRecords returns the format of a table in text that begins with head, or nil, and the offset of its first
// record. If the file were text without columns, a row would have dim numbers; 0 means that it can't be such text.
func detectRecords(head []byte, dim int, whole bool) (f recordFormat, start int, err error) {
	json := jsonParser{b: head}
	switch {
	case json.beginsObject():
		return &jsonFormat{}, 0, nil
	case json.skip('[') && json.beginsObject():
		return nil, 0, errJSONArray
	}
	csv, start, err := detectCSV(head, dim, whole)
	if csv == nil {
		return nil, 0, err // not a nil pointer in an interface
	}
	return csv, start, nil
}

// openRecords opens a table in text with the heading h. The first MiB determines the columns. The other
// pieces have about size bytes. The function ended is as in [parsePieces]. The reader r counts keys that aren't columns.
func (r *reader) openRecords(ctx context.Context, h heading, name string, file io.Reader, o tabular.Options, size int, ended func() bool) (*tabular.Layout, tabular.Blocks, error) {
	line := h.lines // number of lines before the next piece
	locate := func(err error) error {
		if at, ok := errors.AsType[*InputError](err); ok {
			return &InputError{File: input.Name(name), Line: line + at.Line, Err: at.Err}
		}
		return err
	}
	s := &splitter{file: file, size: window, cut: h.record.cut}
	piece, err := s.piece()
	if err == nil && len(piece) == 0 && s.err != io.EOF {
		err = s.err
	}
	if err != nil {
		return nil, nil, locate(err)
	}
	s.first, s.size = piece, size
	columns, err := h.record.columns(piece)
	if err != nil {
		return nil, nil, locate(err)
	}
	chosen, err := tabular.Choose(columns, o)
	if err != nil {
		return nil, nil, err
	}
	layout := newRecordLayout(chosen)
	parsed := parsePieces(ctx, s, ended, func(piece []byte) records {
		r := h.record.parse(piece, layout)
		r.Numbers, r.lines = clipNumbers(r.Numbers), bytes.Count(piece, newline)
		return r
	})
	return chosen, func(yield func(tabular.Block, error) bool) {
		first := true
		for p, err := range parsed {
			if first && err == nil {
				first, err = false, r.checkBits(p.Numbers)
			}
			for i := range p.Rows {
				p.Rows[i].Number += line
			}
			if err == nil && len(p.Rows) > 0 && !yield(p.Block, nil) {
				return
			}
			if err = locate(err); err != nil {
				yield(tabular.Block{}, err)
				return
			}
			r.addUnknown(p.unknown)
			line += p.lines
		}
	}, nil
}

// addUnknown counts distinct keys that are not columns, for a warning. It counts and stores at most 1000 keys.
func (r *reader) addUnknown(keys []string) {
	const most = 1000
	for _, key := range keys {
		if !r.keys[key] && len(r.keys) < most {
			if r.keys == nil {
				r.keys = map[string]bool{}
			}
			r.keys[key] = true
			r.unknown.add(quote(key))
		}
	}
}

// A sampler counts the values of a column by their type.
type sampler struct {
	column  tabular.Column
	lists   int // lists of numbers
	strings int
	opened  int // strings that begin like a list
	inner   int // strings that contain a list of numbers
	commas  int // strings that are a number with a decimal comma
	numbers int
	others  int    // other values that strings can represent
	nested  string // type of a value that is nested, or ""
}

func (s *sampler) addString(value []byte) {
	s.strings++
	if i := bytes.IndexByte(value, ','); i >= 0 && isNumeric(slices.Concat(value[:i], []byte{'.'}, value[i+1:])) {
		s.commas++
	}
	if value = bytes.TrimSpace(value); len(value) > 0 && value[0] == '[' {
		s.opened++
		if numbers, err := appendVector(nil, value); err == nil && len(numbers) > 0 {
			s.inner++
		}
	}
}

// choose sets the kind and type of the column. A column without values has the kind that its name suggests.
func (s *sampler) choose() tabular.Column {
	c := &s.column
	switch {
	case s.lists > 0 && s.lists >= s.strings:
		c.Kind, c.Type = tabular.List, "list of numbers"
	case s.inner > 0 && s.opened == s.strings:
		c.Kind, c.Type = tabular.List, "list in a string"
	case s.strings > 0:
		c.Kind, c.Type = tabular.Text, "string"
		if s.commas == s.strings {
			c.Type = "string, with a decimal comma"
		}
	case s.numbers > 0:
		c.Kind, c.Type = tabular.Number, "number"
	case s.others > 0:
		c.Kind, c.Type = tabular.Scalar, "boolean"
	case s.nested != "":
		c.Kind, c.Type = tabular.Other, s.nested
	case tabular.NamesVectors(c.Name):
		c.Kind, c.Type = tabular.List, "empty"
	case tabular.NamesTexts(c.Name):
		c.Kind, c.Type = tabular.Text, "empty"
	default:
		c.Kind, c.Type = tabular.Scalar, "empty"
	}
	return *c
}

// appendVector parses a vector and appends its numbers. The vector is a list, such as "[0.1, -2e-3]" or "0.1 -2e-3", or
// (as OpenAI writes it) the base64 encoding of little-endian float32.
func appendVector(numbers []float32, vector []byte) ([]float32, error) {
	b := bytes.TrimSpace(vector)
	if len(b) > 1 && b[0] == '[' && b[len(b)-1] == ']' {
		b = b[1 : len(b)-1]
	} else if decoded, ok := appendBase64(numbers, b); ok {
		return decoded, nil
	}
	before := len(numbers)
	numbers, end, err := appendList(numbers, b, 0)
	if err == nil && end < len(b) {
		err = fmt.Errorf("value %d of the list is %w (got %s)", len(numbers)-before+1, errNotNumber, quote(b[end:end+1]))
	}
	return numbers, err
}

// appendList appends the numbers of a list that begins at b[i]. It returns the offset of the next bracket, or the end
// of b. Commas or white space separate the numbers.
func appendList(numbers []float32, b []byte, i int) (_ []float32, end int, err error) {
	i = skipSpace(b, i)
	for n := 1; i < len(b) && b[i] != ']'; n++ {
		x, end, err := parseDecimal(b, i)
		if end < len(b) && b[end] > ',' && b[end] != ']' || end < len(b) && b[end] < ',' && !isSpace(b[end]) {
			err = errNotNumber
		}
		if err != nil {
			return numbers, i, fmt.Errorf("value %d of the list is %w (got %s)", n, err, quote(field(b[i:])))
		}
		numbers = append(numbers, x)
		if i = skipSpace(b, end); i < len(b) && b[i] == ',' {
			if i = skipSpace(b, i+1); i == len(b) || b[i] == ']' {
				return numbers, i, fmt.Errorf("value %d of the list is missing", n+1)
			}
		}
	}
	return numbers, i, nil
}

// appendBase64 appends the float32 numbers that b encodes. If b isn't base64 of float32, or is a number, ok is false.
func appendBase64(numbers []float32, b []byte) (decoded []float32, ok bool) {
	if len(b) < 8 || len(b)%4 != 0 {
		return numbers, false
	}
	if _, end, err := parseDecimal(b, 0); err == nil && end == len(b) {
		return numbers, false
	}
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	n, err := base64.StdEncoding.Decode(raw, b)
	if err != nil || n%4 != 0 {
		return numbers, false
	}
	old := len(numbers)
	numbers = slices.Grow(numbers, n/4)[:old+n/4]
	float32s.Decode(numbers[old:], raw[:n])
	return numbers, true
}

// field returns the bytes of b before the first white space, comma or bracket, for messages.
func field(b []byte) []byte {
	if i := bytes.IndexAny(b, ",]} \t\r\n"); i >= 0 {
		return b[:i]
	}
	return b
}

// skipSpace returns the offset of the first byte of b, from i, that isn't white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// clipNumbers copies numbers if much of their memory is unused, because the caller keeps the result.
func clipNumbers(numbers []float32) []float32 {
	if cap(numbers)-len(numbers) > len(numbers)/8 {
		return slices.Clone(numbers)
	}
	return numbers
}
