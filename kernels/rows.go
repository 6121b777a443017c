package kernels

import "math"

// widths are the lengths of rows, K of codes and L of vectors, with and without padding.
type widths struct {
	atoms, dim          int
	codePitch, dimPitch int
}

func newWidths(atoms, dim int) widths {
	return widths{atoms, dim, roundUp(atoms, 4), roundUp(dim, 4)}
}

// newHalfWidths returns the widths with matrices of halves.
func newHalfWidths(atoms, dim int) widths {
	return widths{atoms, dim, roundUp(atoms, 8), roundUp(dim, 8)}
}

func (w widths) shape(words int) shape {
	return shape{int32(words), int32(w.atoms), int32(w.dim), int32(w.codePitch), int32(w.dimPitch)}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// copyRows copies rows between matrices of different pitch. Padding becomes zero.
func copyRows(dst []float32, dstPitch int, src []float32, srcPitch int) {
	for i := range len(dst) / dstPitch {
		row := dst[i*dstPitch : (i+1)*dstPitch]
		clear(row[copy(row, src[i*srcPitch:(i+1)*srcPitch]):])
	}
}

// pitched returns rows with padding.
func pitched(rows []float32, length, pitch int) []float32 {
	if length == pitch {
		return rows
	}
	p := make([]float32, len(rows)/length*pitch)
	copyRows(p, pitch, rows, length)
	return p
}

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
