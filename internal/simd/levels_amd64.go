//go:build !noasm

package simd

import "golang.org/x/sys/cpu"

// Regenerates kernels_amd64.s, kernels_amd64.go and kernels_arm64.go.
//go:generate sh -c "cd _generate && go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg simd"

var avx2 = Kernels{
	Name: "avx2", why: "the processor has AVX2 and FMA",
	Decode: decodeAVX2, MoveAtom: moveAtomAVX2,
	Dots: dotsAVX2, Axpy: axpyAVX2,
	Combine: combineAVX2, AddConst: addConstAVX2, Scale: scaleAVX2, Mul: mulAVX2,
	DivSqrt: divSqrtAVX2, Relu: reluAVX2, Sum: sumAVX2,
	product: productAVX2, rows: 6, columns: 16, peak: peakAVX2,
	average:  averageAVX2,
	Residual: residualAVX2, Quantise: quantiseAVX2, Candidates: candidatesAVX2, Advance: advanceAVX2,
	productBytes: productBytesAVX2, byteRows: 4, byteColumns: 16, peakBytes: peakBytesAVX2,
	dotsBytes: dotsBytesAVX2, decodeBytes: decodeBytesAVX2, offset: 64,
}

var avx512 = Kernels{
	Name: "avx512", why: "the processor has AVX-512",
	Decode: decodeAVX512, MoveAtom: moveAtomAVX512,
	Dots: dotsAVX512, Axpy: axpyAVX512,
	Combine: combineAVX512, AddConst: addConstAVX512, Scale: scaleAVX512, Mul: mulAVX512,
	DivSqrt: divSqrtAVX512, Relu: reluAVX512, Sum: sumAVX512,
	product: productAVX512, rows: 12, columns: 32, peak: peakAVX512,
	average:  averageAVX512,
	Residual: residualAVX512, Quantise: quantiseAVX512, Candidates: candidatesAVX512, Advance: advanceAVX512,
	productBytes: productBytesAVX2, byteRows: 4, byteColumns: 16, peakBytes: peakBytesAVX2,
	dotsBytes: dotsBytesAVX2, decodeBytes: decodeBytesAVX2, offset: 64,
}

// avxVNNI differs from avx2 only in the products of bytes. Decoding doesn't use VPDPBUSD, because it would gain
// little: 32 columns of four atoms would take 16 instructions instead of 18, and eight of the 16 would be shuffles.
var avxVNNI = func() Kernels {
	k := avx2
	k.Name, k.why = "avxvnni", "the processor has AVX-VNNI"
	k.productBytes, k.byteRows, k.peakBytes, k.dotsBytes = productBytesAVXVNNI, 6, peakBytesAVXVNNI, dotsBytesAVXVNNI
	return k
}()

// avx512VNNI differs from avx512 only in the products of bytes.
var avx512VNNI = func() Kernels {
	k := avx512
	k.Name, k.why = "avx512vnni", "the processor has AVX-512 with VNNI"
	k.productBytes, k.byteRows, k.byteColumns, k.peakBytes = productBytesVNNI, 12, 32, peakBytesVNNI
	k.dotsBytes, k.decodeBytes = dotsBytesVNNI, decodeBytesVNNI
	return k
}()

// processorLevels returns the assembly kernels that the processor can run, the best last.
func processorLevels() (levels []*Kernels) {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasPOPCNT {
		levels = append(levels, &avx2)
		if cpu.X86.HasAVXVNNI {
			levels = append(levels, &avxVNNI)
		}
		if cpu.X86.HasAVX512F && cpu.X86.HasBMI2 {
			levels = append(levels, &avx512)
			if cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI {
				levels = append(levels, &avx512VNNI)
			}
		}
	}
	return levels
}
