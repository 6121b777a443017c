package vectors

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"overcomplete/internal/input"
	"overcomplete/vectors/internal/tabular"
)

// content is the decompressed content of a file.
type content struct {
	*bufio.Reader
	size   int64 // in bytes, or -1 if unknown
	stored *storedFile
}

// unbuffered returns a reader that avoids a copy through the buffer of c. Afterwards c must not be read.
func (c *content) unbuffered() io.Reader {
	if c.size < 0 { // compressed or a pipe
		return c
	}
	return io.MultiReader(io.LimitReader(c, int64(c.Buffered())), c.stored)
}

// Length implements [tabular.Content].
func (c *content) Length() int64 { return c.size }

// RandomAccess implements [tabular.Content]. It loads the content of a compressed file or a pipe into memory. It
// returns an error if there is too little memory, or if content expands to more than a hundred times its size.
func (c *content) RandomAccess() (io.ReaderAt, int64, error) {
	if c.size >= 0 {
		c.stored.readRest() // concurrently with ReadAt
		return c.stored, c.size, nil
	}
	data, err := input.ReadAll(&boundedContent{content: c}, math.MaxInt)
	return bytes.NewReader(data), int64(len(data)), err
}

// A boundedContent reads content, and returns an error if it expands too much during decompression.
type boundedContent struct {
	*content
	read int64
}

func (b *boundedContent) Read(p []byte) (int, error) {
	// Vectors compress poorly. A ratio over 100, after the first 16 MiB, is a decompression bomb.
	const ratio, free = 100, 16 << 20
	n, err := b.content.Read(p)
	b.read += int64(n)
	if stored := b.stored.delivered.Load(); err == nil && b.read > free+ratio*stored {
		err = fmt.Errorf("%d bytes expand to more than %d times their size; if this is intended, decompress the file first", stored, ratio)
	}
	return n, err
}

// findFormat returns the registered format of a file that begins with head, or nil. A magic number before more letters
// is the beginning of a text, such as PARENT.
func findFormat(head []byte) *tabular.Format {
	const few = 4
	binary := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) }
	i := slices.IndexFunc(tabular.Formats, func(f tabular.Format) bool {
		rest, found := bytes.CutPrefix(head, []byte(f.Magic))
		return found && (len(rest) < few || bytes.ContainsFunc(rest[:few], binary))
	})
	if i < 0 {
		return nil
	}
	return &tabular.Formats[i]
}

// tableOptions returns the options for a table of vectors. With a word list, the id and text columns are in the list.
func (r *reader) tableOptions() tabular.Options {
	o := &r.options
	if o.WordList != "" {
		return tabular.Options{Rows: string(o.Rows), VectorColumns: o.VectorColumns, WordList: true}
	}
	return tabular.Options{Rows: string(o.Rows), IDColumn: o.IDColumn, TextColumn: o.TextColumn, VectorColumns: o.VectorColumns}
}

func (r *reader) openTable(ctx context.Context, h heading, c *content) (iter.Seq2[chunk, error], error) {
	var l *tabular.Layout
	var blocks tabular.Blocks
	var err error
	if r.lines = h.record != nil; r.lines {
		l, blocks, err = r.openRecords(ctx, h, r.Path, c.unbuffered(), r.tableOptions(), textChunk, r.ended)
	} else {
		l, blocks, err = h.table.Open(c, r.tableOptions())
		blocks = r.readAhead(ctx, blocks)
	}
	if err != nil {
		return nil, err
	}
	return r.readTable(ctx, l, blocks), nil
}

// readAhead yields the same blocks, and reads two blocks ahead. Each block may have 16 MiB of text.
func (r *reader) readAhead(ctx context.Context, blocks tabular.Blocks) tabular.Blocks {
	return inOrder(ctx, 1, func(yield func(func() (tabular.Block, error), error) bool) {
		for b, err := range blocks {
			if !yield(func() (tabular.Block, error) { return b, nil }, err) {
				return
			}
		}
	}, r.ended)
}

// readTable yields the blocks of a table as chunks.
func (r *reader) readTable(ctx context.Context, l *tabular.Layout, blocks tabular.Blocks) iter.Seq2[chunk, error] {
	r.table = l
	named := l.Name >= 0 && r.list == nil
	r.numbered = !named && r.list == nil
	return func(yield func(chunk, error) bool) {
		first := true
		for b, err := range blocks {
			if first && named && len(b.Rows) > 0 {
				first = false
				r.setTableKind(l, b.Rows)
			}
			var c chunk
			if err = cmp.Or(err, ctx.Err()); err == nil { // check ctx for each block, because a small file can expand to many rows
				c, err = r.tableChunk(b)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// checkBits returns an error if numbers seem to be packed bits of binary embeddings. It returns nil if an option names
// the vectors, which confirms that they are numbers.
func (r *reader) checkBits(numbers []float32) error {
	isByte := func(x float32) bool { return x == float32(int(x)) && -128 <= x && x <= 255 }
	if r.options.VectorColumns != "" || slices.ContainsFunc(numbers, func(x float32) bool { return !isByte(x) }) {
		return nil
	}
	return tabular.CheckBits(numbers)
}

// setTableKind decides whether the rows of a table are words or texts, by l.Kind or the names of the first rows. If
// more than one name in ten is repeated, rows are texts.
func (r *reader) setTableKind(l *tabular.Layout, rows []tabular.Row) {
	var names []string
	distinct := map[string]bool{}
	for _, row := range rows {
		names = append(names, row.Name)
		distinct[row.Name] = true
	}
	switch {
	case r.decided:
	case l.Kind() != "":
		r.texts, r.decided = l.Kind() == tabular.Texts, true
	case 10*(len(names)-len(distinct)) > len(names):
		r.texts, r.decided = true, true
	default:
		r.setKind(names)
	}
	r.hasIDs = l.ID >= 0 && r.texts
}

// tableChunk checks the vectors of a block. The first valid row determines L, which all files must share.
func (r *reader) tableChunk(b tabular.Block) (chunk, error) {
	rows, numbers := b.Rows, b.Numbers
	for i := range rows {
		if t := &rows[i]; t.Vector != "" && t.Err == nil {
			n := len(numbers)
			numbers, t.Err = appendVector(numbers, []byte(t.Vector))
			t.Len = len(numbers) - n
		}
	}
	c := chunk{rows: rows, data: numbers[:0]}
	if !r.lines {
		c.span = len(rows)
	}
	for i := range rows {
		t := &rows[i]
		n, vector := t.Len, numbers[:t.Len]
		numbers = numbers[n:]
		if !r.measured && t.Err == nil && n > 0 && n <= MaxDim {
			r.measured, r.dim = true, cmp.Or(r.dim, n)
			if err := r.checkLength(n); err != nil {
				return chunk{}, err
			}
		}
		switch {
		case t.Err != nil:
		case n == 0:
			t.Err = errors.New("the vector has no numbers")
		case n > MaxDim:
			t.Err = fmt.Errorf("the vector is too long (want at most %d numbers)", MaxDim)
		case n != r.dim:
			t.Err = countError(n, r.dim)
		default:
			t.Err = r.table.CheckFinite(vector)
		}
		if t.Err == nil {
			c.data = appendInPlace(c.data, vector)
		}
		if !r.lines {
			t.Number = i
		}
	}
	return c, nil
}
