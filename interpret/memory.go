package interpret

import (
	"overcomplete/internal/text"
	"overcomplete/vectors"
)

// Memory estimates two numbers of bytes: the memory of an index of codes with its labels, and the memory that its first
// search for words of texts adds. Both are upper limits for usual texts.
func Memory(codes *vectors.Sparse) (index, search uint64) {
	const (
		perRow, perNonzero, perBlock  = 80, 6, 8
		perText, perByte, perLabelled = 220, 2.5, 5 // perLabelled exceeds perByte because of the phrases for labels
	)
	rows, bytes := uint64(codes.Rows), 0
	blocks := (codes.Rows + blockRows - 1) / blockRows
	index = perRow*rows + perNonzero*uint64(codes.Nonzeros()) + perBlock*uint64(codes.Cols)*uint64(blocks)
	if codes.Texts == nil {
		return index, 0
	}
	for _, s := range codes.Texts.Text {
		bytes += min(len(s), text.MaxBytes)
	}
	search = perText*rows + uint64(perByte*float64(bytes))
	labels := perText*rows + uint64(perLabelled*float64(bytes))
	if rows <= maxSample { // labels use the words of all texts
		return index + labels, 0
	}
	return index + (index+labels)*maxSample/rows, search
}
