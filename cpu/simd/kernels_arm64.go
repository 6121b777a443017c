//go:build !noasm

package simd

import "unsafe"

// productNEON adds a tile of a product to dst. For i < rows and j < columns,
// numbers of the level:
//
//	dst[i·dstRow+j] += Σ_k a[i·aRow+k·aColumn] · b[k·bRow+j]        for k < n
//
// n > 0. Meanwhile sRows rows of columns float32 from s and q on, sRow bytes apart,
// come into level 2: one for every so many terms, as all at once would hold up the
// loads of b. If sRows is 0, s and q may be nil; else every > 0.
//
// Floor: 2·n flops a sum. All sums stay in registers.
//
//go:noescape
func productNEON(dst *float32, dstRow int, a *float32, aRow, aColumn int, b *float32, bRow, n int, s, q *byte, sRow, sRows, every int)

// peakNEON is what a product would be with nothing to load, for benchmarks. For
// each of a tile's rows × columns elements x, in registers:
//
//	x += y·y        n times, n > 0
//
//go:noescape
func peakNEON(n int)

// decodeNEON adds the product of a sparse code and a matrix to dst. For n = 0, 1,
// … while n < len(index) and index[n] < end:
//
//	dst[j] += value[n] · d[index[n]·dim+j]        for j < len(dst)
//
// It returns where it stopped. index increases; len(dst) is a multiple of [Width], and not 0.
// Called for the blocks of atoms one after the other, it multiplies a word's code
// with the dictionary while a block stays in cache.
//
// Floor: 2·len(dst) flops a nonzero, and the load of its row from level 2.
//
//go:noescape
func decodeNEON(dst []float32, index []int32, value, d []float32, dim int, end int32) (n int)

// moveAtomNEON takes AdaGrad's step for an atom d, of which m and n are a part
// of the products with codes and their squares, and the words that use it are the
// rest. For j < len(h):
//
//	x = value[i] · r[index[i]·dim+j]        for i < len(index)
//	M = m[j] + Σ x, N = n[j] + Σ x²
//	h[j] += max(c0·N + d[j]·(c1·M + c2·d[j]), 0)
//	p[j] = (c3·d[j] + c4·M)/√(h[j]+ε)
//	d[j] += step·p[j]
//
// len(h) is a multiple of [Width]. The next atom's parts of h, p and d, dim further
// on, are prefetched.
//
// Floor: 5·len(h) flops a nonzero; five floats to and from memory an element.
//
//go:noescape
func moveAtomNEON(h, p, d, m, n []float32, index []int32, value, r []float32, dim int, c0, c1, c2, c3, c4, epsilon, step float32)

// The kernels below take whole vectors, and at least one; their generic twins do what
// is left.

// averageVectors takes a step of dual averaging. For j < n:
//
//	s[j] += gradient·p[j]
//	q[j] += square·p[j]²
//	u = |s[j]| − threshold
//	a = 0 if u ≤ 0, else −sgn(s[j])·rate·u/√(q[j]+ε)
//	a = max(a, floor)
//	if a ≠ 0: append column+j to index, a to value
//
// It returns how many it appended. index and value have [Width] elements more than
// p, and what is in them beyond the appended ones is undefined.
//
// Floor: S and Q, read and written: 16 bytes an element.
//
// n is a multiple of 4, n > 0.
//
//go:noescape
func averageVectors(index *int32, value, p, s, q *float32, n int, column int32, gradient, square, threshold, rate, floor float32) (appended int)

// averageHalfVectors takes a step of dual averaging with S and √Q in float16. For
// j < n:
//
//	g = s[j] + gradient·p[j]
//	h = q[j]² + square·p[j]² + ε + 0·g
//	s[j], q[j] = g, √h        rounded to float16
//	u = |g| − threshold
//	a = 0 if u ≤ 0, else −sgn(g)·rate·u·√h/h
//	a = max(a, floor)
//	if a ≠ 0: append column+j to index, a to value
//
// It returns how many it appended. index and value have [Width] elements more than
// p, and what is in them beyond the appended ones is undefined.
//
// Codes are made of what has not been rounded yet. Where S or √Q has left float16's
// range in an earlier epoch and is infinite, 0·g is a NaN, or √h/h: so is the code,
// and training ends with an error.
//
// Floor: S and √Q, read and written: 8 bytes an element.
//
// n is a multiple of 4, n > 0.
//
//go:noescape
func averageHalfVectors(index *int32, value, p *float32, s, q *uint16, n int, column int32, gradient, square, threshold, rate, floor float32) (appended int)

// combineVectors adds two vectors, each times a number:
//
//	dst[i] = c·a[i] + d·b[i]        for i < n, a multiple of 4, n > 0
//
// dst may be a or b.
//
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
