//go:build !noasm

package simd

import "golang.org/x/sys/cpu"

// neon uses plain Go for Dots, Axpy, and the elementwise functions other than Combine.
var neon = Kernels{
	Name: "neon", why: "every 64-bit ARM processor has NEON",
	Decode: decodeNEON, MoveAtom: moveAtomNEON,
	Dots: dotsGeneric, Axpy: axpyGeneric,
	Combine: combine, AddConst: addConstGeneric, Scale: scaleGeneric, Mul: mulGeneric,
	DivSqrt: divSqrtGeneric, Relu: reluGeneric, Sum: sumGeneric,
	product: productNEON, rows: 8, columns: 8, peak: peakNEON,
	average:  average,
	Residual: residualNEON, Quantise: quantiseNEON, Candidates: candidatesNEON, Advance: advanceNEON,
	productBytes: productBytesNEON, byteRows: 8, byteColumns: 8, peakBytes: peakBytesNEON,
	dotsBytes: dotsBytesNEON, decodeBytes: decodeBytesNEON,
}

// dotprod differs from neon only in the products of bytes.
var dotprod = func() Kernels {
	k := neon
	k.Name, k.why = "dotprod", "the processor has NEON with dot products"
	k.productBytes, k.peakBytes, k.dotsBytes = productBytesSDOT, peakBytesSDOT, dotsBytesSDOT
	return k
}()

// combine applies combineNEON to any number of elements.
func combine(dst []float32, c float32, a []float32, d float32, b []float32) {
	whole := len(dst) &^ 3
	combineNEON(dst[:whole], c, a, d, b)
	combineGeneric(dst[whole:], c, a[whole:], d, b[whole:])
}

// average applies averageNEON to any number of elements.
func average(index []int32, value, p, s, q []float32, column int32, gradient, square, threshold, rate, floor float32) int {
	whole := len(p) &^ 3
	n := averageNEON(index, value, p[:whole], s, q, column, gradient, square, threshold, rate, floor)
	return n + averageGeneric(index[n:], value[n:], p[whole:], s[whole:], q[whole:], column+int32(whole), gradient, square, threshold, rate, floor)
}

// processorLevels returns the assembly kernels that the processor can run, the best last.
func processorLevels() []*Kernels {
	if cpu.ARM64.HasASIMDDP {
		return []*Kernels{&neon, &dotprod}
	}
	return []*Kernels{&neon}
}
