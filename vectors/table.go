package vectors

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"overcomplete/internal/memory"
	"overcomplete/vectors/internal/tabular"
)

// content is the decompressed content of a file.
type content struct {
	io.Reader
	size   int64 // in bytes, or -1 if unknown
	stored *storedFile
}

// Size implements [tabular.Content].
func (c *content) Size() int64 { return c.size }

// RandomAccess implements [tabular.Content]. It reads compressed content and pipes into memory. It
// returns an error if there is too little memory, or if content expands to more than a hundred times its size.
func (c *content) RandomAccess() (io.ReaderAt, int64, error) {
	if c.size >= 0 {
		c.stored.readRest() // concurrently with ReadAt
		return c.stored, c.size, nil
	}
	// Vectors compress poorly. A higher ratio is a decompression bomb.
	const ratio, free = 100, 16 << 20
	data := make([]byte, 0, 1<<20)
	for {
		if len(data) == cap(data) {
			if err := memory.Check(2 * uint64(len(data))); err != nil {
				return nil, 0, fmt.Errorf("the content must fit into memory: %w", err)
			}
			data = slices.Grow(data, len(data))
		}
		n, err := c.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return bytes.NewReader(data), int64(len(data)), nil
		case err != nil:
			return nil, 0, err
		case int64(len(data)) > free+ratio*c.stored.delivered.Load():
			return nil, 0, fmt.Errorf("%d bytes expand to more than %d times their size; if this is intended, decompress the file first", c.stored.delivered.Load(), ratio)
		}
	}
}

// findFormat returns the registered format of a file that begins with head, or nil.
func findFormat(head []byte) *tabular.Format {
	i := slices.IndexFunc(tabular.Formats, func(f tabular.Format) bool { return bytes.HasPrefix(head, []byte(f.Magic)) })
	if i < 0 {
		return nil
	}
	return &tabular.Formats[i]
}

// readTable yields the rows of a file of a registered format.
func (r *reader) readTable(ctx context.Context, f *tabular.Format, c *content) (iter.Seq2[chunk, error], error) {
	o := &r.options
	t, err := f.Open(c, tabular.Options{
		Rows: string(o.Rows), IDColumn: o.IDColumn, TextColumn: o.TextColumn, VectorColumns: o.VectorColumns, WordList: o.WordList != "",
	})
	if err != nil {
		return nil, err
	}
	r.table = t
	named := t.Named && r.names == nil
	if !named && r.names == nil {
		r.numberRows()
	}
	setKind := func(rows []tabular.Row) {
		if named {
			r.setTableKind(rows)
		}
		r.hasIDs = named && t.IDs && r.texts
	}
	return func(yield func(chunk, error) bool) {
		for first := true; ; first = false {
			rows, numbers, err := t.Next()
			switch {
			case err == io.EOF:
				return
			case err == nil:
				err = ctx.Err() // a small file can expand to many rows
			}
			if err != nil {
				yield(chunk{}, err)
				return
			}
			if first {
				setKind(rows)
			}
			if c, err := r.tableChunk(rows, numbers); !yield(c, err) || err != nil {
				return
			}
		}
	}, nil
}

// setTableKind sets the kind of a table from its first rows. If more than one name in ten is
// repeated, rows are texts.
func (r *reader) setTableKind(rows []tabular.Row) {
	var names []string
	distinct := map[string]bool{}
	for _, row := range rows {
		names = append(names, row.Name)
		distinct[row.Name] = true
	}
	switch {
	case r.decided:
	case r.table.Kind != "":
		r.texts, r.decided = r.table.Kind == tabular.Texts, true
	case 10*(len(names)-len(distinct)) > len(names):
		r.texts, r.decided = true, true
	default:
		r.setKind(names)
	}
}

// appendList appends the numbers of a list in text form, such as "[0.1, -2e-3]", also without the brackets or
// with spaces between numbers.
func appendList(numbers []float32, list string) ([]float32, error) {
	b := []byte(strings.TrimSpace(list))
	if n := len(b); n > 1 && b[0] == '[' && b[n-1] == ']' {
		b = b[1 : n-1]
	}
	for i, c := range b {
		if c == ',' || c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	for n := 1; ; n++ {
		if b = bytes.TrimLeft(b, " \t"); len(b) == 0 {
			return numbers, nil
		}
		x, end, err := parseNumber(b, 0)
		if err != nil {
			field, _, _ := bytes.Cut(b, []byte(" "))
			return numbers, fmt.Errorf("value %d of the list is %w (got %s)", n, err, quote(field))
		}
		numbers, b = append(numbers, x), b[end:]
	}
}

// tableChunk converts rows and the numbers of their vectors to a chunk. The chunk reuses the memory of numbers.
// The first valid row determines L, which all files must share.
func (r *reader) tableChunk(rows []tabular.Row, numbers []float32) (chunk, error) {
	for i := range rows {
		if t := &rows[i]; t.Vector != "" && t.Err == nil {
			n := len(numbers)
			numbers, t.Err = appendList(numbers, t.Vector)
			t.Len = len(numbers) - n
		}
	}
	c := chunk{rows: make([]row, 0, len(rows)), data: numbers[:0], span: len(rows)}
	for i, t := range rows {
		n, vector := t.Len, numbers[:t.Len]
		numbers = numbers[t.Len:]
		if !r.measured && t.Err == nil && n > 0 && n <= MaxDim {
			r.measured, r.dim = true, cmp.Or(r.dim, n)
			if err := r.checkLength(n); err != nil {
				return chunk{}, err
			}
		}
		err := t.Err
		switch {
		case err != nil:
		case n == 0:
			err = errors.New("the vector has no numbers")
		case n > MaxDim:
			err = fmt.Errorf("the vector is too long (want at most %d numbers)", MaxDim)
		case n != r.dim:
			err = countError(n, r.dim)
		default:
			err = checkVector(vector)
		}
		if err == nil {
			c.data = appendInPlace(c.data, vector)
		}
		c.rows = append(c.rows, row{number: i, name: t.Name, notWord: t.NotWord, id: t.ID, columns: t.Columns, err: err})
	}
	return c, nil
}
