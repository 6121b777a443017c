package float32s

import "math"

// ToFloat16 returns the bits of the float16 nearest to x. Ties round to an even last bit; magnitudes from 65520 round
// to ∞.
func ToFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &^= 1 << 31
	switch {
	case b > 0x7f800000: // a NaN, which becomes quiet
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x477ff000:
		return sign | 0x7c00
	case b < 0x38800000: // subnormal: float32 numbers from 0.5 to 1 have the spacing of subnormal float16 numbers
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// FromFloat16 returns the float16 number with the given bits, which float32 represents exactly.
func FromFloat16(h uint16) float32 {
	sign, b := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	if b >= 0x0f800000 { // ∞ or NaN
		return math.Float32frombits(sign | 0x7f800000 | b)
	}
	// The exponent bias of float32 is larger by 112. Multiplying by 2¹¹² also converts subnormal numbers, unlike
	// adding 112 to the exponent.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(b)*0x1p112))
}
