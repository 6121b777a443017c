package cpu

import (
	"fmt"

	"overcomplete/model"
	"overcomplete/vectors"
)

// eachPart calls f with a matrix in parts, which f reads or writes.
func (s *state) eachPart(m model.Matrix, f func(part []float32) error) error {
	switch m {
	case model.GradientSums:
		return f(s.sumG)
	case model.SquareSums:
		return f(s.sumQ)
	}
	for k := range s.spec.Atoms {
		if err := f(s.squares.row(k)); err != nil {
			return err
		}
	}
	return nil
}

// SaveMatrix implements [train.Resumable].
func (s *state) SaveMatrix(m model.Matrix, f func(part []float32) error) error {
	return s.eachPart(m, f)
}

// RestoreMatrix implements [train.Resumable].
func (s *state) RestoreMatrix(m model.Matrix, f func(part []float32) error) error {
	return s.eachPart(m, f)
}

// Restore implements [train.Resumable].
func (s *state) Restore(dictionary []float32, a *vectors.Sparse) error {
	if len(dictionary) != s.spec.Atoms*s.spec.Dim || a.Rows != s.words || a.Cols != s.spec.Atoms {
		return fmt.Errorf("cpu: a state of %d words × %d atoms, want %d × %d", a.Rows, a.Cols, s.words, s.spec.Atoms)
	}
	for k := range s.spec.Atoms {
		copy(s.dictionary.row(k), dictionary[k*s.spec.Dim:])
	}
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
