package vectors

import (
	"fmt"
	"math"
)

// Validate returns nil if s is well-formed, or else an error that says what is
// wrong and in which row. In a well-formed matrix the lengths of the slices agree;
// Ptr begins at 0, never decreases and ends at the number of nonzeros; the columns
// of each row are in range and increase; and values are finite and not zero.
func (s *CSR) Validate() error {
	if s.Rows < 0 || s.Cols < 0 || len(s.Ptr)-1 != s.Rows {
		return fmt.Errorf("%d row offsets for a %d×%d matrix", len(s.Ptr), s.Rows, s.Cols)
	}
	if len(s.Index) != len(s.Value) {
		return fmt.Errorf("%d column indices for %d values", len(s.Index), len(s.Value))
	}
	if s.Ptr[0] != 0 || s.Ptr[s.Rows] != int64(len(s.Value)) {
		return fmt.Errorf("row offsets run from %d to %d, not from 0 to %d", s.Ptr[0], s.Ptr[s.Rows], len(s.Value))
	}
	for i := range s.Rows {
		// All of Ptr is in range if it never decreases, and no row is looked at
		// before its own end has been.
		if s.Ptr[i+1] < s.Ptr[i] || s.Ptr[i+1] > int64(len(s.Value)) {
			return fmt.Errorf("row %d ends at %d, which is out of order", i, s.Ptr[i+1])
		}
		last := int32(-1)
		index, value := s.Row(i)
		for n, k := range index {
			if k <= last || int(k) >= s.Cols {
				return fmt.Errorf("row %d: column %d after %d; columns must increase and be less than %d", i, k, last, s.Cols)
			}
			last = k
			if v := float64(value[n]); v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("row %d, column %d: stored value is %v", i, k, v)
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

// AppendRow appends a row to s: the columns of its nonzeros, in increasing order, and
// their values, as many. Both are copied. If s has no rows yet, its Ptr may be nil.
func (s *CSR) AppendRow(index []int32, value []float32) {
	if len(s.Ptr) == 0 {
		s.Ptr = []int64{0}
	}
	s.Rows++
	s.Index, s.Value = append(s.Index, index...), append(s.Value, value...)
	s.Ptr = append(s.Ptr, int64(len(s.Value)))
}
