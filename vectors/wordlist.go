package vectors

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
)

// A wordList is a list of words, one a line in the order of the rows.
type wordList struct {
	file   string
	lines  *bufio.Scanner
	read   int         // words so far
	stored *storedFile // nil if the list is part of another file
}

// openWordList opens the list that the options name.
func (r *reader) openWordList(ctx context.Context) (*wordList, error) {
	path := r.options.WordList
	f, err := open(ctx, path)
	if err != nil {
		return nil, inputError(path, err)
	}
	content, _, err := decompress(f)
	if err != nil {
		f.Close()
		return nil, inputError(path, err)
	}
	if start, _ := content.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		content.Discard(len(byteOrderMark))
	}
	l := r.newWordList(content, displayName(path))
	l.stored = f
	return l, nil
}

// newWordList returns the list of words in content, which is in a file.
func (r *reader) newWordList(content *bufio.Reader, file string) *wordList {
	head, _ := content.Peek(window)
	r.setListKind(head)
	l := &wordList{file: file, lines: bufio.NewScanner(content)}
	l.lines.Buffer(nil, window)
	return l
}

// name returns the next word, which must exist.
func (l *wordList) name() (string, error) {
	word, err := l.next()
	if err == io.EOF {
		err = fmt.Errorf("%d words for more rows", l.read)
	}
	return word, err
}

// setListKind is setKind for a word list that begins with head. The last line is cut if there
// are more.
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

// next returns the next word, or io.EOF after the last.
func (l *wordList) next() (string, error) {
	switch {
	case l.lines.Scan():
		l.read++
		return l.lines.Text(), nil
	case l.lines.Err() == nil:
		return "", io.EOF
	case l.lines.Err() == bufio.ErrTooLong:
		return "", &InputError{File: l.file, Line: l.read + 1, Err: fmt.Errorf("a word of over %d bytes", window)}
	}
	return "", inputError(l.file, l.lines.Err())
}

// end returns an error if there is another word: what follows may have no end.
func (l *wordList) end() error {
	_, err := l.next()
	switch err {
	case nil:
		return fmt.Errorf("more than %d words for %[1]d rows", l.read-1)
	case io.EOF:
		return nil
	}
	return err
}

// sum reads the file to its end and returns its SHA-256.
func (l *wordList) sum() (string, error) {
	sum, err := l.stored.sum()
	if err != nil {
		err = inputError(l.file, err)
	}
	return sum, err
}
