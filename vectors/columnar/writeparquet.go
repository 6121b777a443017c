package columnar

import (
	"io"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"overcomplete/vectors"
	"overcomplete/vectors/internal/tabular"
)

// WriteParquet writes a Parquet file, compressed with zstd, in row groups of about
// 32 MiB. It returns the same errors as [WriteArrow].
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
	for first, end := range batches(codes, table) {
		for i := first; i < end; i++ {
			row = row[:0]
			for n, c := range table {
				row = append(row, c.parquet(i, n))
			}
			index, value := codes.Row(i)
			row = appendList(row, len(table), index, parquet.Int32Value)
			row = appendList(row, len(table)+1, value, parquet.FloatValue)
			if _, err := p.WriteRows([]parquet.Row{row}); err != nil {
				return err
			}
		}
		if err := p.Flush(); err != nil { // ends the row group
			return err
		}
	}
	return p.Close()
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
