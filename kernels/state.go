//go:build gpu

package kernels

import (
	"fmt"
	"unsafe"

	"overcomplete/model"
	"overcomplete/vectors"
)

// SaveMatrix implements [train.Resumable].
func (b *Trainer) SaveMatrix(m model.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.save(b.part(m), b.codeBatch, f)
}

// RestoreMatrix implements [train.Resumable].
func (b *Trainer) RestoreMatrix(m model.Matrix, f func(part []float32) error) error {
	defer b.gpu.enter()()
	return b.gpu.restore(b.part(m), b.codeBatch, f)
}

// Restore implements [train.Resumable].
func (b *Trainer) Restore(dictionary []float32, codes *vectors.CSR) error {
	if len(dictionary) != b.atoms*b.dim || codes.Rows != b.words || codes.Cols != b.atoms {
		return fmt.Errorf("kernels: a state of %d words × %d atoms, want %d × %d", codes.Rows, codes.Cols, b.words, b.atoms)
	}
	g := b.gpu
	defer g.enter()()
	toDevice(g, b.dictionary, pitched(dictionary, b.dim, b.dimPitch), g.compute)
	b.halve()
	b.fresh = false
	return g.eachPart(stateMatrix{b.host.codes, b.slots[0].codes, b.words, b.storePitch, b.storePitch}, b.codeBatch, func(p matrixPart) error {
		clear(p.rows)
		for i := range len(p.rows) / b.storePitch {
			index, value := codes.Row(p.first + i)
			row := p.rows[i*b.storePitch : (i+1)*b.storePitch]
			halves := unsafe.Slice((*half)(unsafe.Pointer(&row[0])), 2*len(row))
			for j, k := range index {
				if b.precision == FP16 {
					halves[k] = toHalf(value[j] * float32(b.scales.codes))
				} else {
					row[k] = value[j]
				}
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
	rows, width, pitch int
}

func (b *Trainer) part(m model.Matrix) stateMatrix {
	switch m {
	case model.SquaredGradients:
		return stateMatrix{nil, b.squares, b.atoms, b.dim, b.dimPitch}
	case model.GradientSums:
		return stateMatrix{b.host.sumG, b.slots[0].sumG, b.words, b.atoms, b.codePitch}
	default:
		return stateMatrix{b.host.sumQ, b.slots[0].sumQ, b.words, b.atoms, b.codePitch}
	}
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
			p.read = func() error { copyRows(p.rows, m.width, at, m.pitch); return nil }
			p.write = func() error { copyRows(at, m.pitch, p.rows, m.width); return nil }
		} else {
			at, padded := m.device.at(first*m.pitch), padded[:n*m.pitch]
			p.read = func() error {
				toHost(g, padded, at, g.compute)
				g.synchronize(g.compute)
				copyRows(p.rows, m.width, padded, m.pitch)
				return g.err
			}
			p.write = func() error {
				copyRows(padded, m.pitch, p.rows, m.width)
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
