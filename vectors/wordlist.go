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

// openWordList lets the file that the options name give the rows their names.
func (r *reader) openWordList(ctx context.Context) error {
	path := r.options.WordList
	f, err := open(ctx, path)
	if err != nil {
		return inputError(path, err)
	}
	content, _, err := decompress(f)
	if err != nil {
		f.Close()
		return inputError(path, err)
	}
	if start, _ := content.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		content.Discard(len(byteOrderMark))
	}
	head, _ := content.Peek(window)
	r.setListKind(head)
	l := newWordList(content, displayName(path))
	l.stored = f
	r.list = l
	r.names = func() (string, error) {
		word, err := l.next()
		if err == io.EOF {
			err = fmt.Errorf("%d words for more rows", l.read)
		}
		return word, err
	}
	return nil
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

func newWordList(r io.Reader, file string) *wordList {
	l := &wordList{file: file, lines: bufio.NewScanner(r)}
	l.lines.Buffer(nil, window)
	return l
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

// all returns all words, of which there must be n.
func (l *wordList) all(n int) (words []string, err error) {
	for range n {
		word, err := l.next()
		if err == io.EOF {
			return nil, fmt.Errorf("%d words for %d rows", len(words), n)
		} else if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return words, l.end()
}

// listedWords returns all words of the word list, of which there must be n; nil without a list.
// It is cheaper than to read an array whose rows it does not name.
func (r *reader) listedWords(n int) ([]string, error) {
	if r.list == nil {
		return nil, nil
	}
	return r.list.all(n)
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
