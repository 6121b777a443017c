package interpret

import "overcomplete/vectors"

// FromDense converts dense vectors, V×L, to a sparse matrix. An [Index] of the result explores the dense dimensions.
func FromDense(x *vectors.Dense) *vectors.Sparse {
	s := &vectors.Sparse{IDs: x.IDs, Texts: x.Texts, CSR: vectors.CSR{
		Rows: x.Len(), Cols: x.Dim, Ptr: make([]int64, 1, x.Len()+1),
		Index: make([]int32, 0, len(x.Data)), Value: make([]float32, 0, len(x.Data)),
	}}
	for i := range x.Len() {
		for k, v := range x.Row(i) {
			if v != 0 {
				s.Index, s.Value = append(s.Index, int32(k)), append(s.Value, v)
			}
		}
		s.Ptr = append(s.Ptr, int64(len(s.Value)))
	}
	return s
}

// SelectRows copies the given rows of s, in the given order, with their words and texts.
func SelectRows(s *vectors.Sparse, rows []int) *vectors.Sparse {
	selected := &vectors.Sparse{Texts: s.Texts.Select(rows), CSR: vectors.CSR{Cols: s.Cols, Ptr: make([]int64, 1, len(rows)+1)}}
	for _, i := range rows {
		selected.IDs = append(selected.IDs, s.IDs[i])
		selected.AppendRow(s.Row(i))
	}
	return selected
}
