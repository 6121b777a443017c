package vectors

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"
)

// collect returns the rows of chunks.
func (r *reader) collect(chunks iter.Seq2[chunk, error]) (*Dense, error) {
	var c collector
	err := r.filterAll(chunks, func(block *Dense, _ error) bool { return c.add(block, 0) == nil })
	if err == nil {
		err = c.join()
	}
	return &c.rows, err
}

// A malformed row is reported before an error of the reader behind it.
func TestReadTextErrorOrder(t *testing.T) {
	broken := errors.New("broken")
	for text, message := range map[string]string{
		"a 1\nb x\nc":  `: word "b": value 1 is not a finite number (got "x")`,
		"a 1\nb 2\ncx": "broken",
	} {
		r := &reader{dim: 1, file: file{declared: -1}}
		file := bufio.NewReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)))
		_, err := r.collect(must(r.readText(t.Context(), heading{}, &content{Reader: file, size: -1})))
		if err == nil || !strings.HasSuffix(err.Error(), message) {
			t.Errorf("error is %v, want %s", err, message)
		}
	}
}
