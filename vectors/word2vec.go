package vectors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
)

const binaryChunk = 1 << 16 // numbers per chunk

// readBinary yields the rows of word2vec's binary format in r, which is after the header. If
// there are more than declared, it yields one empty row more.
func readBinary(r *bufio.Reader, dim, declared int) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		for left := declared; left > 0; {
			c, err := readBinaryRows(r, min(max(1, binaryChunk/dim), left), dim)
			left -= c.span
			if !yield(c, nil) || err == io.EOF {
				return
			}
			if err != nil {
				yield(chunk{}, err)
				return
			}
		}
		rest, err := r.Peek(2)
		if err != nil && err != io.EOF {
			yield(chunk{}, err)
		} else if len(bytes.TrimPrefix(rest, newline)) > 0 {
			yield(chunk{rows: make([]row, 1)}, nil)
		}
	}
}

// readBinaryRows reads n rows. If r has fewer, it returns them with io.EOF.
func readBinaryRows(r *bufio.Reader, n, dim int) (chunk, error) {
	c := chunk{data: make([]float32, 0, n*dim)}
	raw := make([]byte, 4*dim)
	for c.span < n {
		id, err := readBinaryID(r)
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
			c.data = c.data[:len(c.data)+dim]
		}
		c.rows = append(c.rows, row{number: c.span, name: id, err: err})
		c.span++
	}
	return c, nil
}

var newline = []byte("\n")

// readBinaryWord reads a word and the space after it. It removes a newline before the
// word, with which word2vec, but not every other program, ends the previous row.
func readBinaryID(r *bufio.Reader) (string, error) {
	word, err := r.ReadSlice(' ')
	if err == bufio.ErrBufferFull {
		return "", fmt.Errorf("damaged: a word doesn't end within %d bytes", len(word))
	}
	if err != nil {
		return "", err
	}
	return string(bytes.TrimPrefix(word[:len(word)-1], newline)), nil
}
