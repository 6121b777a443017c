//go:build gpu

package kernels

import (
	"math"
	"sort"

	"overcomplete/internal/backend"
	"overcomplete/internal/program"
	"overcomplete/model"
)

// sizes of a training, in elements.
type sizes struct {
	widths
	words      int
	batch      int  // most words of a dictionary step
	codeBatch  int  // words of a code step
	halfSums   bool // whether S and √Q are kept, in halves
	storePitch int  // from one word's codes to the next one's, in units of 4 bytes
	sumPitch   int  // and from its sums
}

// newSizes chooses the words of a code step to suit the kernels, where codeBatch is 0.
func newSizes(p backend.Problem, precision Precision, codeBatch int) sizes {
	s := sizes{
		widths: newWidths(p.Hyperparameters.Atoms, p.Dim), words: p.Len(), batch: min(p.Batch(), p.Len()), codeBatch: codeBatch,
		halfSums: p.Hyperparameters.State == model.Float16,
	}
	s.storePitch = s.codePitch
	if precision == FP16 {
		s.widths = newHalfWidths(s.atoms, s.dim)
		s.storePitch = s.codePitch / 2
	}
	s.sumPitch = s.codePitch
	if s.halfSums {
		s.sumPitch = s.codePitch / 2
	}
	if s.codeBatch == 0 {
		// Tiles enough for every multiprocessor a few times over. It depends on
		// K alone, because totals are added up a step at a time.
		const elements, most, tile = 48 << 20, 16384, 128
		s.codeBatch = max(tile, min(most, elements/s.codePitch/tile*tile))
	}
	return s
}

// rows is how many rows a step's matrix of its own needs at most.
func (s sizes) rows(a program.Axis) int {
	if a == program.Words {
		return max(s.batch, min(s.codeBatch, s.words))
	}
	return s.atoms
}

// wordBytes is what a word takes on the device: its vector, its code, S and Q.
func (s sizes) wordBytes() int64 {
	return 4 * (int64(s.dimPitch) + int64(s.storePitch) + 2*int64(s.sumPitch))
}

// fixedBytes is what does not depend on the number of words on the device. It
// leaves room for what the driver rounds up.
func (s sizes) fixedBytes(programs ...*executable) int64 {
	bytes := slack + 4*int64(s.dimPitch)*int64(s.rows(program.Words)+2*s.atoms) // products
	rowNumbers := 0
	for _, x := range programs {
		for _, v := range x.Vectors[program.SquaresProduct+1:] { // inputs too: D, H
			if v.Rows != program.One {
				bytes += 4 * int64(s.rows(v.Rows)) * int64(s.dimPitch)
			}
		}
		for _, h := range x.halves {
			bytes += 2 * int64(s.rows(x.Vectors[h.vector].Rows)) * int64(s.dimPitch)
		}
		if x.share > 0 {
			bytes += 4 * int64(s.batch) * int64(s.dimPitch)
		}
		rowNumbers = max(rowNumbers, x.rowNumbers)
	}
	bytes += 8 * int64(rowNumbers) * int64(max(s.rows(program.Words), s.atoms))
	bytes += 8 * int64(min(s.codeBatch, s.words)) * int64(1+s.atoms) // packed codes on their way out, at most
	return bytes
}

// plan decides how many words a slot of device memory holds: all of them in one slot, or as
// many whole code steps as fit in each of two; ok is false if that is too few.
func (s sizes) plan(free int64, programs ...*executable) (slotWords int, ok bool) {
	// Other programs, and the driver itself, may want some more.
	free = free/20*19 - s.fixedBytes(programs...)
	if int64(s.words) <= free/s.wordBytes() {
		return s.words, true
	}
	fit := int(max(0, min(free/s.wordBytes()/2, math.MaxInt32)))
	slotWords = fit / s.codeBatch * s.codeBatch
	return slotWords, slotWords > 0 && slotWords >= s.batch
}

// mostWords returns how many words the device has room for, when it has not for all.
func (s sizes) mostWords(free int64, programs ...*executable) int {
	return sort.Search(s.words, func(n int) bool {
		fewer := s
		fewer.words = n + 1
		fewer.batch = (s.batch*(n+1) + s.words - 1) / s.words
		_, ok := fewer.plan(free, programs...)
		return !ok
	})
}

// hostWords returns how many words the machine has room for in total bytes of memory, each
// with its vector twice, once page-locked, with its state, and in the end a compressed code.
func (s sizes) hostWords(total uint64) int {
	const denseShare = 4 // of a code's numbers at most one in so many is not zero then
	return int(total / 10 * 9 / uint64(s.wordBytes()+4*int64(s.dim)+8*int64(s.atoms)/denseShare))
}
