package vectors

import (
	"fmt"
	"math"
)

// Validate returns an error that names the problem and the row, or nil if s is valid. In
// a valid matrix, the lengths of the slices agree; Ptr begins at 0, never decreases and
// ends at the number of nonzeros; the columns of each row are in range and increase; and
// values are finite and not zero.
func (s *CSR) Validate() error {
	if s.Rows < 0 || s.Cols < 0 || len(s.Ptr)-1 != s.Rows {
		return fmt.Errorf("a %d×%d matrix has the wrong number of row offsets (got %d)", s.Rows, s.Cols, len(s.Ptr))
	}
	if len(s.Index) != len(s.Value) {
		return fmt.Errorf("column indices and values differ in number (got %d and %d)", len(s.Index), len(s.Value))
	}
	if s.Ptr[0] != 0 || s.Ptr[s.Rows] != int64(len(s.Value)) {
		return fmt.Errorf("row offsets have the wrong range (got %d to %d, want 0 to %d)", s.Ptr[0], s.Ptr[s.Rows], len(s.Value))
	}
	for i := range s.Rows {
		// Check the end of a row before its values. Offsets that never decrease are in range.
		if s.Ptr[i+1] < s.Ptr[i] || s.Ptr[i+1] > int64(len(s.Value)) {
			return fmt.Errorf("row %d: row offsets are out of order (got end %d)", i, s.Ptr[i+1])
		}
		last := int32(-1)
		index, value := s.Row(i)
		for n, k := range index {
			if k <= last || int(k) >= s.Cols {
				return fmt.Errorf("row %d: columns must increase and be less than %d (got %d after %d)", i, s.Cols, k, last)
			}
			last = k
			if v := float64(value[n]); v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("row %d, column %d: stored values must be finite and not zero (got %v)", i, k, v)
			}
		}
	}
	return nil
}

// Append appends the rows of t to s. Both must have the same number of columns. If
// s has no rows yet, its Ptr may be nil.
func (s *CSR) Append(t *CSR) {
	if len(s.Ptr) == 0 {
		s.Ptr = []int64{0}
	}
	for i := range t.Rows {
		s.Ptr = append(s.Ptr, int64(len(s.Value))+t.Ptr[i+1])
	}
	s.Rows += t.Rows
	s.Index, s.Value = append(s.Index, t.Index...), append(s.Value, t.Value...)
}

// AppendRow appends a row to s. It copies index, the columns of the nonzeros in increasing
// order, and value, their values. If s has no rows yet, its Ptr may be nil.
func (s *CSR) AppendRow(index []int32, value []float32) {
	if len(s.Ptr) == 0 {
		s.Ptr = []int64{0}
	}
	s.Rows++
	s.Index, s.Value = append(s.Index, index...), append(s.Value, value...)
	s.Ptr = append(s.Ptr, int64(len(s.Value)))
}
