//go:build gpu

package kernels

import (
	"fmt"
	"math"
	"unsafe"

	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// Exchange implements [backend.Trainer].
func (b *Trainer) Exchange(way backend.Way, m checkpoint.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.exchange(way, b.part(m), b.codeBatch, f)
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
	row := 0
	return g.exchange(backend.Restore, all, b.codeBatch, func(rows []float32) error {
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

func (b *Trainer) part(m checkpoint.Matrix) stateMatrix {
	switch sums := (kept{halves: b.halfSums, scale: b.scales.sums}); m {
	case checkpoint.SquaredGradients:
		return stateMatrix{nil, b.squares, b.atoms, b.dim, b.dimPitch, floats}
	case checkpoint.GradientSums:
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

// exchange calls f with all rows in turn, without padding, at most some at a time: to be read, or
// to be filled in.
func (g *gpu) exchange(way backend.Way, m stateMatrix, most int, f func(rows []float32) error) error {
	most = min(most, m.rows)
	room, padded := make([]float32, most*m.width), make([]float32, most*m.pitch)
	for first := 0; first < m.rows; first += most {
		n := min(most, m.rows-first)
		rows, memory, from := room[:n*m.width], padded[:n*m.pitch], first*m.pitch
		if m.host != nil {
			memory = m.host[from : from+n*m.pitch]
		}
		if way == backend.Save {
			if m.host == nil {
				toHost(g, memory, m.device.at(from), g.compute)
				g.synchronize(g.compute)
			}
			m.unpack(rows, memory)
		}
		if g.err != nil {
			return g.err
		}
		if err := f(rows); err != nil {
			return err
		}
		if way == backend.Restore {
			m.pack(memory, rows)
			if m.host == nil {
				toDevice(g, m.device.at(from), memory, g.compute)
				g.synchronize(g.compute)
			}
		}
	}
	return g.err
}
