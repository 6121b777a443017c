package vectors

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"overcomplete/internal/memory"
)

// Content is what an open file holds, decompressed.
type Content struct {
	io.Reader
	Size int64 // in bytes, or -1 if only reading will tell

	stored *storedFile
}

// RandomAccess returns the content as a file that can be read from anywhere, and its size
// in bytes. It holds in memory what is compressed or comes from a pipe; it is an error if
// that is too large, or expands to more than a hundred times its size. Nothing may have
// been read before.
func (c *Content) RandomAccess() (io.ReaderAt, int64, error) {
	if c.Size >= 0 {
		return c.stored, c.Size, nil
	}
	// Vectors are hardly compressible, unlike what was made to fill the memory.
	const most, free = 100, 16 << 20
	data := make([]byte, 0, 1<<20)
	for {
		if len(data) == cap(data) {
			if err := memory.Check(2 * uint64(len(data))); err != nil {
				return nil, 0, fmt.Errorf("its content must be held in memory: %w", err)
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
		case int64(len(data)) > free+most*c.stored.delivered:
			return nil, 0, fmt.Errorf("%d bytes expand to more than %d times as many; if that is right, decompress it first", c.stored.delivered, most)
		}
	}
}

// A Table is an open file of a registered format.
type Table struct {
	Words   bool     // whether rows have words or texts
	Kind    Kind     // what these are, or "" if only they can tell
	IDs     bool     // whether texts have ids
	Columns []string // names of what else is known of texts
	// Describe returns what [Source] says of the columns and the warnings, for people, unless it is nil.
	Describe func(Kind) (columns string, warnings []string)
	// Next returns some rows at a time, in their order, and io.EOF after the last. What it
	// returned is overwritten by the next call.
	Next func() ([]Row, error)
}

// A Row is a row of a [Table].
type Row struct {
	Word    string    // or text
	NoWord  error     // why that can't be a word, such as null, or nil
	ID      string    // of a text
	Columns []string  // values
	Vector  []float32 // of the same length in all rows
	Err     error     // why the row is malformed, or nil
}

type format struct {
	name, magic string
	open        func(*Content, ReadOptions) (*Table, error)
}

var formats []format

// RegisterFormat lets [Read] and [Stream] read files that begin with magic. The name is
// for people, such as "Parquet". Packages that know a format call it when they are
// initialised; like [image.RegisterFormat], it lets programs that do not need a format do
// without its library.
func RegisterFormat(name, magic string, open func(*Content, ReadOptions) (*Table, error)) {
	formats = append(formats, format{name, magic, open})
}

// find returns the format of a file that begins with head.
func find(head []byte) (format, bool) {
	i := slices.IndexFunc(formats, func(f format) bool { return bytes.HasPrefix(head, []byte(f.magic)) })
	if i < 0 {
		return format{}, false
	}
	return formats[i], true
}

// read adds the rows of a file of the format, which have their words in a list, of their own
// or none.
func (f format) read(ctx context.Context, c *Content, b *builder) (warnings []string, err error) {
	t, err := f.open(c, b.options)
	if err != nil {
		return nil, err
	}
	if b.options.WordList != "" {
		err = b.withWordList(ctx, func() error { return b.readTable(ctx, t) })
	} else {
		if !t.Words {
			b.numberRows()
		}
		err = b.readTable(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	if t.Describe != nil {
		b.about, warnings = t.Describe(b.kind())
	}
	return warnings, nil
}

// readTable adds the rows of a table.
func (b *builder) readTable(ctx context.Context, t *Table) error {
	for first := true; !b.full; first = false {
		if err := ctx.Err(); err != nil { // a small file can have many rows
			return err
		}
		rows, err := t.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if first && t.Words && b.name == nil {
			b.tellTable(t, rows)
		}
		c := chunk{rows: make([]row, 0, len(rows)), data: make([]float32, 0, len(rows)*b.dim), span: len(rows)}
		for i, r := range rows {
			if b.dim == 0 && r.Err == nil {
				b.dim = len(r.Vector)
			}
			err := r.Err
			switch {
			case err != nil:
			case len(r.Vector) == 0:
				err = errors.New("no numbers")
			case len(r.Vector) > MaxDim:
				err = fmt.Errorf("over %d numbers", MaxDim)
			case len(r.Vector) != b.dim:
				err = countError(len(r.Vector), b.dim)
			default:
				err = checkVector(r.Vector)
			}
			if err == nil && b.name == nil && !b.texts {
				err = notWord(cmp.Or(r.NoWord, CheckWord(r.Word)))
			}
			if err == nil {
				c.data = append(c.data, r.Vector...)
			}
			c.rows = append(c.rows, row{number: i, word: r.Word, id: r.ID, columns: r.Columns, err: err})
		}
		if err := b.add(c); err != nil {
			return err
		}
	}
	return nil
}
