//go:build gpu

package kernels

import (
	"fmt"
	"unsafe"

	"overcomplete/internal/checkpoint"
	"overcomplete/internal/float32s"
	"overcomplete/vectors"
)

func (b *trainer) SaveState(m checkpoint.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.saveState(b.matrix(m), b.codeBatch, f)
}

func (b *trainer) LoadState(m checkpoint.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.loadState(b.matrix(m), b.codeBatch, f)
}

func (b *trainer) Restore(dictionary []float32, codes *vectors.CSR) error {
	if len(dictionary) != b.atoms*b.dim || codes.Rows != b.rows || codes.Cols != b.atoms {
		return fmt.Errorf("kernels: a state of %d rows × %d atoms, want %d × %d", codes.Rows, codes.Cols, b.rows, b.atoms)
	}
	g := b.gpu
	defer g.enter()()
	toDevice(g, b.dictionary, pitched(dictionary, b.dim, b.dimPitch), g.compute)
	b.convertDictionary()
	all := stateMatrix{b.state.codes, b.rows, b.atoms, b.storePitch, floats}
	if b.precision == fp16 {
		all.scale = b.scales.codes
	}
	row := 0
	return g.loadState(all, b.codeBatch, func(rows []float32) error {
		clear(rows)
		for ; len(rows) > 0; rows = rows[b.atoms:] {
			index, value := codes.Row(row)
			for j, k := range index {
				rows[k] = value[j]
			}
			row++
		}
		return nil
	})
}

// stateMatrix is a matrix of the state.
type stateMatrix struct {
	device             pointer[float32]
	rows, width, pitch int     // the pitch in units of 4 bytes
	scale              float64 // scale of float16 elements; 0 (floats) for float32 elements
}

// floats is the value of stateMatrix.scale if the elements are float32.
const floats = 0

func (b *trainer) matrix(m checkpoint.Matrix) stateMatrix {
	switch m {
	case checkpoint.SquaredGradients:
		return stateMatrix{b.squares, b.atoms, b.dim, b.dimPitch, floats}
	case checkpoint.GradientSums:
		return stateMatrix{b.state.sumG, b.rows, b.atoms, b.codePitch, floats}
	default:
		return stateMatrix{b.state.sumQ, b.rows, b.atoms, b.codePitch, floats}
	}
}

// pack converts unpadded rows to the format of device memory, and stores the result in the slice memory.
func (m stateMatrix) pack(memory, rows []float32) {
	if m.scale == floats {
		copyRows(memory, m.pitch, rows, m.width)
		return
	}
	clear(memory)
	halves := unsafe.Slice((*half)(unsafe.Pointer(&memory[0])), 2*len(memory))
	for i := range len(rows) / m.width {
		for j, x := range rows[i*m.width:][:m.width] {
			halves[2*i*m.pitch+j] = half{float32s.ToFloat16(x * float32(m.scale))}
		}
	}
}

// saveState calls f with all rows of a float32 matrix in order, without padding, at most limit rows at a time.
func (g *gpu) saveState(m stateMatrix, limit int, f func(rows []float32) error) error {
	return m.each(limit, func(rows, memory []float32, first int) error {
		toHost(g, memory, m.device.at(first*m.pitch), g.compute)
		g.synchronize(g.compute)
		copyRows(rows, m.width, memory, m.pitch)
		if g.err != nil {
			return g.err
		}
		return f(rows)
	})
}

// loadState calls f for the same parts as saveState. It copies the rows that f stores in its argument to the
// device.
func (g *gpu) loadState(m stateMatrix, limit int, f func(rows []float32) error) error {
	return m.each(limit, func(rows, memory []float32, first int) error {
		if err := f(rows); err != nil {
			return err
		}
		m.pack(memory, rows)
		toDevice(g, m.device.at(first*m.pitch), memory, g.compute)
		g.synchronize(g.compute)
		return g.err
	})
}

// each calls f for consecutive parts of at most limit rows. The arguments of f are a buffer without padding,
// a buffer with padding, and the index of the part's first row.
func (m stateMatrix) each(limit int, f func(rows, memory []float32, first int) error) error {
	limit = min(limit, m.rows)
	room, padded := make([]float32, limit*m.width), make([]float32, limit*m.pitch)
	for first := 0; first < m.rows; first += limit {
		n := min(limit, m.rows-first)
		if err := f(room[:n*m.width], padded[:n*m.pitch], first); err != nil {
			return err
		}
	}
	return nil
}
