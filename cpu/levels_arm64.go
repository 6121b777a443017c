package cpu

// neon leaves loops over n×L values to the compiler, which uses scalar
// registers: they are few beside the others.
var neon = kernels{
	name: "neon", why: "every 64-bit ARM processor has NEON",
	product: productNEON, rows: 8, columns: 8,
	average: averageNEON, averageHalf: averageHalf(averageHalfNEON).withRest(4), decode: decodeNEON, moveAtom: moveAtomNEON,
	fista: fistaGeneric, dots: dotsGeneric, axpy: axpyGeneric,
	combine: combineNEON, addConst: addConstGeneric, scale: scaleGeneric, mul: mulGeneric,
	divSqrt: divSqrtGeneric, relu: reluGeneric, sum: sumGeneric, peak: peakNEON,
}

// processorLevels returns what the processor can run, the best last.
func processorLevels() []*kernels { return []*kernels{&neon} }
