//go:build gpu

package kernels

import (
	"fmt"
	"math"
	"unsafe"

	"overcomplete/internal/checkpoint"
	"overcomplete/internal/float16"
	"overcomplete/vectors"
)

// SaveState implements [backend.Trainer].
func (b *trainer) SaveState(m checkpoint.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.saveState(b.matrix(m), b.codeBatch, f)
}

// LoadState implements [backend.Trainer].
func (b *trainer) LoadState(m checkpoint.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.loadState(b.matrix(m), b.codeBatch, f)
}

// Restore implements [backend.Trainer].
func (b *trainer) Restore(dictionary []float32, codes *vectors.CSR) error {
	if len(dictionary) != b.atoms*b.dim || codes.Rows != b.words || codes.Cols != b.atoms {
		return fmt.Errorf("kernels: a state of %d words × %d atoms, want %d × %d", codes.Rows, codes.Cols, b.words, b.atoms)
	}
	g := b.gpu
	defer g.enter()()
	toDevice(g, b.dictionary, pitched(dictionary, b.dim, b.dimPitch), g.compute)
	b.convertDictionary()
	all := stateMatrix{b.state.codes, b.words, b.atoms, b.storePitch, floats}
	if b.precision == fp16 {
		all.kept = kept{halves: true, scale: b.scales.codes}
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
	rows, width, pitch int // the pitch in units of 4 bytes
	kept
}

// kept is the representation of a matrix in memory.
type kept struct {
	halves bool    // not floats, and
	scale  float64 // then so many times what they stand for,
	roots  bool    // or what their squares stand for
}

var floats kept

func (b *trainer) matrix(m checkpoint.Matrix) stateMatrix {
	switch sums := (kept{halves: b.halfSums, scale: b.scales.sums}); m {
	case checkpoint.SquaredGradients:
		return stateMatrix{b.squares, b.atoms, b.dim, b.dimPitch, floats}
	case checkpoint.GradientSums:
		return stateMatrix{b.state.sumG, b.words, b.atoms, b.sumPitch, sums}
	default:
		sums.roots = true
		return stateMatrix{b.state.sumQ, b.words, b.atoms, b.sumPitch, sums}
	}
}

// unpack converts memory to rows without padding; pack does the inverse.
func (m stateMatrix) unpack(rows, memory []float32) {
	if !m.halves {
		copyRows(rows, m.width, memory, m.pitch)
		return
	}
	for i := range len(rows) / m.width {
		halves := halvesIn(memory[i*m.pitch : (i+1)*m.pitch])
		for j := range m.width {
			x := float16.FromBits(halves[j].bits) / float32(m.scale)
			if m.roots {
				x *= x // exactly, in 22 bits
			}
			rows[i*m.width+j] = x
		}
	}
}

func (m stateMatrix) pack(memory, rows []float32) {
	if !m.halves {
		copyRows(memory, m.pitch, rows, m.width)
		return
	}
	clear(memory)
	for i := range len(rows) / m.width {
		halves := halvesIn(memory[i*m.pitch : (i+1)*m.pitch])
		for j := range m.width {
			x := rows[i*m.width+j]
			if m.roots {
				x = float32(math.Sqrt(float64(x)))
			}
			halves[j] = half{float16.Bits(x * float32(m.scale))}
		}
	}
}

func halvesIn(memory []float32) []half {
	return unsafe.Slice((*half)(unsafe.Pointer(&memory[0])), 2*len(memory))
}

// saveState calls f with all rows in order, without padding, at most limit at a time.
func (g *gpu) saveState(m stateMatrix, limit int, f func(rows []float32) error) error {
	return m.each(limit, func(rows, memory []float32, first int) error {
		toHost(g, memory, m.device.at(first*m.pitch), g.compute)
		g.synchronize(g.compute)
		m.unpack(rows, memory)
		if g.err != nil {
			return g.err
		}
		return f(rows)
	})
}

// loadState does the same for f to fill the rows in.
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

// each calls f with room for at most limit rows, and for them with padding.
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
