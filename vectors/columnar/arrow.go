// Package columnar writes sparse vectors as Apache Arrow and Parquet files, which
// data frames and databases read. A row is a word:
//
//	word     string
//	indices  list of int32    the columns of its nonzeros, from 0, increasing
//	values   list of float32  the nonzeros
//
// The metadata "dimensions" of the file's schema is K, the number of columns.
//
// It is not part of package vectors because the library that it needs adds a third
// to the size of a program.
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

// dimensions is the metadata with the number of columns.
const dimensions = "dimensions"

// WriteArrow writes an Arrow IPC file (Feather, version 2), one record batch after
// the other.
func WriteArrow(w io.Writer, words []string, codes *vectors.Sparse) error {
	if err := check(words, codes); err != nil {
		return err
	}
	metadata := arrow.NewMetadata([]string{dimensions}, []string{strconv.Itoa(codes.Cols)})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "word", Type: arrow.BinaryTypes.String},
		{Name: "indices", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)},
		{Name: "values", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float32)},
	}, &metadata)
	f, err := ipc.NewFileWriter(w, ipc.WithSchema(schema))
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	word := b.Field(0).(*array.StringBuilder)
	indices, values := b.Field(1).(*array.ListBuilder), b.Field(2).(*array.ListBuilder)
	for first, end := range batches(words, codes) {
		for i := first; i < end; i++ {
			word.Append(words[i])
			index, value := codes.Row(i)
			indices.Append(true)
			indices.ValueBuilder().(*array.Int32Builder).AppendValues(index, nil)
			values.Append(true)
			values.ValueBuilder().(*array.Float32Builder).AppendValues(value, nil)
		}
		if err := f.Write(b.NewRecordBatch()); err != nil {
			return err
		}
	}
	return f.Close()
}

// check returns an error unless there is a word for each row, in UTF-8.
func check(words []string, codes *vectors.Sparse) error {
	if len(words) != codes.Rows {
		return fmt.Errorf("%d words for %d vectors", len(words), codes.Rows)
	}
	for i, word := range words {
		if !utf8.ValidString(word) {
			return fmt.Errorf("word %d, %.60q, isn't UTF-8", i+1, word)
		}
	}
	return nil
}

// batches yields the first and the end of runs of rows that are written together.
// A run takes some 32 MiB, unless one row takes more.
func batches(words []string, codes *vectors.Sparse) iter.Seq2[int, int] {
	const most = 32 << 20
	return func(yield func(first, end int) bool) {
		first, size := 0, 0
		for i, word := range words {
			index, _ := codes.Row(i)
			size += 8 + len(word) + 8*len(index)
			if size >= most {
				if !yield(first, i+1) {
					return
				}
				first, size = i+1, 0
			}
		}
		if first < len(words) {
			yield(first, len(words))
		}
	}
}
