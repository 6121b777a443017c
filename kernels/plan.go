//go:build gpu

package kernels

import (
	"fmt"
	"math"

	"overcomplete/graph"
)

// sizes of a training, in elements.
type sizes struct {
	words, atoms, dim   int
	codePitch, dimPitch int // from one row to the next
	batch               int // most words of a dictionary step
	codeBatch           int // words of a code step
}

// newSizes takes 0 for as many words a code step as suit the kernels.
func newSizes(spec graph.Spec, words, batch, codeBatch int) sizes {
	s := sizes{
		words: words, atoms: spec.Atoms, dim: spec.Dim,
		codePitch: roundUp(spec.Atoms, 4), dimPitch: roundUp(spec.Dim, 4),
		batch: min(batch, words), codeBatch: codeBatch,
	}
	if s.codeBatch == 0 {
		// Tiles enough for every multiprocessor a few times over. It depends on
		// K alone, because totals are added up a step at a time.
		const elements, most, tile = 48 << 20, 16384, 128
		s.codeBatch = max(tile, min(most, elements/s.codePitch/tile*tile))
	}
	return s
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// rows is how many rows of scratch a step may need.
func (s sizes) rows(a graph.Axis) int {
	if a == graph.Words {
		return max(s.batch, min(s.codeBatch, s.words))
	}
	return s.atoms
}

// wordBytes is what a word takes on the device: its vector, its code, S and Q.
func (s sizes) wordBytes() int64 { return 4 * (int64(s.dimPitch) + 3*int64(s.codePitch)) }

// fixedBytes is what does not depend on the number of words on the device. It
// leaves room for what the driver rounds up.
func (s sizes) fixedBytes(programs ...*executable) int64 {
	const slack = 4 << 20
	bytes := int64(slack)
	rowNumbers := 0
	for _, x := range programs {
		for _, m := range x.matrices {
			bytes += 4 * int64(s.rows(m.shape[0])) * int64(s.dimPitch) // inputs too: D, H
		}
		rowNumbers = max(rowNumbers, x.rowNumbers)
	}
	bytes += 8 * int64(rowNumbers) * int64(max(s.rows(graph.Words), s.atoms))
	bytes += 8 * int64(min(s.codeBatch, s.words)) * int64(s.atoms) // packed codes on their way out, at most
	return bytes
}

// plan decides how many words a slot of device memory holds: all of them, of
// which there is one slot then, or as many as two slots have room for, in whole
// code steps.
func (s sizes) plan(fixed, free int64) (int, error) {
	// Other programs, and the driver itself, may want some more.
	free = free/20*19 - fixed
	if int64(s.words) <= free/s.wordBytes() {
		return s.words, nil
	}
	fit := int(max(0, min(free/s.wordBytes()/2, math.MaxInt32)))
	if whole := fit / s.codeBatch * s.codeBatch; whole >= s.batch && whole > 0 {
		return whole, nil
	}
	return 0, fmt.Errorf("%w on the GPU: %d words × %d sparse dimensions at a time, of %d bytes a word, would fit, and %d at a time are needed; "+
		"use fewer dimensions or more dictionary steps an epoch", ErrMemory, fit, s.atoms, s.wordBytes(), max(s.batch, s.codeBatch))
}

// hostWords refuses words that the machine has no memory to hold beside the GPU.
func (s sizes) hostWords(total uint64) error {
	if fit := total / 20 * 19 / uint64(s.wordBytes()); uint64(s.words) > fit {
		return fmt.Errorf("%w: %d words × %d sparse dimensions fit neither on the GPU nor into the machine's memory, which holds %d words", ErrMemory, s.words, s.atoms, fit)
	}
	return nil
}
