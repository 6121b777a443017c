package vectors

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
)

// A wordList reads a list of words, one per line in the order of the rows.
type wordList struct {
	file   string
	lines  *bufio.Scanner
	read   int         // words so far
	stored *storedFile // nil if the list is part of another file
}

// openWordList opens the word list of the options.
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

// newWordList returns the list of words in the content of a file.
func (r *reader) newWordList(content *bufio.Reader, file string) *wordList {
	head, _ := content.Peek(window)
	r.setListKind(head)
	l := &wordList{file: file, lines: bufio.NewScanner(content)}
	l.lines.Buffer(nil, window)
	return l
}

// name returns the next word, or an error if there is none.
func (l *wordList) name() (string, error) {
	word, err := l.next()
	if err == io.EOF {
		err = fmt.Errorf("the word list has fewer words than rows (got %d words)", l.read)
	}
	return word, err
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

// next returns the next word, or io.EOF after the last.
func (l *wordList) next() (string, error) {
	switch {
	case l.lines.Scan():
		l.read++
		return l.lines.Text(), nil
	case l.lines.Err() == nil:
		return "", io.EOF
	case l.lines.Err() == bufio.ErrTooLong:
		return "", &InputError{File: l.file, Line: l.read + 1, Err: fmt.Errorf("the word is too long (want at most %d bytes)", window)}
	}
	return "", inputError(l.file, l.lines.Err())
}

// end returns an error if there is another word. It reads only that one, since the list may
// be endless.
func (l *wordList) end() error {
	_, err := l.next()
	switch err {
	case nil:
		return fmt.Errorf("the word list has more words than rows (got more than %d words)", l.read-1)
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
