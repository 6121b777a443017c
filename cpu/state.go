package cpu

import (
	"fmt"
	"math"
	"slices"

	"overcomplete/internal/checkpoint"
	"overcomplete/internal/float16"
	"overcomplete/internal/simd"
	"overcomplete/vectors"
)

// partFloats is the number of float16 numbers that are converted at a time.
const partFloats = 1 << 13

// SaveState implements [backend.Trainer].
func (s *state) SaveState(m checkpoint.Matrix, f func(part []float32) error) error {
	return s.transfer(m, false, f)
}

// LoadState implements [backend.Trainer].
func (s *state) LoadState(m checkpoint.Matrix, f func(part []float32) error) error {
	return s.transfer(m, true, f)
}

// transfer calls f with a matrix in parts. If load is true it stores the numbers that f sets. S and √Q in
// float16 are converted part by part.
func (s *state) transfer(m checkpoint.Matrix, load bool, f func(part []float32) error) error {
	sums, halves := s.sums.S, s.sums.HalfS
	switch m {
	case checkpoint.SquaredGradients:
		return eachRow(s.squares, s.atoms, f)
	case checkpoint.SquareSums:
		sums, halves = s.sums.Q, s.sums.RootQ
	}
	if halves == nil {
		return f(sums)
	}
	buffer := make([]float32, partFloats)
	for half := range slices.Chunk(halves, partFloats) {
		part := buffer[:len(half)]
		for i, h := range half {
			part[i] = float16.FromBits(h)
			if m == checkpoint.SquareSums {
				part[i] *= part[i] // exact: 22 bits
			}
		}
		if err := f(part); err != nil {
			return err
		}
		if !load {
			continue
		}
		for i, x := range part {
			if m == checkpoint.SquareSums {
				x = float32(math.Sqrt(float64(x)))
			}
			half[i] = float16.Bits(x)
		}
	}
	return nil
}

// eachRow calls f with the first rows of a matrix.
func eachRow(m simd.Matrix, rows int, f func(row []float32) error) error {
	for i := range rows {
		if err := f(m.Row(i)); err != nil {
			return err
		}
	}
	return nil
}

// Restore implements [backend.Trainer].
func (s *state) Restore(dictionary []float32, a *vectors.CSR) error {
	if len(dictionary) != s.atoms*s.dim || a.Rows != s.words || a.Cols != s.atoms {
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
