package vectors

import (
	"fmt"
	"io"
	"math"

	"overcomplete/internal/npy"
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

// WriteCSR writes s as an uncompressed .npz file, which scipy.sparse.load_npz and
// [ReadCSR] read. Row offsets are int32 if they fit, int64 if not.
func WriteCSR(w io.Writer, s *CSR) error {
	pointers := func(w io.Writer) error {
		b := make([]byte, 0, 8)
		for _, p := range s.Ptr {
			if _, err := w.Write(appendPointer(b, p, int64(len(s.Value)))); err != nil {
				return err
			}
		}
		return nil
	}
	return writeCSR(w, s.Rows, s.Cols,
		csrPart{len(s.Index), func(w io.Writer) error { return npy.WriteElements(w, s.Index) }},
		csrPart{len(s.Ptr), pointers},
		csrPart{len(s.Value), func(w io.Writer) error { return npy.WriteElements(w, s.Value) }})
}

// ReadCSR reads a CSR matrix from r, a .npz file of size bytes that [WriteCSR] or
// scipy.sparse.save_npz wrote. It returns an error if the file is damaged or holds
// anything else, such as a matrix that is not rows×cols; the matrix that it returns is
// valid, as [CSR.Validate] has it.
func ReadCSR(r io.ReaderAt, size int64, rows, cols int) (*CSR, error) {
	a, err := npy.NewArchive(r, size)
	if err != nil {
		return nil, err
	}
	s := new(CSR)
	if s.Rows, s.Cols, err = readShape(a); err != nil {
		return nil, err
	}
	if s.Rows != rows || s.Cols != cols {
		return nil, fmt.Errorf("%d×%d matrix, want %d×%d", s.Rows, s.Cols, rows, cols)
	}
	if s.Ptr, err = npy.Read(a, "indptr", (*npy.Array).Int64, rows+1); err != nil {
		return nil, err
	}
	nonzeros := s.Ptr[rows]
	if nonzeros < 0 || nonzeros/int64(max(cols, 1)) > int64(rows) {
		return nil, fmt.Errorf("row offsets end at %d in a %d×%d matrix", nonzeros, rows, cols)
	}
	if s.Index, err = npy.Read(a, "indices", (*npy.Array).Int32, int(nonzeros)); err != nil {
		return nil, err
	}
	if s.Value, err = npy.Read(a, "data", (*npy.Array).Float32, int(nonzeros)); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// readShape reads the shape of a matrix, whose format must be CSR.
func readShape(a *npy.Archive) (rows, cols int, err error) {
	format, err := npy.Read(a, "format", (*npy.Array).Strings)
	if err != nil {
		return 0, 0, err
	}
	if format[0] != "csr" {
		return 0, 0, fmt.Errorf("sparse format is %.20q, not csr", format[0])
	}
	shape, err := npy.Read(a, "shape", (*npy.Array).Int64, 2)
	if err != nil {
		return 0, 0, err
	}
	if shape[0] < 0 || shape[0] > math.MaxInt-1 || shape[1] < 0 || shape[1] > math.MaxInt32 {
		return 0, 0, fmt.Errorf("no sparse matrix can have shape %v", shape)
	}
	return int(shape[0]), int(shape[1]), nil
}
