//go:build gpu

package kernels

import (
	"errors"
	"math"

	"overcomplete/vectors"
)

// With fp16, the FISTA iterations with shrinkage, which are most of the work, store codes, residuals and atoms
// as float16. Codes have no bound, but their size is about the norm of the row over the norm of an atom. Each
// row and the longest atom are therefore scaled to a norm between 1 and 2, by powers of two, which is exact. In
// these units float16 holds codes up to 4,000 and residuals up to 64. Larger numbers become infinite and end the
// encoding with an error.
const (
	unitCodes     = 1 << 4
	unitResiduals = 1 << 10
	unitAtoms     = 1 << 10
)

// halfBuffers are the float16 matrices of an encoder with fp16, and their scales.
type halfBuffers struct {
	codeScale, atomScale float64
	dictionary           pointer[half]    // K×L
	codes, previous      pointer[half]    // batch×K: b and a
	residuals            pointer[half]    // batch×L
	rows                 pointer[float32] // batch: the scale of each row
}

func newHalfBuffers(atoms []float32, dim int) *halfBuffers {
	s := scale(2*unitAtoms, largestNorm(atoms, dim))
	return &halfBuffers{atomScale: s, codeScale: unitCodes * unitAtoms / s}
}

// halfBufferBytes returns the bytes of the float16 matrices per row and per atom.
func (e *encoder) halfBufferBytes() (row, atom int64) {
	if e.half == nil {
		return 0, 0
	}
	return 4*int64(e.widths.codePitch) + 2*int64(e.widths.dimPitch) + 4, 2 * int64(e.widths.dimPitch)
}

func (e *encoder) allocHalfBuffers(rows int) {
	if h, g := e.half, e.gpu; h != nil {
		h.dictionary = alloc[half](g, e.widths.atoms*e.widths.dimPitch)
		h.codes, h.previous = alloc[half](g, rows*e.widths.codePitch), alloc[half](g, rows*e.widths.codePitch)
		h.residuals, h.rows = alloc[half](g, rows*e.widths.dimPitch), alloc[float32](g, rows)
	}
}

// convertAtoms queues the conversion of the current atoms to float16.
func (e *encoder) convertAtoms() {
	if h := e.half; h != nil {
		e.gpu.queue(toHalves{halves: h.dictionary, rows: e.atoms, scale: h.atomScale, shape: e.widths.shape(e.widths.atoms)}.launch(), e.gpu.compute)
	}
}

// fistaHalf queues the iterations with shrinkage, from zero codes, and keeps the largest codes of each row.
func (e *encoder) fistaHalf(rows int) {
	g, h, shape := e.gpu, e.half, e.widths.shape(rows)
	zero(g, h.codes, rows*e.widths.codePitch, g.compute)
	zero(g, h.previous, rows*e.widths.codePitch, g.compute)
	g.queue(rowScales{scales: h.rows, y: e.slot.y, shape: shape}.launch(), g.compute)
	e.fista(rows, e.options.Steps, e.options.Lambda, fp16, false)
	g.queue(keepLargest{codes: e.codes, halves: h.codes, scales: h.rows, scale: 1 / h.codeScale, shape: shape, maxNonzeros: int32(e.nonzeros)}.launch(), g.compute)
}

var errHalfRange = errors.New("codes exceed the range of float16; use the precision tf32 or fp32")

// checkHalfRange returns an error for the first row whose codes exceeded the range of float16. The loss of such a
// row is infinite or NaN.
func (e *encoder) checkHalfRange(x []float32, losses []float64) error {
	for i, loss := range losses {
		if e.half != nil && !(loss <= math.MaxFloat64) && !e.overflowsFloat32(x[i*e.widths.dim:][:e.widths.dim]) {
			return &vectors.InputError{Row: i + 1, Err: errHalfRange}
		}
	}
	return nil
}

// overflowsFloat32 reports whether the square of a number of the centred row overflows float32. Such a row can't
// be encoded with any precision.
func (e *encoder) overflowsFloat32(row []float32) bool {
	y := make([]float32, e.widths.dim)
	e.dictionary.Center(y, row)
	largest := largestNorm(y, 1)
	return !(largest*largest <= math.MaxFloat32)
}
