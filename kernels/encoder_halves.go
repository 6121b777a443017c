//go:build gpu

package kernels

import (
	"errors"
	"math"

	"overcomplete/vectors"
)

// Of an encoder with FP16 the steps with shrinkage, which are most of the work, have codes,
// residuals and atoms as halves. Nothing bounds codes, but they are of the size of ‖y‖ over the
// norm of an atom. So each row is scaled to a norm of 1 to 2, and the dictionary to one of 1 to 2
// of its largest atom, by powers of two, which round nothing. In these units there is room for
// codes of 4,000 and residuals of 64. What is more becomes infinite, and ends the encoding.
const (
	unitCodes     = 1 << 4
	unitResiduals = 1 << 10
	unitAtoms     = 1 << 10
)

// halving is what such an encoder has beside the others.
type halving struct {
	codeScale, atomScale float64
	dictionary           pointer[half]    // K×L
	codes, before        pointer[half]    // batch×K: b and a
	residuals            pointer[half]    // batch×L
	rows                 pointer[float32] // batch: the scale of each
}

// newHalving returns the scales for a dictionary.
func newHalving(atoms []float32, dim int) *halving {
	s := scale(2*unitAtoms, largestNorm(atoms, dim))
	return &halving{atomScale: s, codeScale: unitCodes * unitAtoms / s}
}

// halvingBytes is the device memory that halves take for each row, and for each atom.
func (e *encoder) halvingBytes() (row, atom int64) {
	if e.halving == nil {
		return 0, 0
	}
	return 4*int64(e.widths.codePitch) + 10*int64(e.widths.dimPitch) + 4, 2 * int64(e.widths.dimPitch)
}

// prepareHalving takes device memory for some rows.
func (e *encoder) prepareHalving(rows int) {
	if h, g := e.halving, e.gpu; h != nil {
		h.dictionary = alloc[half](g, e.widths.atoms*e.widths.dimPitch)
		h.codes, h.before = alloc[half](g, rows*e.widths.codePitch), alloc[half](g, rows*e.widths.codePitch)
		h.residuals, h.rows = alloc[half](g, rows*e.widths.dimPitch), alloc[float32](g, rows)
	}
}

// halveDictionary launches the copy of the dictionary that there is now.
func (e *encoder) halveDictionary() {
	if h := e.halving; h != nil {
		e.gpu.queue(toHalves{halves: h.dictionary, rows: e.atoms, scale: h.atomScale, shape: e.widths.shape(e.widths.atoms)}.launch(), e.gpu.compute)
	}
}

// fistaHalves takes the steps with shrinkage from codes that are zero, and leaves the largest
// codes.
func (e *encoder) fistaHalves(rows int) {
	g, h, shape := e.gpu, e.halving, e.widths.shape(rows)
	zero(g, h.codes, rows*e.widths.codePitch, g.compute)
	zero(g, h.before, rows*e.widths.codePitch, g.compute)
	g.queue(rowScales{scales: h.rows, y: e.slot.y, shape: shape}.launch(), g.compute)
	e.fista(rows, e.options.Steps, e.options.Lambda, FP16, false)
	g.queue(keepLargest{codes: e.codes, halves: h.codes, scales: h.rows, scale: 1 / h.codeScale, shape: shape, most: int32(e.most)}.launch(), g.compute)
}

// errHalves is the error where codes left the range of halves on the way.
var errHalves = errors.New("codes are beyond the range of float16; take the precision tf32 or fp32")

// withinHalves returns an error that names the first of the rows of x whose codes were too large,
// as its loss shows.
func (e *encoder) withinHalves(x []float32, losses []float64) error {
	for i, loss := range losses {
		if e.halving != nil && !(loss <= math.MaxFloat64) && !e.tooLong(x[i*e.widths.dim:][:e.widths.dim]) {
			return &vectors.InputError{Row: i + 1, Err: errHalves}
		}
	}
	return nil
}

// tooLong is whether a number of y has a square that is too large for single precision: then the
// loss is for any precision, and halves are not to blame.
func (e *encoder) tooLong(row []float32) bool {
	y := make([]float32, e.widths.dim)
	e.dictionary.Center(y, row)
	most := largestNorm(y, 1)
	return !(most*most <= math.MaxFloat32)
}
