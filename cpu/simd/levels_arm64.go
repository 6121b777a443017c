//go:build !noasm

package simd

// neon leaves loops over n×L values to the compiler, which uses scalar
// registers: they are few beside the others.
var neon = Kernels{
	Name: "neon", why: "every 64-bit ARM processor has NEON",
	product: productNEON, rows: 8, columns: 8,
	average: averageNEON, averageHalf: averageHalf(averageHalfNEON).withRest(4), Decode: decodeNEON, MoveAtom: moveAtomNEON,
	FISTA: fistaGeneric, Dots: dotsGeneric, Axpy: axpyGeneric,
	Combine: combineNEON, AddConst: addConstGeneric, Scale: scaleGeneric, Mul: mulGeneric,
	DivSqrt: divSqrtGeneric, Relu: reluGeneric, Sum: sumGeneric, peak: peakNEON,
}

// processorLevels returns what the processor can run, the best last.
func processorLevels() []*Kernels { return []*Kernels{&neon} }
