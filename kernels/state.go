//go:build gpu

package kernels

import (
	"fmt"
	"math"
	"unsafe"

	"overcomplete/internal/npy"
	"overcomplete/model"
	"overcomplete/vectors"
)

// SaveMatrix implements [backend.Trainer].
func (b *Trainer) SaveMatrix(m model.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.save(b.part(m), b.codeBatch, f)
}

// RestoreMatrix implements [backend.Trainer].
func (b *Trainer) RestoreMatrix(m model.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.restore(b.part(m), b.codeBatch, f)
}

// Restore implements [backend.Trainer].
func (b *Trainer) Restore(dictionary []float32, codes *vectors.CSR) error {
	if len(dictionary) != b.atoms*b.dim || codes.Rows != b.words || codes.Cols != b.atoms {
		return fmt.Errorf("kernels: a state of %d words × %d atoms, want %d × %d", codes.Rows, codes.Cols, b.words, b.atoms)
	}
	g := b.gpu
	defer g.enter()()
	toDevice(g, b.dictionary, pitched(dictionary, b.dim, b.dimPitch), g.compute)
	b.halve()
	b.fresh = false
	all := stateMatrix{b.host.codes, b.slots[0].codes, b.words, b.atoms, b.storePitch, floats}
	if b.precision == FP16 {
		all.kept = kept{halves: true, scale: b.scales.codes}
	}
	return g.eachPart(all, b.codeBatch, func(p matrixPart) error {
		clear(p.rows)
		for i := range len(p.rows) / b.atoms {
			index, value := codes.Row(p.first + i)
			for j, k := range index {
				p.rows[i*b.atoms+int(k)] = value[j]
			}
		}
		return p.write()
	})
}

// stateMatrix is a matrix of the state, on the host if not all of it fits on the
// device.
type stateMatrix struct {
	host               []float32
	device             pointer[float32]
	rows, width, pitch int // the pitch in units of 4 bytes
	kept
}

// kept is how numbers of a matrix are in memory.
type kept struct {
	halves bool    // not floats, and
	scale  float64 // then so many times what they stand for,
	roots  bool    // or what their squares stand for
}

var floats kept

func (b *Trainer) part(m model.Matrix) stateMatrix {
	switch sums := (kept{halves: b.halfSums, scale: b.scales.sums}); m {
	case model.SquaredGradients:
		return stateMatrix{nil, b.squares, b.atoms, b.dim, b.dimPitch, floats}
	case model.GradientSums:
		return stateMatrix{b.host.sumG, b.slots[0].sumG, b.words, b.atoms, b.sumPitch, sums}
	default:
		sums.roots = true
		return stateMatrix{b.host.sumQ, b.slots[0].sumQ, b.words, b.atoms, b.sumPitch, sums}
	}
}

// unpack gets rows, without padding, from what is in memory.
func (m stateMatrix) unpack(rows, memory []float32) {
	if !m.halves {
		copyRows(rows, m.width, memory, m.pitch)
		return
	}
	for i := range len(rows) / m.width {
		halves := halvesIn(memory[i*m.pitch : (i+1)*m.pitch])
		for j := range m.width {
			x := npy.Float16(halves[j].bits) / float32(m.scale)
			if m.roots {
				x *= x // exactly, in 22 bits
			}
			rows[i*m.width+j] = x
		}
	}
}

// pack puts rows into memory.
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
			halves[j] = toHalf(x * float32(m.scale))
		}
	}
}

// halvesIn are the halves that memory holds.
func halvesIn(memory []float32) []half {
	return unsafe.Slice((*half)(unsafe.Pointer(&memory[0])), 2*len(memory))
}

// matrixPart is some rows of a matrix, without padding.
type matrixPart struct {
	rows  []float32
	first int
	read  func() error // gets rows from the matrix
	write func() error // and puts them there
}

// save calls f with all rows in turn, at most some at a time.
func (g *gpu) save(m stateMatrix, most int, f func(part []float32) error) error {
	return g.eachPart(m, most, func(p matrixPart) error {
		if err := p.read(); err != nil {
			return err
		}
		return f(p.rows)
	})
}

// restore has f fill in all rows in turn.
func (g *gpu) restore(m stateMatrix, most int, f func(part []float32) error) error {
	return g.eachPart(m, most, func(p matrixPart) error {
		if err := f(p.rows); err != nil {
			return err
		}
		return p.write()
	})
}

// eachPart calls f for all rows in turn, at most some at a time.
func (g *gpu) eachPart(m stateMatrix, most int, f func(matrixPart) error) error {
	most = min(most, m.rows)
	memory, padded := make([]float32, most*m.width), make([]float32, most*m.pitch)
	for first := 0; first < m.rows; first += most {
		n := min(most, m.rows-first)
		p := matrixPart{rows: memory[:n*m.width], first: first}
		if m.host != nil {
			at := m.host[first*m.pitch : (first+n)*m.pitch]
			p.read = func() error { m.unpack(p.rows, at); return nil }
			p.write = func() error { m.pack(at, p.rows); return nil }
		} else {
			at, padded := m.device.at(first*m.pitch), padded[:n*m.pitch]
			p.read = func() error {
				toHost(g, padded, at, g.compute)
				g.synchronize(g.compute)
				m.unpack(p.rows, padded)
				return g.err
			}
			p.write = func() error {
				m.pack(padded, p.rows)
				toDevice(g, at, padded, g.compute)
				g.synchronize(g.compute)
				return g.err
			}
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}
