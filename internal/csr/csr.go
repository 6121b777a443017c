// Package csr reads and writes sparse matrices as .npz files of scipy.sparse, at once or a few rows at a
// time:
//
//	err := csr.Write(file, matrix) // scipy.sparse.load_npz reads the file
//	matrix, err := csr.Read(file, size, 400000, 3000)
package csr

import (
	"fmt"
	"io"
	"math"
	"slices"

	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// Write writes s as an uncompressed .npz file, which scipy.sparse.load_npz and [Read] read. Row offsets
// are int32 if the number of nonzeros fits, otherwise int64.
func Write(w io.Writer, s *vectors.CSR) error {
	a := npy.NewArchiveWriter(w)
	index, err := create(a, "indices", indexHeader(len(s.Index)))
	if err != nil {
		return err
	}
	if err := npy.WriteElements(index, s.Index); err != nil {
		return err
	}
	return writeRest(a, s.Rows, s.Cols, len(s.Value), len(s.Ptr), slices.Values(s.Ptr), func(w io.Writer) error {
		return npy.WriteElements(w, s.Value)
	})
}

// Read reads a rows×cols CSR matrix from r, a .npz file of size bytes that [Write] or
// scipy.sparse.save_npz wrote. It returns an error if the file is damaged or holds anything else, such as
// a matrix of another shape. The matrix is valid ([vectors.CSR.Validate]).
func Read(r io.ReaderAt, size int64, rows, cols int) (*vectors.CSR, error) {
	a, err := npy.NewArchive(r, size)
	if err != nil {
		return nil, err
	}
	s := new(vectors.CSR)
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

// readShape reads the shape of a matrix. It returns an error if the format isn't CSR.
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
