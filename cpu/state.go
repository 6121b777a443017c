package cpu

import (
	"fmt"

	"overcomplete/internal/checkpoint"
	"overcomplete/internal/simd"
	"overcomplete/vectors"
)

// LoadState calls SaveState, because f may write to the parts that it gets.
func (s *trainer) LoadState(m checkpoint.Matrix, f func(part []float32) error) error {
	return s.SaveState(m, f)
}

func (s *trainer) SaveState(m checkpoint.Matrix, f func(part []float32) error) error {
	switch m {
	case checkpoint.GradientSums:
		return f(s.sums.S)
	case checkpoint.SquareSums:
		return f(s.sums.Q)
	}
	return eachRow(s.squares, s.atoms, f)
}

func eachRow(m simd.Matrix, rows int, f func(row []float32) error) error {
	for i := range rows {
		if err := f(m.Row(i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *trainer) Restore(dictionary []float32, a *vectors.CSR) error {
	if len(dictionary) != s.atoms*s.dim || a.Rows != s.rows || a.Cols != s.atoms {
		return fmt.Errorf("cpu: a state of %d rows × %d atoms, want %d × %d", a.Rows, a.Cols, s.rows, s.atoms)
	}
	s.setDictionary(dictionary)
	for i := range s.tiles {
		s.tiles[i] = new(vectors.CSR)
		for row := i * s.tileRows; row < min((i+1)*s.tileRows, s.rows); row++ {
			s.tiles[i].AppendRow(a.Row(row))
		}
	}
	return nil
}
