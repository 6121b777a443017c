//go:build !noasm

package simd

// neon uses plain Go for loops over n×L values, which need little time.
var neon = Kernels{
	Name: "neon", why: "every 64-bit ARM processor has NEON",
	Decode: decodeNEON, MoveAtom: moveAtomNEON,
	FISTA: fistaGeneric, Dots: dotsGeneric, Axpy: axpyGeneric,
	Combine: combine, AddConst: addConstGeneric, Scale: scaleGeneric, Mul: mulGeneric,
	DivSqrt: divSqrtGeneric, Relu: reluGeneric, Sum: sumGeneric,
	product: productNEON, rows: 8, columns: 8, peak: peakNEON,
	average: withRest(averageNEON, 4, averageGeneric), averageHalf: withRest(averageHalfNEON, 4, averageHalfGeneric),
}

// combine applies combineNEON to any number of elements.
func combine(dst []float32, c float32, a []float32, d float32, b []float32) {
	whole := len(dst) &^ 3
	combineNEON(dst[:whole], c, a, d, b)
	combineGeneric(dst[whole:], c, a[whole:], d, b[whole:])
}

// processorLevels returns the assembly kernels that the processor can run, the best last.
func processorLevels() []*Kernels { return []*Kernels{&neon} }
