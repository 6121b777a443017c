package cpu

import (
	"fmt"

	"overcomplete/model"
	"overcomplete/vectors"
)

func (s *state) matrix(m model.Matrix) []float32 {
	return map[model.Matrix][]float32{model.SquaredGradients: s.squares, model.GradientSums: s.sumG, model.SquareSums: s.sumQ}[m]
}

// SaveMatrix implements [train.Resumable].
func (s *state) SaveMatrix(m model.Matrix, f func(part []float32) error) error { return f(s.matrix(m)) }

// RestoreMatrix implements [train.Resumable].
func (s *state) RestoreMatrix(m model.Matrix, f func(part []float32) error) error {
	return f(s.matrix(m))
}

// Restore implements [train.Resumable].
func (s *state) Restore(dictionary []float32, a *vectors.Sparse) error {
	if len(dictionary) != len(s.dictionary) || a.Rows != s.words || a.Cols != s.spec.Atoms {
		return fmt.Errorf("cpu: a state of %d words × %d atoms, want %d × %d", a.Rows, a.Cols, s.words, s.spec.Atoms)
	}
	copy(s.dictionary, dictionary)
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
