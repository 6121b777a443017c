package vectors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

const binaryChunk = 1 << 16 // numbers that are read in one go

// readBinary adds the rows of word2vec's binary format in r, which is after the
// header, to b. If r ends too early, rows are missing from b.
func readBinary(r *bufio.Reader, b *builder) error {
	for b.number < b.want && !b.full {
		rows := min(max(1, binaryChunk/b.dim), b.want-b.number)
		c, readErr := readBinaryRows(r, rows, b.dim)
		if err := b.add(c); err != nil {
			return err
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil && !b.full {
			return readErr
		}
	}
	if b.full {
		return nil
	}
	rest, err := r.Peek(2)
	b.excess = len(bytes.TrimPrefix(rest, newline)) > 0
	if err != io.EOF {
		return err
	}
	return nil
}

// readBinaryRows reads up to n rows. The error is io.EOF if r ends before.
func readBinaryRows(r *bufio.Reader, n, dim int) (chunk, error) {
	c := chunk{data: make([]float32, 0, n*dim)}
	raw := make([]byte, 4*dim)
	for c.span < n {
		word, err := readBinaryWord(r)
		if err != nil {
			return c, err
		}
		if _, err := io.ReadFull(r, raw); err == io.ErrUnexpectedEOF {
			return c, io.EOF
		} else if err != nil {
			return c, err
		}
		vector := c.data[len(c.data) : len(c.data)+dim]
		for i := range vector {
			vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		if err = checkVector(vector); err == nil {
			err = CheckWord(word)
		}
		if err == nil {
			c.data = c.data[:len(c.data)+dim]
		}
		c.rows = append(c.rows, row{number: c.span, word: word, err: err})
		c.span++
	}
	return c, nil
}

var newline = []byte("\n")

// readBinaryWord reads a word and the space after it. The original program ends
// a row with a newline and some others don't, so that one newline before the
// word is no part of it.
func readBinaryWord(r *bufio.Reader) (string, error) {
	word, err := r.ReadSlice(' ')
	if err == bufio.ErrBufferFull {
		return "", fmt.Errorf("damaged: no end of a word in %d bytes", len(word))
	}
	if err != nil {
		return "", err
	}
	return string(bytes.TrimPrefix(word[:len(word)-1], newline)), nil
}
