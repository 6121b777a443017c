// Package columnar reads and writes Apache Arrow and Parquet files, which data frames and
// databases have.
//
// A program that imports it reads them with [vectors.Read] and [vectors.Stream]:
//
//	import _ "overcomplete/vectors/columnar"
//
// A row of a table is a word and its vector. The word is a column of strings, plain or by a
// dictionary, that is named "word", "words", "token" or "text" (looked for in this order), or
// the only one. The vector is a column of lists of float16, float32 or float64, named
// "vector", "vectors", "embedding" or "embeddings", or the only one; or else all columns of
// such numbers, in their order. Other columns are left out, with a warning. A null is
// malformed. Arrow files (Feather, version 2) are read as streams, in the memory of a record
// batch; of Parquet files, a page of each column is in memory.
//
// Sparse vectors are written as such a table:
//
//	word     string           or of texts: id, text and their columns
//	indices  list of int32    the columns of its nonzeros, from 0, increasing
//	values   list of float32  the values of these nonzeros
//
// The schema's metadata "dimensions" is K, the number of columns of the matrix.
//
// This is not part of package vectors, because the libraries for these formats would make
// every program that reads vectors three times as large.
package columnar

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"overcomplete/vectors"
)

// The names of what is written; dimensions is the metadata with the number of the matrix's columns.
const (
	indicesName = "indices"
	valuesName  = "values"
	dimensions  = "dimensions"
)

// WriteArrow writes an Arrow IPC file (Feather, version 2), in record batches of some
// 32 MiB. It returns an error if the number of words is not that of the rows, if one
// is not UTF-8, or if w fails.
func WriteArrow(w io.Writer, codes *vectors.Sparse) error {
	table, err := check(codes)
	if err != nil {
		return err
	}
	metadata := arrow.NewMetadata([]string{dimensions}, []string{strconv.Itoa(codes.Cols)})
	var fields []arrow.Field
	for _, c := range table {
		fields = append(fields, arrow.Field{Name: c.Name, Type: arrow.BinaryTypes.String})
	}
	indicesType, valuesType := arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32), arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float32)
	schema := arrow.NewSchema(append(fields, arrow.Field{Name: indicesName, Type: indicesType}, arrow.Field{Name: valuesName, Type: valuesType}), &metadata)
	f, err := ipc.NewFileWriter(w, ipc.WithSchema(schema))
	if err != nil {
		return err
	}
	for first, end := range batches(codes, table) {
		var columns []arrow.Array
		for _, c := range table {
			b := array.NewStringBuilder(memory.DefaultAllocator)
			b.AppendValues(c.Values[first:end], nil)
			columns = append(columns, b.NewStringArray())
		}
		low, high := codes.Ptr[first], codes.Ptr[end]
		offsets := make([]int32, 0, end-first+1)
		for _, p := range codes.Ptr[first : end+1] {
			offsets = append(offsets, int32(p-low))
		}
		rows := arrow.Int32Traits.CastToBytes(offsets)
		indices := arrow.Int32Traits.CastToBytes(codes.Index[low:high])
		values := arrow.Float32Traits.CastToBytes(codes.Value[low:high])
		columns = append(columns, listArray(indicesType, rows, indices), listArray(valuesType, rows, values))
		batch := array.NewRecordBatch(schema, columns, int64(end-first))
		if err := f.Write(batch); err != nil {
			return err
		}
	}
	return f.Close()
}

// listArray returns an array of lists of numbers of four bytes. It aliases both the
// offsets at which lists begin and end, and the numbers.
func listArray(t arrow.DataType, offsets, numbers []byte) arrow.Array {
	data := func(t arrow.DataType, length int, bytes []byte, children ...arrow.ArrayData) arrow.ArrayData {
		return array.NewData(t, length, []*memory.Buffer{nil, memory.NewBufferBytes(bytes)}, children, 0, 0)
	}
	elements := data(t.(*arrow.ListType).Elem(), len(numbers)/4, numbers)
	return array.NewListData(data(t, len(offsets)/4-1, offsets, elements))
}

// check returns what is known of each row, or an error unless that is UTF-8.
func check(codes *vectors.Sparse) ([]vectors.Column, error) {
	if len(codes.Words) != codes.Rows {
		return nil, fmt.Errorf("%d words for %d vectors", len(codes.Words), codes.Rows)
	}
	table := codes.Table("word", indicesName, valuesName)
	for _, c := range table {
		for i, s := range c.Values {
			if !utf8.ValidString(s) {
				return nil, fmt.Errorf("%s %d, %.60q, isn't UTF-8", c.Name, i+1, s)
			}
		}
	}
	return table, nil
}

// batches yields the first and the end of runs of rows that are written together.
// A run takes some 32 MiB, unless one row takes more.
func batches(codes *vectors.Sparse, table []vectors.Column) iter.Seq2[int, int] {
	const most = 32 << 20
	return func(yield func(first, end int) bool) {
		first, size := 0, 0
		for i := range codes.Rows {
			index, _ := codes.Row(i)
			size += 8 * (1 + len(index))
			for _, c := range table {
				size += len(c.Values[i])
			}
			if size >= most {
				if !yield(first, i+1) {
					return
				}
				first, size = i+1, 0
			}
		}
		if first < codes.Rows {
			yield(first, codes.Rows)
		}
	}
}
