package columnar

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"overcomplete/internal/float32s"
	"overcomplete/vectors/internal/tabular"
)

// chooseColumns is [tabular.Choose]. It returns an error for tables of sparse vectors; metadata reports whether
// the table has the metadata of [WriteArrow].
func chooseColumns(columns []tabular.Column, metadata bool, o tabular.Options) (*tabular.Layout, error) {
	if metadata && slices.ContainsFunc(columns, func(c tabular.Column) bool { return c.Name == indicesName }) {
		return nil, errors.New("contains sparse vectors of a model, not dense ones; export its codes in a dense format first")
	}
	return tabular.Choose(columns, o)
}

// table returns a table with the layout, whose rows next returns. Unless an option names the vectors, packed bits are
// an error.
func table(l *tabular.Layout, o tabular.Options, next func() (block, error)) *tabular.Table {
	var c tabular.Column
	if l.IsList() {
		c = l.Columns[l.Vectors[0]]
	}
	unchecked := o.VectorColumns == "" && strings.HasSuffix(c.Type, "int8") // or uint8
	return l.Table(func() ([]tabular.Row, []float32, error) {
		b, err := next()
		if unchecked && err == nil {
			unchecked = false
			if err := tabular.CheckBits(b.data); err != nil {
				err = fmt.Errorf("column %.60q (%s) %w; or name the column to read its numbers", c.Name, c.Type, err)
				return nil, nil, &tabular.OptionError{Option: "VectorColumns", Err: err}
			}
		}
		return b.rows, b.data, err
	})
}

// A block is a run of rows that are read together. The next block reuses the memory of rows.
type block struct {
	rows []tabular.Row
	data []float32
}

// A block ends after this many numbers or bytes of strings.
const (
	blockNumbers = 1 << 16
	blockText    = 16 << 20
)

// reset starts the next block, with room for its numbers if its rows are as long as the latest one.
func (b *block) reset() {
	room := 0
	if n := len(b.rows); n > 0 {
		room = min(len(b.data), blockNumbers+b.rows[n-1].Len)
	}
	b.rows, b.data = b.rows[:0], make([]float32, 0, room)
}

// add adds a row, whose vector is data[start:].
func (b *block) add(r tabular.Row, start int, err error) {
	r.Len, r.Err = len(b.data)-start, cmp.Or(r.Err, err)
	b.rows = append(b.rows, r)
}

// textSize returns the length of the strings of a row in bytes.
func textSize(r tabular.Row) int {
	n := len(r.Name) + len(r.ID) + len(r.Vector)
	for _, s := range r.Columns {
		n += len(s)
	}
	return n
}

// indexNotFinite returns the index of the first number that is infinite or NaN, or −1.
func indexNotFinite(numbers []float32) int {
	if float32s.Finite(numbers) {
		return -1
	}
	return slices.IndexFunc(numbers, func(x float32) bool { return x-x != 0 })
}

// checkNumber returns an error unless x is finite.
func checkNumber(c tabular.Column, number int, x float32) error {
	if x-x == 0 {
		return nil
	}
	return notFinite(c, number, x)
}

func notFinite(c tabular.Column, number int, x float32) error {
	value := "infinite or beyond the range of float32"
	if math.IsNaN(float64(x)) {
		value = "NaN"
	}
	return tabular.ValueError(c, number, value+" (want a finite number)")
}

// guard returns the result of f. It converts panics of libraries, which damaged files cause, to errors.
func guard[T any](format string, f func() (T, error)) (result T, err error) {
	damaged := func(err error) error {
		if errors.Is(err, errEncrypted) || errors.Is(err, errUnsupported) {
			return err
		}
		if strings.Contains(err.Error(), "runtime error") { // a panic of a library, of no use to people
			err = errors.New("the file is inconsistent")
		}
		return fmt.Errorf("damaged %s file: %w", format, err)
	}
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(error); !ok {
				err = fmt.Errorf("%.200v", r)
			}
			err = damaged(err)
		}
	}()
	result, err = f()
	if err != nil && err != io.EOF {
		err = damaged(err)
	}
	return result, err
}
