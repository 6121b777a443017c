// Package columnar reads and writes Apache Arrow and Parquet, the file formats of data frames
// and databases.
//
// A program that imports it can read both with [vectors.Read] and [vectors.Stream]:
//
//	import _ "overcomplete/vectors/columnar"
//
// A row of a table is a word or text and its vector, in the columns that [vectors.ReadOptions] describes. A vector may
// also be a string that holds a list. Other columns of texts are kept as strings, dates and times in ISO 8601. Columns
// that can't be kept are ignored, with a warning. A row with a null word or number is malformed. The reader holds a
// record batch of an Arrow file (Feather, version 2), and a page per column of a Parquet file, in memory.
//
// [WriteParquet] writes sparse vectors as a table:
//
//	word     string           for texts: id, text, and their columns, which are strings, int64 or float64
//	indices  list of int32    columns of the nonzeros, from 0, increasing
//	values   list of float32  values of the nonzeros
//
// The schema's metadata "dimensions" is K, the number of columns of the matrix.
//
// This package is separate from package vectors because the libraries of these formats would
// triple the size of every program that reads vectors.
package columnar

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"overcomplete/internal/memory"
	"overcomplete/vectors/internal/tabular"
)

// A table reads the rows of a file in groups of rows: the record batches of Arrow, or the row groups of Parquet.
type table interface {
	// open returns the columns, and whether the table has the metadata of [WriteParquet].
	open() (columns []tabular.Column, codes bool, err error)

	// nextGroup begins to read the columns of a layout in the next group. It returns the row count, or io.EOF.
	nextGroup(l *tabular.Layout) (rows int64, err error)

	// text returns the current row of a column as a string. ok is false for null.
	text(column int) (s string, ok bool, err error)

	// vector appends the numbers of the current row, or returns the reason if they are malformed. It moves to the next row.
	vector(l *tabular.Layout, to []float32) (numbers []float32, malformed, err error)
}

// openTable opens a table of a format. Packed bits are an error unless an option names the vectors.
func openTable(format string, t table, o tabular.Options) (*tabular.Layout, iter.Seq2[tabular.Block, error], error) {
	var columns []tabular.Column
	var codes bool
	if err := guard(format, func() (err error) { columns, codes, err = t.open(); return err }); err != nil {
		return nil, nil, err
	}
	if codes && slices.ContainsFunc(columns, func(c tabular.Column) bool { return c.Name == indicesName }) {
		return nil, nil, errors.New("contains sparse vectors of a model, not dense ones; export its codes in a dense format first")
	}
	l, err := tabular.Choose(columns, o)
	if err != nil {
		return nil, nil, err
	}
	return l, func(yield func(tabular.Block, error) bool) {
		r := rows{Layout: l, table: t}
		unchecked := o.VectorColumns == "" && l.IsList() && strings.HasSuffix(columns[l.Vectors[0]].Type, "int8") // or uint8
		for {
			err := guard(format, r.next)
			if err == io.EOF {
				return
			}
			if unchecked && err == nil {
				unchecked = false
				if err = tabular.CheckBits(r.Numbers); err != nil {
					c := columns[l.Vectors[0]]
					err = fmt.Errorf("column %.60q (%s) %w; or name the column to read its numbers", c.Name, c.Type, err)
					err = &tabular.OptionError{Option: "VectorColumns", Err: err}
				}
			}
			if !yield(r.Block, err) || err != nil {
				return
			}
		}
	}, nil
}

// rows reads the rows of a table in blocks.
type rows struct {
	*tabular.Layout
	table
	tabular.Block
	left int64 // rows left in the group
}

// A block ends after this many numbers or bytes of strings.
const (
	blockNumbers = 1 << 16
	blockText    = 16 << 20
)

func (r *rows) next() (err error) {
	for r.left == 0 {
		if r.left, err = r.nextGroup(r.Layout); err != nil {
			return err
		}
	}
	// Allocate memory for as much as in the previous block, because the reader now owns that block.
	r.Rows, r.Numbers = make([]tabular.Row, 0, len(r.Rows)), memory.Numbers(len(r.Numbers))[:0]
	text := 0
	for ; r.left > 0 && len(r.Numbers) < blockNumbers && len(r.Rows) < blockNumbers && text < blockText; r.left-- {
		row, err := r.Row(r.text)
		if err != nil {
			return err
		}
		start := len(r.Numbers)
		var malformed error
		if r.Numbers, malformed, err = r.vector(r.Layout, r.Numbers); err != nil {
			return err
		}
		row.Len, row.Err = len(r.Numbers)-start, cmp.Or(row.Err, malformed)
		r.Rows = append(r.Rows, row)
		text += len(row.Name) + len(row.ID) + len(row.Vector)
		for _, s := range row.Columns {
			text += len(s)
		}
	}
	return nil
}

// guard calls f. It converts panics to errors, because libraries panic on damaged files.
func guard(format string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(error); !ok {
				err = fmt.Errorf("%.200v", r)
			}
		}
		if err == nil || err == io.EOF || errors.Is(err, errEncrypted) || errors.Is(err, errUnsupported) || errors.Is(err, memory.ErrTooLarge) {
			return
		}
		if strings.Contains(err.Error(), "runtime error") { // a panic of a library; the text would not help users
			err = errors.New("the file is inconsistent")
		}
		err = fmt.Errorf("damaged %s file: %w", format, err)
	}()
	return f()
}
