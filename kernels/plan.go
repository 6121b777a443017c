//go:build gpu

package kernels

import (
	"sort"

	"overcomplete/internal/backend"
	"overcomplete/internal/program"
)

// sizes are the sizes of a training, in elements. A row is a training row.
type sizes struct {
	widths
	rows       int
	batch      int  // maximum rows of a dictionary step
	codeBatch  int  // rows of a code step
	fused      bool // the code step is one kernel, for all rows at once
	storePitch int  // distance from one row's codes to the next row's codes, in units of 4 bytes
}

// newSizes returns the sizes of a training. A codeBatch of 0 means the default.
func newSizes(p backend.Problem, precision Precision, codeBatch int) sizes {
	s := sizes{
		widths: newWidths(precision, p.Hyperparameters.Atoms, p.Dim), rows: p.Len(), batch: min(p.Batch(), p.Len()), codeBatch: codeBatch,
	}
	s.storePitch = s.codePitch
	if precision == fp16 {
		s.storePitch, s.fused = s.codePitch/2, true
	}
	if s.codeBatch == 0 {
		// This gives a few tiles per multiprocessor. Each step rounds totals, so codeBatch must depend only on K.
		const elements, maxRows, tile = 48 << 20, 16384, 128
		s.codeBatch = max(tile, min(maxRows, elements/s.codePitch/tile*tile))
	}
	return s
}

// length returns the maximum number of rows of a step's matrix on axis a.
func (s sizes) length(a program.Axis) int {
	switch {
	case a == program.Atoms:
		return s.atoms
	case s.fused: // the code step stores no such matrices
		return s.batch
	}
	return max(s.batch, min(s.codeBatch, s.rows))
}

// codeRows returns the number of rows of a launch of the code step.
func (s sizes) codeRows() int {
	if s.fused {
		return s.rows
	}
	return s.codeBatch
}

// rowPitch returns the maximum number of rows that store row numbers.
func (s sizes) rowPitch() int { return max(s.batch, min(s.codeRows(), s.rows), s.atoms) }

// rowBytes returns the bytes of device memory of a row: its vector, its code, and its rows of S and Q.
func (s sizes) rowBytes() int64 {
	return 4 * (int64(s.dimPitch) + int64(s.storePitch) + 2*int64(s.codePitch))
}

// fixedBytes returns the bytes of device memory that do not depend on the number of rows.
func (s sizes) fixedBytes(programs ...*executable) int64 {
	bytes := slack + 4*int64(s.dimPitch)*int64(s.length(program.Rows)+2*s.atoms) // products
	rowNumbers := 0
	for _, x := range programs {
		for _, v := range x.Vectors[program.SquaresProduct+1:] { // all vectors after the products, including D and H
			if v.Rows != program.One {
				bytes += 4 * int64(s.length(v.Rows)) * int64(s.dimPitch)
			}
		}
		for _, h := range x.halves {
			bytes += 2 * int64(s.length(x.Vectors[h.vector].Rows)) * int64(s.dimPitch)
		}
		if x.share > 0 {
			bytes += 4 * int64(halfDecodeShares-1) * int64(s.length(program.Rows)) * int64(s.dimPitch)
		}
		rowNumbers = max(rowNumbers, x.rowNumbers)
	}
	bytes += 8 * int64(rowNumbers) * int64(s.rowPitch())
	bytes += 8 * int64(min(s.codeBatch, s.rows)) * int64(1+s.atoms) // upper bound of packed codes for the host
	return bytes
}

// fits reports whether all rows fit into free bytes of device memory.
func (s sizes) fits(free int64, programs ...*executable) bool {
	// Other programs and the driver need the remaining 5 %.
	return int64(s.rows) <= (free/20*19-s.fixedBytes(programs...))/s.rowBytes()
}

// maxRows returns the largest number of rows that fit, if not all rows do.
func (s sizes) maxRows(free int64, programs ...*executable) int {
	return sort.Search(s.rows, func(n int) bool {
		fewer := s
		fewer.rows = n + 1
		fewer.batch = (s.batch*(n+1) + s.rows - 1) / s.rows
		return !fewer.fits(free, programs...)
	})
}
