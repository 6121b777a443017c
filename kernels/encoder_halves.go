//go:build gpu

package kernels

import (
	"errors"
	"math"

	"overcomplete/vectors"
)

// With fp16 the steps with shrinkage, most of the work, have codes, residuals and atoms in halves. Nothing
// bounds codes, but they are of the size of ‖y‖ over the norm of an atom. Each row is therefore scaled to a
// norm of 1 to 2, and the largest atom too, by powers of two, which round nothing. In these units there is
// room for codes of 4,000 and residuals of 64. Larger ones become infinite and end the encoding.
const (
	unitCodes     = 1 << 4
	unitResiduals = 1 << 10
	unitAtoms     = 1 << 10
)

// halving is the state of an encoder with fp16.
type halving struct {
	codeScale, atomScale float64
	dictionary           pointer[half]    // K×L
	codes, before        pointer[half]    // batch×K: b and a
	residuals            pointer[half]    // batch×L
	rows                 pointer[float32] // batch: the scale of each
}

func newHalving(atoms []float32, dim int) *halving {
	s := scale(2*unitAtoms, largestNorm(atoms, dim))
	return &halving{atomScale: s, codeScale: unitCodes * unitAtoms / s}
}

// halvingBytes returns the device memory of halves per row and per atom.
func (e *encoder) halvingBytes() (row, atom int64) {
	if e.halving == nil {
		return 0, 0
	}
	return 4*int64(e.widths.codePitch) + 2*int64(e.widths.dimPitch) + 4, 2 * int64(e.widths.dimPitch)
}

func (e *encoder) prepareHalving(rows int) {
	if h, g := e.halving, e.gpu; h != nil {
		h.dictionary = alloc[half](g, e.widths.atoms*e.widths.dimPitch)
		h.codes, h.before = alloc[half](g, rows*e.widths.codePitch), alloc[half](g, rows*e.widths.codePitch)
		h.residuals, h.rows = alloc[half](g, rows*e.widths.dimPitch), alloc[float32](g, rows)
	}
}

// halveDictionary queues the copy of the current dictionary to halves.
func (e *encoder) halveDictionary() {
	if h := e.halving; h != nil {
		e.gpu.queue(toHalves{halves: h.dictionary, rows: e.atoms, scale: h.atomScale, shape: e.widths.shape(e.widths.atoms)}.launch(), e.gpu.compute)
	}
}

// fistaHalves queues the steps with shrinkage, from codes of zero, and keeps the largest codes.
func (e *encoder) fistaHalves(rows int) {
	g, h, shape := e.gpu, e.halving, e.widths.shape(rows)
	zero(g, h.codes, rows*e.widths.codePitch, g.compute)
	zero(g, h.before, rows*e.widths.codePitch, g.compute)
	g.queue(rowScales{scales: h.rows, y: e.slot.y, shape: shape}.launch(), g.compute)
	e.fista(rows, e.options.Steps, e.options.Lambda, fp16, false)
	g.queue(keepLargest{codes: e.codes, halves: h.codes, scales: h.rows, scale: 1 / h.codeScale, shape: shape, most: int32(e.nonzeros)}.launch(), g.compute)
}

var errHalves = errors.New("codes are beyond the range of float16; take the precision tf32 or fp32")

// withinHalves returns an error that names the first row whose codes left the range of halves, as its loss
// shows.
func (e *encoder) withinHalves(x []float32, losses []float64) error {
	for i, loss := range losses {
		if e.halving != nil && !(loss <= math.MaxFloat64) && !e.tooLong(x[i*e.widths.dim:][:e.widths.dim]) {
			return &vectors.InputError{Row: i + 1, Err: errHalves}
		}
	}
	return nil
}

// tooLong reports whether the square of a number overflows float32, so that no precision would help.
func (e *encoder) tooLong(row []float32) bool {
	y := make([]float32, e.widths.dim)
	e.dictionary.Center(y, row)
	most := largestNorm(y, 1)
	return !(most*most <= math.MaxFloat32)
}
