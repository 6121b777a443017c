// Package csr reads and writes sparse matrices as .npz files of scipy.sparse, at once or a few rows at a
// time:
//
//	err := csr.Write(file, matrix) // scipy.sparse.load_npz reads the file
//	r, err := csr.NewReader(file, size)
//	matrix, err := r.Next(r.Rows)
package csr

import (
	"fmt"
	"io"
	"math"
	"slices"

	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// Write writes s as an uncompressed .npz file, which scipy.sparse.load_npz and a [Reader] read. Row offsets
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

func readShape(a *npy.Archive) (rows, cols int, err error) {
	array, err := a.Open("format")
	if err != nil {
		return 0, 0, err
	}
	format, err := array.ReadText()
	if err != nil {
		return 0, 0, err
	}
	if format != "csr" {
		return 0, 0, fmt.Errorf("sparse format is %.20q, not csr", format)
	}
	if array, err = a.Open("shape"); err != nil {
		return 0, 0, err
	}
	shape, err := npy.Read[int64](array, 2)
	if err != nil {
		return 0, 0, err
	}
	if shape[0] < 0 || shape[0] > math.MaxInt-1 || shape[1] < 0 || shape[1] > math.MaxInt32 {
		return 0, 0, fmt.Errorf("no sparse matrix can have shape %v", shape)
	}
	return int(shape[0]), int(shape[1]), nil
}
