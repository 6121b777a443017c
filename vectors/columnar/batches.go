package columnar

import (
	"fmt"
	"iter"
	"unicode/utf8"

	"overcomplete/internal/memory"
	"overcomplete/vectors"
	"overcomplete/vectors/internal/tabular"
)

// A typedColumn has the type of its values.
type typedColumn struct {
	vectors.Column
	tabular.Type
}

// check returns the columns of words or texts, without the codes. It returns an error if a string is not
// UTF-8, if words and rows differ in number, or if a batch doesn't fit into memory.
func check(codes *vectors.Sparse) (table []typedColumn, err error) {
	if len(codes.IDs) != codes.Rows {
		return nil, fmt.Errorf("ids and vectors differ in number (got %d and %d)", len(codes.IDs), codes.Rows)
	}
	for n, c := range codes.Table("word", indicesName, valuesName) {
		for i, s := range c.Values {
			if !utf8.ValidString(s) {
				return nil, fmt.Errorf("%s %d is not UTF-8 (got %.60q)", c.Name, i+1, s)
			}
		}
		table = append(table, typedColumn{c, tabular.String})
		if n > 1 { // ids and texts are strings
			table[n].Type = tabular.TypeOf(c.Values)
		}
	}
	size := 8 * (len(codes.Ptr) + len(codes.Index))
	for _, c := range table {
		size += textSize(c.Values)
	}
	if err := memory.Check(uint64(min(size, batchSize))); err != nil {
		return nil, fmt.Errorf("a batch of rows: %w; JSON lines (jsonl) need less", err)
	}
	return table, nil
}

func textSize(values []string) (n int) {
	for _, s := range values {
		n += len(s)
	}
	return n
}

// batchSize is the size of a batch in memory, in bytes.
const batchSize = 32 << 20

// batches splits the rows into batches first to end−1. A batch ends with the row that makes it batchSize or larger.
func batches(codes *vectors.Sparse, table []typedColumn) iter.Seq2[int, int] {
	return func(yield func(first, end int) bool) {
		first, size := 0, 0
		for i := range codes.Rows {
			index, _ := codes.Row(i)
			size += 8 * (1 + len(index))
			for _, c := range table {
				size += len(c.Values[i])
			}
			if size >= batchSize {
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
