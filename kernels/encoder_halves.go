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
func (e *Encoder) halvingBytes() (row, atom int64) {
	if e.halving == nil {
		return 0, 0
	}
	return 4*int64(e.codePitch) + 10*int64(e.dimPitch) + 4, 2 * int64(e.dimPitch)
}

// prepareHalving takes device memory for some rows.
func (e *Encoder) prepareHalving(rows int) {
	if h, g := e.halving, e.gpu; h != nil {
		h.dictionary = alloc[half](g, e.atoms*e.dimPitch)
		h.codes, h.before = alloc[half](g, rows*e.codePitch), alloc[half](g, rows*e.codePitch)
		h.residuals, h.rows = alloc[half](g, rows*e.dimPitch), alloc[float32](g, rows)
	}
}

// halveDictionary launches the copy of the dictionary that there is now.
func (e *Encoder) halveDictionary() {
	if h := e.halving; h != nil {
		e.gpu.queue(toHalves{halves: h.dictionary, rows: e.dictionary, scale: h.atomScale, shape: e.shape(e.atoms)}.launch(), e.gpu.compute)
	}
}

// fistaHalves takes the steps with shrinkage from codes that are zero, and leaves the largest
// codes.
func (e *Encoder) fistaHalves(rows int) {
	g, h, shape := e.gpu, e.halving, e.shape(rows)
	zero(g, h.codes, rows*e.codePitch, g.compute)
	zero(g, h.before, rows*e.codePitch, g.compute)
	g.queue(rowScales{scales: h.rows, y: e.slot.y, shape: shape}.launch(), g.compute)
	e.fista(rows, e.options.Steps, e.proximal.Lambda, FP16, false)
	g.queue(keepLargest{codes: e.codes, halves: h.codes, scales: h.rows, scale: 1 / h.codeScale, shape: shape, most: int32(e.most)}.launch(), g.compute)
}

// errHalves is the error where codes left the range of halves on the way.
var errHalves = errors.New("codes are beyond the range of float16; take the precision tf32 or fp32")

// withinHalves returns an error that names the first of the rows of x whose codes were too large,
// as its loss shows.
func (e *Encoder) withinHalves(x []float32, losses []float64) error {
	for i, loss := range losses {
		if e.halving != nil && !(loss <= math.MaxFloat64) && !e.tooLong(x[i*e.Dim:][:e.Dim]) {
			return &vectors.InputError{Row: i + 1, Err: errHalves}
		}
	}
	return nil
}

// tooLong is whether a number of y has a square that is too large for single precision: then the
// loss is for any precision, and halves are not to blame.
func (e *Encoder) tooLong(row []float32) bool {
	y := make([]float32, e.Dim)
	e.Center(y, row)
	most := largestNorm(y, 1)
	return !(most*most <= math.MaxFloat32)
}
