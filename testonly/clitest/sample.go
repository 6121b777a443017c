package clitest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Vectors returns random vectors with a nonzero mean, the same in each call.
func Vectors(rows, dim int) *vectors.Dense {
	d := &vectors.Dense{Dim: dim}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		d.IDs = append(d.IDs, fmt.Sprintf("word%d", i))
		for range dim {
			d.Data = append(d.Data, float32(0.3+rng.NormFloat64()))
		}
	}
	return d
}

// Text returns vectors as GloVe text, which decodes to the same bits.
func Text(d *vectors.Dense) []byte {
	var b bytes.Buffer
	for i, w := range d.IDs {
		b.WriteString(w)
		for _, x := range d.Row(i) {
			b.WriteString(" " + strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Sample returns a directory with the file in.txt of 60 vectors of length 8.
func Sample(t testing.TB) (Dir, *vectors.Dense) {
	t.Helper()
	dir, d := New(t), Vectors(60, 8)
	dir.Write(t, "in.txt", Text(d))
	return dir, d
}

// NewModel returns a model of method B for vectors of length 2, with zero atoms.
func NewModel(ids []string, codes [][]float32) *model.Model {
	const dim = 2
	atoms := len(codes[0])
	s := &vectors.Sparse{IDs: ids, CSR: vectors.CSR{Rows: len(ids), Cols: atoms, Ptr: []int64{0}}}
	for _, row := range codes {
		for k, v := range row {
			if v != 0 {
				s.Index, s.Value = append(s.Index, int32(k)), append(s.Value, v)
			}
		}
		s.Ptr = append(s.Ptr, int64(len(s.Index)))
	}
	h := train.Paper()
	h.Method, h.Atoms = model.Nonnegative, atoms
	t := model.Training{Input: model.Input{Name: "in.txt", Rows: len(ids), Dim: dim}, Recipe: h}
	return &model.Model{
		Info:       model.Info{Format: model.FormatVersion, Training: t, Encoding: t.PaperEncoding()},
		Codes:      s,
		Dictionary: model.Dictionary{Dim: dim, Atoms: make([]float32, dim*atoms)},
	}
}

// RandomCodes returns codes of word0, word1, … with about density·cols nonzeros per row. Some values are equal.
func RandomCodes(seed uint64, rows, cols int, density float64) *vectors.Sparse {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &vectors.Sparse{CSR: vectors.CSR{Cols: cols, Ptr: []int64{0}}}
	for i := range rows {
		s.IDs = append(s.IDs, fmt.Sprint("word", i))
		var index []int32
		var value []float32
		for k := range cols {
			if rng.Float64() < density {
				index, value = append(index, int32(k)), append(value, float32(rng.IntN(20))-9.5)
			}
		}
		s.AppendRow(index, value)
	}
	return s
}

// Matrix returns the rows of a sparse matrix as dense rows.
func Matrix(s *vectors.Sparse) [][]float64 {
	rows := make([][]float64, s.Rows)
	for i := range rows {
		rows[i] = make([]float64, s.Cols)
		index, value := s.Row(i)
		for j, k := range index {
			rows[i][k] = float64(value[j])
		}
	}
	return rows
}

// Save returns a directory that contains only m, as "model".
func Save(t testing.TB, m *model.Model) Dir {
	t.Helper()
	dir := New(t)
	testonly.Must(t, m.Save(dir.Path("model"), false))
	return dir
}
