// Package columnar reads and writes Apache Arrow and Parquet, the file formats of data frames
// and databases.
//
// A program that imports it can read both with [vectors.Read] and [vectors.Stream]:
//
//	import _ "overcomplete/vectors/columnar"
//
// A row of a table is a word or text and its vector. Words or texts are in a column of strings: the
// one with a usual name, such as "word" or "text", or else the only column of strings. Vectors are
// in a column of lists of numbers: the one named "vector", "vectors", "embedding", "embeddings" or
// "features", or else the only column of lists; or in columns of numbers whose names count upwards,
// such as "e0", "e1" and "e2". A vector may also be a string that holds a list.
// Other columns of texts are kept as strings, dates and times in ISO 8601. Columns that can't be kept
// are ignored, with a warning. A row with a null word or number is malformed. The reader holds a
// record batch of an Arrow file (Feather, version 2), and a page per column of a Parquet file, in memory.
//
// [WriteArrow] and [WriteParquet] write sparse vectors as a table:
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
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"overcomplete/vectors"
	"overcomplete/vectors/internal/tabular"
)

// Names of the columns that are written, and of the metadata that stores K.
const (
	indicesName = "indices"
	valuesName  = "values"
	dimensions  = "dimensions"
)

// WriteArrow writes an Arrow IPC file (Feather, version 2), in record batches of about
// 32 MiB. It returns an error if words and rows differ in number, if a string is not
// UTF-8, if a batch doesn't fit into memory, or if w fails.
func WriteArrow(w io.Writer, codes *vectors.Sparse) error {
	table, err := check(codes)
	if err != nil {
		return err
	}
	metadata := arrow.NewMetadata([]string{dimensions}, []string{strconv.Itoa(codes.Cols)})
	var fields []arrow.Field
	for _, c := range table {
		fields = append(fields, arrow.Field{Name: c.Name, Type: arrowTypes[c.Type], Nullable: c.Type != tabular.String})
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
			b := array.NewBuilder(memory.DefaultAllocator, arrowTypes[c.Type])
			b.Reserve(end - first) // a builder that grows needs three times the memory
			if b, is := b.(*array.StringBuilder); is {
				b.ReserveData(textSize(c.Values[first:end]))
			}
			for _, v := range c.Values[first:end] {
				if v == "" && c.Type != tabular.String {
					b.AppendNull()
				} else if err := b.AppendValueFromString(v); err != nil {
					return err
				}
			}
			columns = append(columns, b.NewArray())
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

// listArray returns an array of lists of four-byte numbers. List i is numbers
// offsets[i] to offsets[i+1]−1. It shares the memory of both slices.
func listArray(t arrow.DataType, offsets, numbers []byte) arrow.Array {
	data := func(t arrow.DataType, length int, bytes []byte, children ...arrow.ArrayData) arrow.ArrayData {
		return array.NewData(t, length, []*memory.Buffer{nil, memory.NewBufferBytes(bytes)}, children, 0, 0)
	}
	elements := data(t.(*arrow.ListType).Elem(), len(numbers)/4, numbers)
	return array.NewListData(data(t, len(offsets)/4-1, offsets, elements))
}

var arrowTypes = map[tabular.Type]arrow.DataType{
	tabular.String: arrow.BinaryTypes.String, tabular.Integer: arrow.PrimitiveTypes.Int64, tabular.Float: arrow.PrimitiveTypes.Float64,
}
