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

	"overcomplete/vectors/internal/tabular"
)

// A wordList names rows by a list of words, one per line in the order of the rows, or by the rows of a table.
type wordList struct {
	file   string
	lines  *bufio.Scanner
	read   int         // rows so far
	stored *storedFile // nil if the list is part of another file

	table *tabular.Layout // nil for lines
	block func() (tabular.Block, error, bool)
	stop  func() // ends block
	rows  []tabular.Row
	done  bool // the rest of the table isn't read as a table
}

// openWordList opens the word list of the options.
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

// newList returns the words of a file, or the rows of its table.
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
	l := &wordList{file: displayName(path), stored: f, stop: func() {}}
	var blocks tabular.Blocks
	if format := findFormat(head); format != nil {
		l.table, blocks, err = format.Open(&content{stored, size, f}, columns)
	} else if format, start, _ := detectRecords(head, 0, whole); format != nil && namesTexts(format, o.TextColumn) {
		stored.Discard(start)
		h := heading{lines: bytes.Count(head[:start], newline), record: format}
		l.table, blocks, err = r.openRecords(ctx, h, path, stored, columns, window, textChunk, func() bool { return l.done })
	} else {
		l.setLines(r, stored)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.block, l.stop = iter.Pull2(blocks)
	if err := l.fill(); err != nil && err != io.EOF {
		return nil, err
	}
	r.setTableKind(l.table, l.rows)
	return l, nil
}

// namesTexts reports whether a format is JSON, or CSV with a column of words or texts. Texts with commas aren't such a table.
func namesTexts(f recordFormat, column string) bool {
	c, ok := f.(*csvFormat)
	return !ok || len(c.names) > 1 && slices.ContainsFunc(c.names, func(name string) bool { return name == column || tabular.NamesTexts(name) })
}

// newWordList returns the list of words in the content of a file.
func (r *reader) newWordList(content *bufio.Reader, file string) *wordList {
	l := &wordList{file: file, stop: func() {}}
	l.setLines(r, content)
	return l
}

// setLines makes the list return the lines of content.
func (l *wordList) setLines(r *reader, content *bufio.Reader) {
	head, _ := content.Peek(window)
	r.setListKind(head)
	l.lines = bufio.NewScanner(content)
	l.lines.Buffer(nil, window)
}

// name names a row by the next row of the list, or returns an error if there is none. Words contain no tabs.
func (l *wordList) name(row *tabular.Row, texts bool) error {
	err := l.next(row)
	if err == nil && l.table == nil && !texts && strings.Contains(row.Name, "\t") {
		err = &InputError{File: l.file, Line: l.read, Err: errTab}
	}
	if err == io.EOF && l.table != nil {
		err = fmt.Errorf("%s has fewer rows than the vectors (got %d rows)", l.file, l.read)
	} else if err == io.EOF {
		err = fmt.Errorf("the word list has fewer words than rows (got %d words)", l.read)
	}
	return err
}

// setListKind sets the kind of rows from the beginning of a word list. It ignores the last
// line if that may be incomplete.
func (r *reader) setListKind(head []byte) {
	var lines []string
	for line := range bytes.Lines(head) {
		lines = append(lines, string(bytes.TrimRight(line, "\r\n")))
	}
	if len(lines) > 1 && len(head) >= window {
		lines = lines[:len(lines)-1]
	}
	r.setKind(lines)
}

// fill reads the next rows of a table, if there are none left. It returns io.EOF after the last row.
func (l *wordList) fill() error {
	for len(l.rows) == 0 {
		b, err, ok := l.block()
		if !ok {
			return io.EOF
		}
		if err != nil {
			return inputError(l.file, err)
		}
		l.rows = b.Rows
	}
	return nil
}

// next sets the name of a row or, from a table, also its id and columns. It returns io.EOF after the last row of the list.
func (l *wordList) next(row *tabular.Row) error {
	if l.table != nil {
		if err := l.fill(); err != nil {
			return err
		}
		t := l.rows[0]
		l.rows = l.rows[1:]
		l.read++
		row.Name, row.NotID, row.ID, row.Columns = t.Name, t.NotID, t.ID, slices.Clone(t.Columns)
		if t.Err != nil && row.Err == nil {
			row.Err = fmt.Errorf("row %d of %s: %w", l.read, l.file, t.Err)
		}
		return nil
	}
	switch {
	case l.lines.Scan():
		l.read++
		row.Name = l.lines.Text()
		return nil
	case l.lines.Err() == nil:
		return io.EOF
	case l.lines.Err() == bufio.ErrTooLong:
		return &InputError{File: l.file, Line: l.read + 1, Err: fmt.Errorf("the word is too long (want at most %d bytes)", window)}
	}
	return inputError(l.file, l.lines.Err())
}

// end returns an error if there is another row. It reads only that one, since the list may
// be endless.
func (l *wordList) end() error {
	err := l.next(new(tabular.Row))
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	case l.table != nil:
		return fmt.Errorf("%s has more rows than the vectors (got more than %d rows)", l.file, l.read-1)
	}
	return fmt.Errorf("the word list has more words than rows (got more than %d words)", l.read-1)
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

var errTab = errors.New("the word contains a tab; a word list has one column without a header, or a header with a column word or text")
