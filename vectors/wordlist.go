package vectors

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"overcomplete/internal/input"
	"overcomplete/vectors/internal/tabular"
)

// A wordList names rows in their order, by the lines of a file or the rows of a table.
type wordList struct {
	file   string                        // name of the file for messages
	format string                        // format of a table, or ""
	header bool                          // the first line is like the header of a table
	next   func() ([]tabular.Row, error) // returns io.EOF after the last row
	rows   []tabular.Row                 // rows that are read but not yet used
	read   int                           // number of rows so far
	lines  bool                          // rows are counted in lines
	line   int                           // line of the latest row
	table  *tabular.Layout               // nil if rows are lines
	done   bool                          // all names are read; the rest of the table is only hashed
	stored *storedFile
	stop   func() // ends the iteration of the function next
}

func (r *reader) openWordList(ctx context.Context) (*wordList, error) {
	path := r.options.WordList
	f, err := open(ctx, path, r.earlier.files[path])
	if err != nil {
		return nil, inputError(path, err)
	}
	l, err := r.newList(ctx, path, f)
	if err != nil {
		f.Close()
		return nil, inputError(path, err)
	}
	return l, nil
}

// newList returns the list of the words in a file, or of the rows of its table.
func (r *reader) newList(ctx context.Context, path string, f *storedFile) (*wordList, error) {
	stored, size, err := decompress(f)
	if err != nil {
		return nil, err
	}
	if start, _ := stored.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		stored.Discard(len(byteOrderMark))
	}
	head, whole, err := firstLines(stored, f.size() < 0)
	if err != nil {
		return nil, err
	}
	o := &r.options
	columns := tabular.Options{Rows: string(o.Rows), IDColumn: o.IDColumn, TextColumn: o.TextColumn, NamesOnly: true}
	l := &wordList{file: input.Name(path), stored: f, stop: func() {}}
	var blocks tabular.Blocks
	if format := findFormat(head); format != nil {
		l.format = format.Name
		l.table, blocks, err = format.Open(&content{stored, size, f}, columns)
	} else if format, start, problem := detectRecords(head, 0, whole); problem == errJSONArray {
		return nil, problem
	} else if format != nil && isTable(format, o.TextColumn != "", head[:start], head[start:], whole) {
		stored.Discard(start)
		h := heading{lines: bytes.Count(head[:start], newline), record: format}
		l.format, l.lines = format.name(), true
		l.table, blocks, err = r.openRecords(ctx, h, path, stored, columns, textChunk, func() bool { return l.done })
	} else {
		l.header, l.lines = format != nil, true
		r.readLines(l, stored)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(blocks)
	l.stop = stop
	l.next = func() ([]tabular.Row, error) {
		b, err, ok := next()
		if !ok {
			return nil, io.EOF
		}
		if err != nil {
			return nil, inputError(l.file, err)
		}
		return b.Rows, nil
	}
	if err := l.fill(); err != nil && err != io.EOF {
		return nil, err
	}
	r.setTableKind(l.table, l.rows)
	return l, nil
}

// isTable reports whether a list is a table with the given header and first rows. Texts whose first line names columns by
// chance, such as "Content, price and quality were good.", aren't: in them, a space follows the comma. A CSV file with
// such a header must fit most of the rows. If named is set, an option names a column of the list.
func isTable(f recordFormat, named bool, header, rows []byte, whole bool) bool {
	c, ok := f.(*csvFormat)
	if !ok || named {
		return true
	}
	tidy := !bytes.Contains(header, []byte{c.comma, ' '}) && !slices.Contains(c.names, "")
	return len(c.names) > 1 && slices.ContainsFunc(c.names, tabular.NamesTexts) && (tidy || c.fits(rows, whole))
}

// readLines makes a list read the lines of content. The first lines determine the kind of rows.
func (r *reader) readLines(l *wordList, content *bufio.Reader) {
	head, _ := content.Peek(window)
	var names []string
	for line := range bytes.Lines(head) {
		names = append(names, string(bytes.TrimRight(line, "\r\n")))
	}
	if len(names) > 1 && len(head) >= window { // the last line may be incomplete
		names = names[:len(names)-1]
	}
	r.setKind(names)
	lines := bufio.NewScanner(content)
	lines.Buffer(nil, window)
	row := make([]tabular.Row, 1)
	l.next = func() ([]tabular.Row, error) {
		switch {
		case lines.Scan():
			row[0] = tabular.Row{Name: lines.Text(), Number: l.read}
			return row, nil
		case lines.Err() == nil:
			return nil, io.EOF
		case lines.Err() == bufio.ErrTooLong:
			return nil, &InputError{File: l.file, Line: l.read + 1, Err: fmt.Errorf("the word is too long (want at most %d bytes)", window)}
		}
		return nil, inputError(l.file, lines.Err())
	}
}

// name gives a row the name of the list's next row, or returns an error if the list has ended. Words contain no tabs.
func (l *wordList) name(row *tabular.Row, texts bool) error {
	switch err := l.fill(); {
	case err == io.EOF:
		return l.miscounted("fewer", "")
	case err != nil:
		return err
	}
	t := &l.rows[0]
	l.rows = l.rows[1:]
	l.read++
	l.line = t.Number + 1
	if l.table == nil && !texts && strings.Contains(t.Name, "\t") {
		return l.locate(errTab)
	}
	row.Name, row.NotID, row.ID, row.Columns = t.Name, t.NotID, t.ID, t.Columns
	if t.Err != nil && row.Err == nil {
		row.Err = l.locate(fmt.Errorf("read as %s: %w", l.format, t.Err))
	}
	return nil
}

// locate returns an error at the latest row.
func (l *wordList) locate(err error) error {
	if l.lines {
		return &InputError{File: l.file, Line: l.line, Err: err}
	}
	return &InputError{File: l.file, Row: l.read, Err: err}
}

// miscounted returns the error of a list with another number of words than the vectors have rows.
func (l *wordList) miscounted(how, than string) error {
	list := "the word list"
	if l.table != nil {
		list += ", read as " + l.format + ","
	}
	err := fmt.Errorf("%s has %s words than rows (got %s%d words)", list, how, than, l.read)
	if l.header {
		err = &tabular.OptionError{Option: "TextColumn", Err: fmt.Errorf("%w; %s", err, listAdvice)}
	}
	return &InputError{File: l.file, Err: err}
}

// fill reads the next rows if l.rows is empty. It returns io.EOF after the last row.
func (l *wordList) fill() (err error) {
	for len(l.rows) == 0 && err == nil {
		l.rows, err = l.next()
	}
	return err
}

// end returns an error if the list has another row. It doesn't read on after that row,
// since the list may be endless.
func (l *wordList) end() error {
	switch err := l.fill(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	return l.miscounted("more", "more than ")
}

// describe describes the table of the list; see [tabular.Layout.Describe].
func (l *wordList) describe(texts bool) (columns string, warnings []string) {
	columns, warnings = l.table.Describe(texts)
	for i := range warnings {
		warnings[i] = l.file + ": " + warnings[i]
	}
	return columns, warnings
}

// sum reads the file to its end and returns its SHA-256.
func (l *wordList) sum(r *reader) (string, error) {
	l.done = true
	l.stop()
	sum, err := r.sum(l.stored)
	if err != nil {
		err = inputError(l.file, err)
	}
	return sum, err
}

func (l *wordList) close() {
	l.stop()
	l.stored.Close()
}

const listAdvice = "a word list has one word or text per line, or is a table whose rows have the header's number of cells, with a column word or text"

var errTab = &tabular.OptionError{Option: "TextColumn", Err: errors.New("the word contains a tab; " + listAdvice)}
