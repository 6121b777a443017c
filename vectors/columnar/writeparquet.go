package columnar

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"overcomplete/internal/memory"
	"overcomplete/vectors"
	"overcomplete/vectors/internal/tabular"
)

// Names of the columns that are written, and of the metadata that stores K.
const (
	indicesName = "indices"
	valuesName  = "values"
	dimensions  = "dimensions"
)

// groupSize is the size of a row group in memory, in bytes. A group ends with the row that makes it groupSize or larger.
const groupSize = 32 << 20

// WriteParquet writes a Parquet file, compressed with zstd, in row groups of about 32 MiB. It returns an error if words
// and rows differ in number, if a string is not UTF-8, if a row group doesn't fit into memory, or if w fails.
func WriteParquet(w io.Writer, codes *vectors.Sparse) error {
	table, err := check(codes)
	if err != nil {
		return err
	}
	root := columns{Group: parquet.Group{
		indicesName: parquet.List(parquet.Int(32)),
		valuesName:  parquet.List(parquet.Leaf(parquet.FloatType)),
	}}
	for _, c := range table {
		root.Group[c.Name] = parquetTypes[c.Type]
		root.order = append(root.order, c.Name)
	}
	root.order = append(root.order, indicesName, valuesName)
	p := parquet.NewWriter(w, parquet.NewSchema("codes", root), parquet.Compression(newCodec()),
		parquet.KeyValueMetadata(dimensions, strconv.Itoa(codes.Cols)))
	var row parquet.Row
	size := 0
	for i := range codes.Rows {
		row = row[:0]
		for n, c := range table {
			row = append(row, c.parquet(i, n))
			size += len(c.Values[i])
		}
		index, value := codes.Row(i)
		row = appendList(row, len(table), index, parquet.Int32Value)
		row = appendList(row, len(table)+1, value, parquet.FloatValue)
		if _, err := p.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
		if size += 8 * (1 + len(index)); size >= groupSize {
			if err := p.Flush(); err != nil { // ends the row group
				return err
			}
			size = 0
		}
	}
	return p.Close()
}

// A typedColumn is a column with the type of its values.
type typedColumn struct {
	vectors.Column
	tabular.Type
}

// check returns the columns of words or texts, without the codes. It returns an error if a string is not
// UTF-8, if words and rows differ in number, or if a row group doesn't fit into memory.
func check(codes *vectors.Sparse) (table []typedColumn, err error) {
	if len(codes.IDs) != codes.Rows {
		return nil, fmt.Errorf("ids and vectors differ in number (got %d and %d)", len(codes.IDs), codes.Rows)
	}
	size := 8 * (len(codes.Ptr) + len(codes.Index))
	for n, c := range codes.Table("word", indicesName, valuesName) {
		for i, s := range c.Values {
			if !utf8.ValidString(s) {
				return nil, fmt.Errorf("%s %d is not UTF-8 (got %.60q)", c.Name, i+1, s)
			}
			size += len(s)
		}
		table = append(table, typedColumn{c, tabular.String})
		if n > 1 { // ids and texts are strings
			table[n].Type = tabular.TypeOf(c.Values)
		}
	}
	if err := memory.Check(uint64(min(size, groupSize))); err != nil {
		return nil, fmt.Errorf("a group of rows: %w; JSON lines (jsonl) need less", err)
	}
	return table, nil
}

// A codec compresses pages by zstd with a window of 1 MiB. The library's own codec allocates 32 MB for its window of
// 8 MiB, which no page fills.
type codec struct {
	compress.Codec
	encoder *zstd.Encoder
}

func newCodec() codec {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false)) // valid options
	return codec{&parquet.Zstd, e}
}

func (c codec) Encode(to, from []byte) ([]byte, error) { return c.encoder.EncodeAll(from, to[:0]), nil }

var parquetTypes = map[tabular.Type]parquet.Node{
	tabular.String: parquet.String(), tabular.Integer: parquet.Optional(parquet.Int(64)), tabular.Float: parquet.Optional(parquet.Leaf(parquet.DoubleType)),
}

// parquet returns value i as column n of a file. Numbers were checked by [tabular.TypeOf].
func (c *typedColumn) parquet(i, n int) parquet.Value {
	v := c.Values[i]
	switch {
	case c.Type == tabular.String:
		return parquet.ByteArrayValue([]byte(v)).Level(0, 0, n)
	case v == "":
		return parquet.NullValue().Level(0, 0, n)
	case c.Type == tabular.Integer:
		number, _ := strconv.ParseInt(v, 10, 64)
		return parquet.Int64Value(number).Level(0, 1, n)
	}
	number, _ := strconv.ParseFloat(v, 64)
	return parquet.DoubleValue(number).Level(0, 1, n)
}

// columns is a group whose fields are in the given order, not sorted by name.
type columns struct {
	parquet.Group
	order []string
}

func (c columns) Fields() []parquet.Field {
	fields := c.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(c.order, a.Name()) - slices.Index(c.order, b.Name())
	})
	return fields
}

// appendList appends a list, which may be empty but not null, to a row.
func appendList[T any](row parquet.Row, column int, list []T, value func(T) parquet.Value) parquet.Row {
	if len(list) == 0 {
		return append(row, parquet.NullValue().Level(0, 0, column))
	}
	for j, v := range list {
		row = append(row, value(v).Level(min(j, 1), 1, column))
	}
	return row
}
