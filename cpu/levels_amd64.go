package cpu

import "golang.org/x/sys/cpu"

// Regenerates kernels_amd64.s and kernels_amd64.go.
//go:generate sh -c "cd _generate && go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg cpu"

var avx2 = kernels{
	name: "avx2", why: "the processor has AVX2, FMA and F16C",
	product: productAVX2, rows: 6, columns: 16,
	average: averageAVX2, averageHalf: averageHalf(averageHalfAVX2).withRest(8), decode: decodeAVX2, moveAtom: moveAtomAVX2,
	fista: fistaAVX2, dots: dotsAVX2, axpy: axpyAVX2,
	combine: combineAVX2, addConst: addConstAVX2, scale: scaleAVX2, mul: mulAVX2,
	divSqrt: divSqrtAVX2, relu: reluAVX2, sum: sumAVX2, peak: peakAVX2,
}

var avx512 = kernels{
	name: "avx512", why: "the processor has AVX-512",
	product: productAVX512, rows: 12, columns: 32,
	average: averageAVX512, averageHalf: averageHalfAVX512, decode: decodeAVX512, moveAtom: moveAtomAVX512,
	fista: fistaAVX512, dots: dotsAVX512, axpy: axpyAVX512,
	combine: combineAVX512, addConst: addConstAVX512, scale: scaleAVX512, mul: mulAVX512,
	divSqrt: divSqrtAVX512, relu: reluAVX512, sum: sumAVX512, peak: peakAVX512,
}

// processorLevels returns what the processor can run, the best last.
func processorLevels() (levels []*kernels) {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C && cpu.X86.HasPOPCNT {
		levels = append(levels, &avx2)
		if cpu.X86.HasAVX512F && cpu.X86.HasBMI2 {
			levels = append(levels, &avx512)
		}
	}
	return levels
}
