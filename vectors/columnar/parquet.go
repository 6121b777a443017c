package columnar

import (
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"overcomplete/vectors"
)

// parquetRow is a row of the table that is written.
type parquetRow struct {
	Word    string    `parquet:"word"`
	Indices []int32   `parquet:"indices,list"`
	Values  []float32 `parquet:"values,list"`
}

// WriteParquet writes a Parquet file, compressed with zstd, in row groups of some
// 32 MiB. Its errors are those of [WriteArrow].
func WriteParquet(w io.Writer, codes *vectors.Sparse) error {
	if err := check(codes); err != nil {
		return err
	}
	p := parquet.NewGenericWriter[parquetRow](w, parquet.Compression(&parquet.Zstd),
		parquet.KeyValueMetadata(dimensions, strconv.Itoa(codes.Cols)))
	for first, end := range batches(codes) {
		for i := first; i < end; i++ {
			index, value := codes.Row(i)
			if _, err := p.Write([]parquetRow{{codes.Words[i], index, value}}); err != nil {
				return err
			}
		}
		if err := p.Flush(); err != nil { // ends the row group
			return err
		}
	}
	return p.Close()
}
