package vectors

import (
	"bufio"
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

// openWordList opens the file that has the words.
func (b *builder) openWordList(ctx context.Context) (*wordList, error) {
	path := b.options.WordList
	f, err := open(ctx, path)
	if err != nil {
		return nil, inputError(path, err)
	}
	r, _, err := decompress(f)
	if err != nil {
		f.Close()
		return nil, inputError(path, err)
	}
	if start, _ := r.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		r.Discard(len(byteOrderMark))
	}
	head, _ := r.Peek(window)
	b.tellLines(head)
	l := newWordList(r, displayName(path))
	l.stored = f
	return l, nil
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

// readWordList returns the words of the file that has them, of which there must be n.
func (b *builder) readWordList(ctx context.Context, n int) ([]string, error) {
	l, err := b.openWordList(ctx)
	if err != nil {
		return nil, err
	}
	defer l.stored.Close()
	words, err := l.all(n)
	if err == nil {
		b.wordsSum, err = l.sum()
	}
	return words, err
}

// withWordList calls read to add rows that get their words from the file that has them.
func (b *builder) withWordList(ctx context.Context, read func() error) error {
	l, err := b.openWordList(ctx)
	if err != nil {
		return err
	}
	defer l.stored.Close()
	b.name = func() (string, error) {
		word, err := l.next()
		if err == io.EOF {
			err = fmt.Errorf("%d words for more rows", l.read)
		}
		return word, err
	}
	if err = read(); err == nil && !b.full {
		err = l.end()
	}
	if err == nil {
		b.wordsSum, err = l.sum()
	}
	return err
}
