package kernels

import "math"

// toHalf rounds a number to a half, to even. Beyond their range, and for a NaN, it is infinite.
func toHalf(x float32) half {
	bits := math.Float32bits(x)
	sign, size := uint16(bits>>16&0x8000), math.Abs(float64(x))
	switch {
	case !(size < 65520):
		return half{sign | 0x7c00}
	case size < 0x1p-14:
		return half{sign | uint16(math.RoundToEven(size*0x1p24))}
	}
	bits += 0xfff + bits>>13&1
	return half{sign | uint16(bits>>13-(127-15)<<10)&0x7fff}
}
