package cpu

import (
	"math"
	"unsafe"
)

// With float16 sums, S and √Q are kept as IEEE 754 binary16 numbers and computed
// with as float32. √Q, not Q: it is of the size of gradients, as S is. Squares of
// gradients below 2⁻¹² would vanish, and a code −η·S/√Q be as large as ε lets it;
// so, where S is not 0, √Q is not either, for √(q²+g²) rounds to no less than |g|.
// Nor does it ever round to less than q.

// float16Bits returns the bits of the float16 nearest to x, of two the one with
// an even last bit. From 65520 on, that is ∞.
func float16Bits(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &^= 1 << 31
	switch {
	case b > 0x7f800000: // NaN, made quiet
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x477ff000:
		return sign | 0x7c00
	case b < 0x38800000: // subnormal: in float32, numbers from 0.5 on have its spacing
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// float16FromBits returns the number with the given bits.
func float16FromBits(h uint16) float32 {
	sign, b := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	if b >= 0x0f800000 { // ∞ or NaN
		return math.Float32frombits(sign | 0x7f800000 | b)
	}
	// Float32's exponent is biased by 112 more. A product moves subnormal numbers too.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(b)*0x1p112))
}

// codeSums are S or Q of consecutive words, row after row: as they are, or S and
// √Q as float16.
type codeSums struct {
	single []float32
	half   []uint16
}

func newCodeSums(n int, float16 bool) (s codeSums) {
	if float16 {
		s.half = make([]uint16, n)
		hugePages(s.half)
	} else {
		s.single = make([]float32, n)
		hugePages(s.single)
	}
	return s
}

// rows are those from lo to hi, of the given width.
func (s codeSums) rows(lo, hi, width int) codeSums {
	if s.half != nil {
		return codeSums{half: s.half[lo*width : hi*width]}
	}
	return codeSums{single: s.single[lo*width : hi*width]}
}

// at is where element i is, bytes how long n elements are: for prefetching.
func (s codeSums) at(i int) *byte {
	if s.half != nil {
		return (*byte)(unsafe.Pointer(&s.half[i]))
	}
	return (*byte)(unsafe.Pointer(&s.single[i]))
}

func (s codeSums) bytes(n int) int {
	if s.half != nil {
		return 2 * n
	}
	return 4 * n
}
