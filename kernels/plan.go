//go:build gpu

package kernels

import (
	"sort"

	"overcomplete/internal/backend"
	"overcomplete/internal/program"
)

// sizes are the sizes of a training, in elements. A word is a training row.
type sizes struct {
	widths
	words      int
	batch      int  // maximum words of a dictionary step
	codeBatch  int  // words of a code step
	fused      bool // the code step is one kernel, for all words at once
	storePitch int  // distance from one word's codes to the next word's codes, in units of 4 bytes
}

// newSizes returns the sizes of a training. A codeBatch of 0 means the default.
func newSizes(p backend.Problem, precision Precision, codeBatch int) sizes {
	s := sizes{
		widths: newWidths(p.Hyperparameters.Atoms, p.Dim), words: p.Len(), batch: min(p.Batch(), p.Len()), codeBatch: codeBatch,
	}
	s.storePitch = s.codePitch
	if precision == fp16 {
		s.widths = newHalfWidths(s.atoms, s.dim)
		s.storePitch, s.fused = s.codePitch/2, true
	}
	if s.codeBatch == 0 {
		// A few tiles per multiprocessor. Totals are rounded after each step, so codeBatch depends on K alone.
		const elements, maxWords, tile = 48 << 20, 16384, 128
		s.codeBatch = max(tile, min(maxWords, elements/s.codePitch/tile*tile))
	}
	return s
}

// rows returns the maximum number of rows of a step's matrices on an axis.
func (s sizes) rows(a program.Axis) int {
	switch {
	case a == program.Atoms:
		return s.atoms
	case s.fused: // the code step stores no such matrices
		return s.batch
	}
	return max(s.batch, min(s.codeBatch, s.words))
}

// codeRows returns the number of words of a launch of the code step.
func (s sizes) codeRows() int {
	if s.fused {
		return s.words
	}
	return s.codeBatch
}

// rowPitch returns the maximum number of rows that store row numbers.
func (s sizes) rowPitch() int { return max(s.batch, min(s.codeRows(), s.words), s.atoms) }

// wordBytes returns the bytes of device memory of a word: its vector, its code, and its rows of S and Q.
func (s sizes) wordBytes() int64 {
	return 4 * (int64(s.dimPitch) + int64(s.storePitch) + 2*int64(s.codePitch))
}

// fixedBytes returns the bytes of device memory that do not depend on the number of words.
func (s sizes) fixedBytes(programs ...*executable) int64 {
	bytes := slack + 4*int64(s.dimPitch)*int64(s.rows(program.Words)+2*s.atoms) // products
	rowNumbers := 0
	for _, x := range programs {
		for _, v := range x.Vectors[program.SquaresProduct+1:] { // includes D and H
			if v.Rows != program.One {
				bytes += 4 * int64(s.rows(v.Rows)) * int64(s.dimPitch)
			}
		}
		for _, h := range x.halves {
			bytes += 2 * int64(s.rows(x.Vectors[h.vector].Rows)) * int64(s.dimPitch)
		}
		if x.share > 0 {
			bytes += 4 * int64(halfDecodeShares-1) * int64(s.rows(program.Words)) * int64(s.dimPitch)
		}
		rowNumbers = max(rowNumbers, x.rowNumbers)
	}
	bytes += 8 * int64(rowNumbers) * int64(s.rowPitch())
	bytes += 8 * int64(min(s.codeBatch, s.words)) * int64(1+s.atoms) // upper bound of packed codes for the host
	return bytes
}

// fits reports whether all words fit into free bytes of device memory.
func (s sizes) fits(free int64, programs ...*executable) bool {
	// 5 % are left to other programs and the driver.
	return int64(s.words) <= (free/20*19-s.fixedBytes(programs...))/s.wordBytes()
}

// maxWords returns the largest number of words that fit, if not all words do.
func (s sizes) maxWords(free int64, programs ...*executable) int {
	return sort.Search(s.words, func(n int) bool {
		fewer := s
		fewer.words = n + 1
		fewer.batch = (s.batch*(n+1) + s.words - 1) / s.words
		return !fewer.fits(free, programs...)
	})
}
