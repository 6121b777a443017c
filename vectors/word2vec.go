package vectors

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"

	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
	"overcomplete/vectors/internal/tabular"
)

// readBinary yields the rows of word2vec's binary format after the header. If the file has more rows than it declares,
// an empty row follows.
func (r *reader) readBinary(ctx context.Context, h heading, file *content) (iter.Seq2[chunk, error], error) {
	dim, declared := h.dim, h.rows
	return inOrder(ctx, arrayReaders, func(yield func(func() (chunk, error), error) bool) {
		for left := declared; left > 0; {
			c, err := readBinaryRows(file.Reader, min(rowsPerBlock(dim), left), dim)
			left -= c.span
			if !yield(func() (chunk, error) { return c, nil }, nil) || err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
		rest, err := file.Peek(2)
		if err != nil && err != io.EOF {
			yield(nil, err)
		} else if len(bytes.TrimPrefix(rest, newline)) > 0 {
			yield(func() (chunk, error) { return chunk{rows: make([]tabular.Row, 1)}, nil }, nil)
		}
	}, r.ended), nil
}

// readBinaryRows reads n rows. If file has fewer, it returns them with io.EOF.
func readBinaryRows(file *bufio.Reader, n, dim int) (c chunk, err error) {
	c.data, c.rows = memory.Numbers(n * dim)[:0], make([]tabular.Row, 0, n)
	for c.span < n {
		word, err := readBinaryID(file)
		if err != nil {
			return c, err
		}
		end := len(c.data) + dim
		vector := c.data[len(c.data):end]
		if err := float32s.Read(file, vector); err == io.ErrUnexpectedEOF {
			return c, io.EOF
		} else if err != nil {
			return c, err
		}
		row := tabular.Row{Number: c.span, Name: word, Err: checkVector(vector)}
		if row.Err == nil {
			c.data = c.data[:end]
		}
		c.rows = append(c.rows, row)
		c.span++
	}
	return c, nil
}

var newline = []byte("\n")

// readBinaryID reads a word and the space after it. It removes a newline before the
// word, because word2vec and some other programs end each row with a newline.
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
