package cpu

import (
	"fmt"
	"math"
	"slices"

	"overcomplete/cpu/simd"
	"overcomplete/model"
	"overcomplete/vectors"
)

// partFloats is how many float16 numbers are converted at a time.
const partFloats = 1 << 13

// SaveMatrix implements [backend.Trainer].
func (s *state) SaveMatrix(m model.Matrix, f func(part []float32) error) error {
	return s.eachPart(m, func(part []float32, half []uint16) error {
		for i, h := range half {
			part[i] = simd.Float16FromBits(h)
			if m == model.SquareSums {
				part[i] *= part[i] // exactly, in 22 bits
			}
		}
		return f(part)
	})
}

// RestoreMatrix implements [backend.Trainer].
func (s *state) RestoreMatrix(m model.Matrix, f func(part []float32) error) error {
	return s.eachPart(m, func(part []float32, half []uint16) error {
		if err := f(part); err != nil {
			return err
		}
		for i := range half {
			x := part[i]
			if m == model.SquareSums {
				x = float32(math.Sqrt(float64(x)))
			}
			half[i] = simd.Float16Bits(x)
		}
		return nil
	})
}

// eachPart calls f with one part of a matrix after another. If it is kept as float32,
// part is its memory and half is nil. If it is kept as float16, half is its memory, S
// or √Q, and part is room for as many numbers, which f converts.
func (s *state) eachPart(m model.Matrix, f func(part []float32, half []uint16) error) error {
	sums, halves := s.sums.S, s.sums.HalfS
	switch m {
	case model.SquaredGradients:
		for k := range s.atoms {
			if err := f(s.squares.Row(k), nil); err != nil {
				return err
			}
		}
		return nil
	case model.SquareSums:
		sums, halves = s.sums.Q, s.sums.RootQ
	}
	if halves == nil {
		return f(sums, nil)
	}
	room := make([]float32, partFloats)
	for half := range slices.Chunk(halves, partFloats) {
		if err := f(room[:len(half)], half); err != nil {
			return err
		}
	}
	return nil
}

// Restore implements [backend.Trainer].
func (s *state) Restore(dictionary []float32, a *vectors.CSR) error {
	if len(dictionary) != s.atoms*s.Dim || a.Rows != s.words || a.Cols != s.atoms {
		return fmt.Errorf("cpu: a state of %d words × %d atoms, want %d × %d", a.Rows, a.Cols, s.words, s.atoms)
	}
	s.setDictionary(dictionary)
	for i := range s.tiles {
		lo := i * s.tileWords
		n := min(s.tileWords, s.words-lo)
		rows := &codes{index: make([][]int32, n), value: make([][]float32, n)}
		for j := range n {
			rows.index[j], rows.value[j] = a.Row(lo + j)
		}
		s.tiles[i] = new(tile)
		s.tiles[i].pack(rows, n)
	}
	return nil
}
