package simd

import "unsafe"

// dst[i·dstRow+j] += Σ_k a[i·aRow+k·aColumn] · b[k·bRow+j]        for i < rows, j < columns, k < n
func productNEON(dst *float32, dstRow int, a *float32, aRow, aColumn int, b *float32, bRow, n int, s, q *byte, sRow, sRows, every int)

// for n = 0, 1, … while index[n] < end:
//
//	dst[j] += value[n] · d[index[n]·dim+j]        for j < len(dst)
func decodeNEON(dst []float32, index []int32, value, d []float32, dim int, end int32) int

// For j < len(h):
//
//	x = value[i] · r[index[i]·dim+j]        for i < len(index)
//	M = m[j] + Σ x, N = n[j] + Σ x²
//	h[j] += max(c0·N + d[j]·(c1·M + c2·d[j]), 0)
//	p[j] = (c3·d[j] + c4·M)/√(h[j]+ε)
//	d[j] += step·p[j]
func moveAtomNEON(h, p, d, m, n []float32, index []int32, value, r []float32, dim int, c0, c1, c2, c3, c4, epsilon, step float32)

// x += y·y        n times for each of rows × columns elements x in registers
func peakNEON(n int)

// The kernels below take whole vectors, and at least one; their generic twins
// do what is left.

//go:noescape
func averageVectors(index *int32, value, p, s, q *float32, n int, column int32, gradient, square, threshold, rate, floor float32) int

//go:noescape
func averageHalfVectors(index *int32, value, p *float32, s, q *uint16, n int, column int32, gradient, square, threshold, rate, floor float32) int

//go:noescape
func combineVectors(dst *float32, c float32, a *float32, d float32, b *float32, n int)

func averageNEON(index []int32, value, p, s, q []float32, column int32, gradient, square, threshold, rate, floor float32) int {
	whole, n := len(p)&^3, 0
	if whole > 0 {
		n = averageVectors(unsafe.SliceData(index), unsafe.SliceData(value), unsafe.SliceData(p), unsafe.SliceData(s), unsafe.SliceData(q),
			whole, column, gradient, square, threshold, rate, floor)
	}
	return n + averageGeneric(index[n:], value[n:], p[whole:], s[whole:], q[whole:], column+int32(whole), gradient, square, threshold, rate, floor)
}

func averageHalfNEON(index []int32, value, p []float32, s, q []uint16, column int32, gradient, square, threshold, rate, floor float32) int {
	if len(p) == 0 {
		return 0
	}
	return averageHalfVectors(unsafe.SliceData(index), unsafe.SliceData(value), unsafe.SliceData(p), unsafe.SliceData(s), unsafe.SliceData(q),
		len(p), column, gradient, square, threshold, rate, floor)
}

func combineNEON(dst []float32, c float32, a []float32, d float32, b []float32) {
	whole := len(dst) &^ 3
	if whole > 0 {
		combineVectors(unsafe.SliceData(dst), c, unsafe.SliceData(a), d, unsafe.SliceData(b), whole)
	}
	combineGeneric(dst[whole:], c, a[whole:], d, b[whole:])
}
