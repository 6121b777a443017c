package backend

import (
	"math"
	"math/bits"
)

// Each random number is a function of its index, not of earlier random numbers (Philox 4×32-10; Salmon et al.,
// Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011). A device can therefore draw the dense initial codes when
// it needs them instead of storing them, and all devices draw the same numbers.

// Different streams have independent random numbers.
const (
	dictionaryStream = 0
	codeStream       = 1
	rowStream        = 2
)

// randomDictionary returns random atoms, K×L, uniform in ±0.6/√(L+K).
func randomDictionary(seed uint64, atoms, dim int) []float32 {
	d := make([]float32, atoms*dim)
	scale := 0.6 / math.Sqrt(float64(dim+atoms))
	for k := range atoms {
		uniform(d[k*dim:(k+1)*dim], scale, seed, dictionaryStream, uint64(k))
	}
	return d
}

// InitialCode sets code, of length K, to the initial code of a row: dense, uniform in ±0.6/√(K+1).
func InitialCode(code []float32, seed uint64, row int) {
	uniform(code, InitialCodeScale(len(code)), seed, codeStream, uint64(row))
}

// InitialCodeScale returns 0.6/√(K+1), the bound of the values that [InitialCode] sets.
func InitialCodeScale(atoms int) float64 { return 0.6 / math.Sqrt(float64(atoms+1)) }

// RandomDirection sets direction to random numbers, uniform in ±1. They serve as the k-th initial atom if the
// vocabulary has too few rows to initialise all atoms.
func RandomDirection(direction []float32, seed uint64, k int) {
	uniform(direction, 1, seed, rowStream, uint64(k))
}

// uniform fills dst with the numbers of one row of a stream, in (−scale, scale). Numbers 4i to 4i+3 come from the four
// words of a Philox block. The counter of the block is (i, stream, row, row>>32), and its key is seed. A word selects
// one of 2²⁴ equal intervals, and the number is the middle of the interval.
func uniform(dst []float32, scale float64, seed uint64, stream uint32, row uint64) {
	const intervals = 1 << 24
	for i := 0; i < len(dst); i += 4 {
		b0, b1, b2, b3 := philox(uint32(i/4), stream, uint32(row), uint32(row>>32), seed)
		for j, bits := range [4]uint32{b0, b1, b2, b3} {
			if i+j < len(dst) {
				middle := int32(bits>>8)*2 + 1 - intervals // in units of half an interval
				dst[i+j] = float32(float64(middle) * (scale / intervals))
			}
		}
	}
}

// philox returns the Philox 4×32-10 block of a counter under a key.
func philox(c0, c1, c2, c3 uint32, key uint64) (uint32, uint32, uint32, uint32) {
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		hi0, lo0 := bits.Mul32(0xD2511F53, c0)
		hi1, lo1 := bits.Mul32(0xCD9E8D57, c2)
		c0, c1, c2, c3 = hi1^c1^k0, lo1, hi0^c3^k1, lo0
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return c0, c1, c2, c3
}
