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

// A block is a run of rows of a table, and the numbers of their vectors, concatenated.
type block struct {
	rows    []tabular.Row
	numbers []float32
}

// tableOptions returns the options that concern a table of vectors. If there is a word list, the others concern that list.
func (r *reader) tableOptions() tabular.Options {
	o := &r.options
	if o.WordList != "" {
		return tabular.Options{Rows: string(o.Rows), VectorColumns: o.VectorColumns, WordList: true}
	}
	return tabular.Options{Rows: string(o.Rows), IDColumn: o.IDColumn, TextColumn: o.TextColumn, VectorColumns: o.VectorColumns}
}

// openTable opens a file of a registered format.
func openTable(ctx context.Context, f *tabular.Format, c *content, o tabular.Options) (*tabular.Table, iter.Seq2[block, error], error) {
	t, err := f.Open(c, o)
	return t, func(yield func(block, error) bool) {
		for {
			rows, numbers, err := t.Next()
			switch {
			case err == io.EOF:
				return
			case err == nil:
				err = ctx.Err() // a small file can expand to many rows
			}
			if !yield(block{rows, numbers}, err) || err != nil {
				return
			}
		}
	}, err
}

// readTable yields the blocks of a table as chunks.
func (r *reader) readTable(t *tabular.Table, blocks iter.Seq2[block, error]) iter.Seq2[chunk, error] {
	r.table = t
	named := t.Named && r.names == nil
	if !named && r.names == nil {
		r.numberRows()
	}
	return func(yield func(chunk, error) bool) {
		first := true
		for b, err := range blocks {
			if err != nil {
				yield(chunk{}, err)
				return
			}
			if first && len(b.rows) > 0 {
				first = false
				if named {
					r.setTableKind(t, b.rows)
				}
			}
			if c, err := r.tableChunk(b.rows, b.numbers); !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// checkBits returns an error if numbers seem to be packed bits of binary embeddings. The name of the vectors, if it is chosen,
// confirms that they are numbers.
func (r *reader) checkBits(numbers []float32) error {
	isByte := func(x float32) bool { return x == float32(int(x)) && -128 <= x && x <= 255 }
	if r.options.VectorColumns != "" || slices.ContainsFunc(numbers, func(x float32) bool { return !isByte(x) }) {
		return nil
	}
	return tabular.CheckBits(numbers)
}

// setTableKind sets the kind of rows that a table names, from its first rows. If more than one name in ten is
// repeated, rows are texts.
func (r *reader) setTableKind(t *tabular.Table, rows []tabular.Row) {
	var names []string
	distinct := map[string]bool{}
	for _, row := range rows {
		names = append(names, row.Name)
		distinct[row.Name] = true
	}
	switch {
	case r.decided:
	case t.Kind != "":
		r.texts, r.decided = t.Kind == tabular.Texts, true
	case 10*(len(names)-len(distinct)) > len(names):
		r.texts, r.decided = true, true
	default:
		r.setKind(names)
	}
	r.hasIDs = t.IDs && r.texts
}

// tableChunk converts rows and the numbers of their vectors to a chunk. The chunk reuses the memory of numbers.
// The first valid row determines L, which all files must share.
func (r *reader) tableChunk(rows []tabular.Row, numbers []float32) (chunk, error) {
	for i := range rows {
		if t := &rows[i]; t.Vector != "" && t.Err == nil {
			n := len(numbers)
			numbers, t.Err = appendVector(numbers, []byte(t.Vector))
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
		number := i
		if t.Line > 0 {
			number, c.span, r.lines = t.Line-1, 0, true
		}
		c.rows = append(c.rows, row{number: number, name: t.Name, notID: t.NotID, id: t.ID, columns: t.Columns, err: err})
	}
	return c, nil
}
