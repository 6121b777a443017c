package model

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"overcomplete/vectors"
)

// A wordReader reads words.txt, whose lines are words that [vectors.CheckWord] accepts.
type wordReader struct {
	r    *bufio.Reader
	line int
}

func newWordReader(r io.Reader) *wordReader {
	return &wordReader{r: bufio.NewReaderSize(r, 1<<16)}
}

// next returns the next word, or the error io.EOF if there is none.
func (w *wordReader) next() (string, error) {
	w.line++
	var word []byte
	for {
		part, err := w.r.ReadSlice('\n')
		word = append(word, part...)
		switch {
		case err == bufio.ErrBufferFull && bytes.IndexByte(part, 0) < 0:
			continue // a NUL, of which a file may have any number at no cost, is in no word
		case err == io.EOF && len(word) == 0:
			return "", io.EOF
		case err == io.EOF:
			return "", errors.New("truncated: the last line has no end")
		case err != nil && err != bufio.ErrBufferFull:
			return "", err
		}
		text := string(bytes.TrimSuffix(word, []byte("\n")))
		return text, checkWord(w.line, text)
	}
}

// readWords reads a words.txt of n words.
func readWords(r io.Reader, n int) ([]string, error) {
	var words []string
	lines := newWordReader(r)
	for {
		word, err := lines.next()
		switch {
		case err == io.EOF && len(words) == n:
			return words, nil
		case err == io.EOF:
			return nil, fmt.Errorf("%d words, %s says %d", len(words), infoFile, n)
		case err != nil:
			return nil, err
		case len(words) == n:
			return nil, fmt.Errorf("more words than the %d that %s says", n, infoFile)
		}
		words = append(words, word)
	}
}

// writeWords writes a words.txt, or more of one that has some lines already.
func writeWords(w *bufio.Writer, words []string, lines int) error {
	for i, word := range words {
		if err := checkWord(lines+i+1, word); err != nil {
			return err
		}
		w.WriteString(word)
		if err := w.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

func checkWord(line int, word string) error {
	if err := vectors.CheckWord(word); err != nil {
		return fmt.Errorf("line %d, %.60q: %w", line, word, err)
	}
	return nil
}
