package simd

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// The plain-Go kernels in this file define the results. Assembly rounds differently, because
// it fuses multiplications with additions and adds in another order. The kernels of the
// search (at the end of this file) are an exception: assembly computes the same bits.
//
// The doc comment of a kernel states its loop, its preconditions, and its speed limit (the
// work that no implementation can avoid). The comment describes the assembly, too. If a
// loop runs over the elements of one slice, all other slices must be at least as long.
// Assembly doesn't check preconditions.

// epsilon prevents 0/0 in dual averaging: see graph.Epsilon.
const epsilon = 1e-30

// productGeneric adds a tile of the matrix product a·b to dst. The level determines the
// number of rows and columns of a tile. For i < rows and j < columns:
//
//	dst[i·dstRow+j] += Σ_k a[i·aRow+k·aColumn] · b[k·bRow+j]        for k < n
//
// n > 0. The loop also prefetches sRows rows of s and of q into the level-2 cache. Such
// a row has one float32 per column of the tile, and rows start sRow bytes apart. The
// argument every is the number of terms between two prefetches, because prefetching all
// rows at once would delay the loads of b. If sRows is 0, s and q may be nil. If sRows > 0, every > 0.
//
// Speed limit: 2·n flops per sum. All sums stay in registers.
func productGeneric(dst *float32, dstRow int, a *float32, aRow, aColumn int, b *float32, bRow, n int, s, q *byte, sRow, sRows, every int) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	left := unsafe.Slice(a, aRow+(n-1)*aColumn+1)
	right := unsafe.Slice(b, (n-1)*bRow+4)
	for k := range n {
		x0, x1 := left[k*aColumn], left[k*aColumn+aRow]
		y := right[k*bRow:][:4]
		s00 += x0 * y[0]
		s10 += x1 * y[0]
		s01 += x0 * y[1]
		s11 += x1 * y[1]
		s02 += x0 * y[2]
		s12 += x1 * y[2]
		s03 += x0 * y[3]
		s13 += x1 * y[3]
	}
	out := unsafe.Slice(dst, dstRow+4)
	for j, sum := range [4]float32{s00, s01, s02, s03} {
		out[j] += sum
	}
	for j, sum := range [4]float32{s10, s11, s12, s13} {
		out[dstRow+j] += sum
	}
}

// peakGeneric computes a tile without loads, to measure peak flops. For each of the
// tile's rows × columns elements x, in registers:
//
//	x += y·y        n times, n > 0
func peakGeneric(n int) {
	y := math.Float32frombits(peakResult.Load())
	x0, x1, x2, x3, x4, x5, x6, x7 := y, y, y, y, y, y, y, y
	for range n {
		x0 += y * y
		x1 += y * y
		x2 += y * y
		x3 += y * y
		x4 += y * y
		x5 += y * y
		x6 += y * y
		x7 += y * y
	}
	peakResult.Store(math.Float32bits(x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7))
}

var peakResult atomic.Uint32 // bits of a float32; prevents the compiler from removing the loop

// averageGeneric computes a step of dual averaging. For j < len(p):
//
//	s[j] += gradient·p[j]
//	q[j] += square·p[j]²
//	u = |s[j]| − threshold
//	a = 0 if u ≤ 0, else −sgn(s[j])·rate·u/√(q[j]+ε)
//	a = max(a, floor)
//	if a ≠ 0: append column+j to index, a to value
//
// It returns the number n of appended elements. index and value have [Width] elements
// more than p; after the call their elements from n on are undefined.
//
// Speed limit: the loop reads and writes S and Q, 16 bytes per element.
func averageGeneric(index []int32, value, p, s, q []float32, column int32, gradient, square, threshold, rate, floor float32) (n int) {
	s, q = s[:len(p)], q[:len(p)]
	for j, x := range p {
		g := s[j] + gradient*x
		h := q[j] + square*(x*x)
		s[j], q[j] = g, h
		var a float32
		// Most codes fail both comparisons.
		if u := -g - threshold; u > 0 {
			a = rate * u / float32(math.Sqrt(float64(h+epsilon)))
		} else if u := g - threshold; u > 0 {
			a = -rate * u / float32(math.Sqrt(float64(h+epsilon)))
		}
		if a = max(a, floor); a != 0 {
			index[n], value[n] = column+int32(j), a
			n++
		}
	}
	return n
}

// decodeGeneric adds the product of a sparse code and a matrix to dst. For n = 0, 1,
// … while n < len(index) and index[n] < end:
//
//	dst[j] += value[n] · d[index[n]·dim+j]        for j < len(dst)
//
// It returns the final n. index is in increasing order; len(dst) is a positive multiple of [Width].
//
// Speed limit: 2·len(dst) flops per nonzero, and the load of its row of d from the level-2
// cache. A block of atoms stays there if the caller uses it for all codes before the next block.
func decodeGeneric(dst []float32, index []int32, value, d []float32, dim int, end int32) (n int) {
	// Four nonzeros at a time: dst is loaded and stored a quarter as often.
	for ; n+4 <= len(index) && index[n+3] < end; n += 4 {
		d0 := d[int(index[n])*dim:][:len(dst)]
		d1 := d[int(index[n+1])*dim:][:len(dst)]
		d2 := d[int(index[n+2])*dim:][:len(dst)]
		d3 := d[int(index[n+3])*dim:][:len(dst)]
		v0, v1, v2, v3 := value[n], value[n+1], value[n+2], value[n+3]
		for j := range dst {
			dst[j] += (v0*d0[j] + v1*d1[j]) + (v2*d2[j] + v3*d3[j])
		}
	}
	for ; n < len(index) && index[n] < end; n++ {
		d0 := d[int(index[n])*dim:][:len(dst)]
		v0 := value[n]
		for j := range dst {
			dst[j] += v0 * d0[j]
		}
	}
	return n
}

// moveAtomGeneric updates an atom d by a step of AdaGrad. h is the atom's row of H, the
// sums of squared gradients, and p its row of P, the steps. For some words, m holds
// the sums of the products of codes and residuals, and n the sums of the products' squares.
// The loop adds the products of the words in index. value holds the codes of these words,
// and r the residuals. For j < len(h):
//
//	x = value[i] · r[index[i]·dim+j]        for i < len(index)
//	M = m[j] + Σ x, N = n[j] + Σ x²
//	h[j] += max(c0·N + d[j]·(c1·M + c2·d[j]), 0)
//	p[j] = (c3·d[j] + c4·M)/√(h[j]+ε)
//	d[j] += step·p[j]
//
// len(h) is a multiple of [Width]. The loop prefetches h, p and d of the next atom, at a
// distance of dim.
//
// Speed limit: 5·len(h) flops per nonzero, and five floats per element to and from memory.
func moveAtomGeneric(h, p, d, m, n []float32, index []int32, value, r []float32, dim int, c0, c1, c2, c3, c4, epsilon, step float32) {
	for j := 0; j < len(h); j += Width {
		var sum, squares [Width]float32
		copy(sum[:], m[j:])
		copy(squares[:], n[j:])
		for i, word := range index {
			row := r[int(word)*dim+j:][:Width]
			for k := range row {
				x := value[i] * row[k]
				sum[k] += x
				squares[k] += x * x
			}
		}
		h, p, d := h[j:][:Width], p[j:][:Width], d[j:][:Width]
		for k := range h {
			h[k] += max(c0*squares[k]+d[k]*(c1*sum[k]+c2*d[k]), 0)
			p[k] = (c3*d[k] + c4*sum[k]) / float32(math.Sqrt(float64(h[k]+epsilon)))
			d[k] += step * p[k]
		}
	}
}

// dotsGeneric multiplies a residual with the atoms of a code. For n = 0, 1, … while
// n < len(index) and index[n] < end:
//
//	p[n] = Σ_j r[j] · d[index[n]·dim+j]        for j < len(r)
//
// It returns the final n. index is in increasing order; len(r) is a multiple of [Width].
//
// Speed limit: 2·len(r) flops per nonzero, and the load of its row of d from the level-2 cache.
func dotsGeneric(p []float32, index []int32, r, d []float32, dim int, end int32) (n int) {
	for ; n < len(index) && index[n] < end; n++ {
		row := d[int(index[n])*dim:][:len(r)]
		var s0, s1, s2, s3 float32
		for j := 0; j < len(r); j += 4 {
			s0 += r[j] * row[j]
			s1 += r[j+1] * row[j+1]
			s2 += r[j+2] * row[j+2]
			s3 += r[j+3] * row[j+3]
		}
		p[n] = (s0 + s1) + (s2 + s3)
	}
	return n
}

// axpyGeneric adds a multiple of g to c, in float64:
//
//	c[j] += x·g[j]        for j < len(c), a multiple of [Width]
func axpyGeneric(c []float64, x float64, g []float32) {
	g = g[:len(c)]
	for j := range c {
		c[j] += x * float64(g[j])
	}
}

// combineGeneric computes a linear combination of two vectors:
//
//	dst[i] = c·a[i] + d·b[i]
//
// dst may be a or b.
func combineGeneric(dst []float32, c float32, a []float32, d float32, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = c*a[i] + d*b[i]
	}
}

// addConstGeneric adds a number:
//
//	dst[i] = a[i] + c
//
// dst may be a.
func addConstGeneric(dst, a []float32, c float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + c
	}
}

// scaleGeneric multiplies by a number:
//
//	dst[i] = c·a[i]
//
// dst may be a.
func scaleGeneric(dst, a []float32, c float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = c * a[i]
	}
}

// mulGeneric multiplies two vectors element by element:
//
//	dst[i] = a[i]·b[i]
//
// dst may be a or b.
func mulGeneric(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// divSqrtGeneric divides by square roots:
//
//	dst[i] = a[i]/√b[i]
//
// dst may be a or b.
func divSqrtGeneric(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / float32(math.Sqrt(float64(b[i])))
	}
}

// reluGeneric replaces negative elements by 0. A NaN remains a NaN.
//
//	dst[i] = max(a[i], 0)
//
// dst may be a.
func reluGeneric(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], 0)
	}
}

// sumGeneric returns Σ a[i], added in float64.
func sumGeneric(a []float32) (total float64) {
	for _, x := range a {
		total += float64(x)
	}
	return total
}

// The search of package encode multiplies 8-bit integers. Its sums are exact, and its floats
// are rounded after each operation, so that all levels compute the same bits. Conversions to
// float32 keep the compiler from fusing a multiplication with an addition.

// productBytesGeneric computes a tile of a product. The level determines the number of rows
// and columns of a tile. For i < rows and j < columns:
//
//	dst[i·dstRow+j] = start[j] + Σ_k a[i·aRow+k]·b[(k/4·columns+j)·4+k%4]        for k < 4n
//
// n is even and positive. The bytes of b are signed, −63 to 63. The bytes of a are signed, −64
// to 64; at levels with an offset of 64 they are unsigned, 0 to 128. The sum of four products
// therefore fits in 16 bits.
//
// Speed limit: 4·n multiplications with additions per sum. All sums stay in registers.
func productBytesGeneric(dst *int32, dstRow int, a *int8, aRow int, b *int8, start *int32, n int) {
	const rows, columns = 2, 4
	left := unsafe.Slice(a, aRow+4*n)
	top, bottom := left[:4*n], left[aRow:]
	right := unsafe.Slice(b, 4*columns*n)
	// One 64-bit multiplication serves both rows. The rows' sums are 32 bits apart in s0 to s3.
	var s0, s1, s2, s3 int64
	for g := range n {
		x, y, d := (*[4]int8)(top[4*g:]), (*[4]int8)(bottom[4*g:]), (*[4 * columns]int8)(right[4*columns*g:])
		for t := range 4 {
			both := int64(y[t])<<32 + int64(x[t])
			s0 += both * int64(d[t])
			s1 += both * int64(d[4+t])
			s2 += both * int64(d[8+t])
			s3 += both * int64(d[12+t])
		}
	}
	out, starts := unsafe.Slice(dst, dstRow+columns), unsafe.Slice(start, columns)
	for j, s := range [columns]int64{s0, s1, s2, s3} {
		first := int32(s)
		out[j], out[dstRow+j] = starts[j]+first, starts[j]+int32((s-int64(first))>>32)
	}
}

// peakBytesGeneric measures the peak speed of productBytesGeneric: it computes a tile from
// registers, without loads, with n groups of 4 terms. n is even and positive.
func peakBytesGeneric(n int) {
	y := int64(peakResult.Load())
	x0, x1, x2, x3 := y, y, y, y // each holds two sums
	for range 4 * n {
		x0 += y * y
		x1 += y * y
		x2 += y * y
		x3 += y * y
	}
	peakResult.Store(uint32(x0 + x1 + x2 + x3))
}

// dotsBytesGeneric multiplies a residual with the atoms of a list. For i < len(index) and
// k = index[i]:
//
//	p[i] = float32(start[k] + Σ_j r[j]·d[k·len(r)+j])·scale[k]        for j < len(r)
//
// The bytes of r and d have the ranges of a and b in productBytesGeneric. len(r) is a positive
// multiple of [ByteWidth], and len(index) is a multiple of 4.
//
// Speed limit: each element of the list loads a row of d from the level-2 cache.
func dotsBytesGeneric(p []float32, index []int32, r, d []int8, start []int32, scale []float32) {
	p = p[:len(index)]
	for i, k := range index {
		row := d[int(k)*len(r):][:len(r)]
		sum := start[k]
		for j := 0; j+8 <= len(r); j += 8 {
			x, y := (*[8]int8)(r[j:]), (*[8]int8)(row[j:])
			sum += (int32(x[0])*int32(y[0]) + int32(x[1])*int32(y[1])) + (int32(x[2])*int32(y[2]) + int32(x[3])*int32(y[3])) +
				((int32(x[4])*int32(y[4]) + int32(x[5])*int32(y[5])) + (int32(x[6])*int32(y[6]) + int32(x[7])*int32(y[7])))
		}
		p[i] = float32(sum) * scale[k]
	}
}

// decodeBytesGeneric multiplies a sparse code with a matrix. For j < len(out):
//
//	out[j] = Σ_i z[i]·d[index[i]·len(out)+j]        for i < len(index)
//
// The elements of d are from −63 to 63, and the elements of z from −127 to 127. len(out) is a
// positive multiple of [ByteWidth], and len(index) is a multiple of 4.
//
// Speed limit: each element of the code loads a row of d from the level-2 cache.
func decodeBytesGeneric(out []int32, index []int32, z, d []int8) {
	clear(out)
	for ; len(index) >= 4; index, z = index[4:], z[4:] {
		d0, d1 := d[int(index[0])*len(out):][:len(out)], d[int(index[1])*len(out):][:len(out)]
		d2, d3 := d[int(index[2])*len(out):][:len(out)], d[int(index[3])*len(out):][:len(out)]
		z0, z1, z2, z3 := int32(z[0]), int32(z[1]), int32(z[2]), int32(z[3])
		for j := range out {
			out[j] += (z0*int32(d0[j]) + z1*int32(d1[j])) + (z2*int32(d2[j]) + z3*int32(d3[j]))
		}
	}
}

// residualGeneric subtracts a decoded code from a row:
//
//	r[j] = y[j] − unit·float32(o[j])        for j < len(r), a multiple of [Width]
//
// It returns the largest |r[j]|. The multiplication by unit, a power of two, is exact.
func residualGeneric(r, y []float32, o []int32, unit float32) (largest float32) {
	y, o = y[:len(r)], o[:len(r)]
	for j := range r {
		x := y[j] - float32(unit*float32(o[j]))
		r[j] = x
		largest = max(largest, x, -x)
	}
	return largest
}

// quantiseGeneric rounds to 8-bit integers:
//
//	dst[j] = round(scale·x[j]) + offset        for j < len(x), a multiple of [Width]
//
// The products, rounded to float32, are between −64 and 64. Ties round to even. An offset of
// 64 makes the bytes unsigned.
func quantiseGeneric(dst []int8, x []float32, scale float32, offset int8) {
	dst = dst[:len(x)]
	for j, v := range x {
		dst[j] = int8(int32(roundToEven(float32(scale*v)))) + offset
	}
}

// roundToEven rounds x to an integer, and ties to even. The magnitude of x is at most 2²².
func roundToEven(x float32) float32 {
	const unit = 3 << 22 // x+unit is between 2²³ and 2²⁴, where float32 numbers are integers
	return float32(x+unit) - unit
}

// candidatesGeneric finds the atoms that enter a code. For j < len(sums), a multiple of [Width]:
//
//	x = float32(sums[j])·scale[j]
//	if bit j%8 of members[j/8] is 0 and |max(x, floor)| > limit: append column+j to index, x to p
//
// It returns the number n of appended elements. index and p have [Width] elements more than
// sums; after the call their elements from n on are undefined. floor is 0 or −∞, and limit ≥ 0.
//
// Speed limit: loads of sums from the level-1 cache, and of scale from the level-2 cache.
func candidatesGeneric(index []int32, p []float32, sums []int32, scale []float32, members []byte, column int32, limit, floor float32) (n int) {
	scale = scale[:len(sums)]
	for j, sum := range sums {
		x := float32(sum) * scale[j]
		if y := max(x, floor); (y > limit || -y > limit) && members[j/8]>>(j%8)&1 == 0 {
			index[n], p[n] = column+int32(j), x
			n++
		}
	}
	return n
}

// advanceGeneric computes a step of FISTA for the atoms of a list. b holds the codes, z the
// extrapolated codes, and p the products of the residual with the atoms. For i < len(p):
//
//	u = z[i] + step·p[i]
//	x = max(sgn(u)·max(|u| − threshold, 0), floor)
//	if b[i] = 0 and enter = 0: x = 0
//	z[i] = x + momentum·(x − b[i])
//	b[i] = x
//	q = round(min(max(scale·(z[i]·v[i]), −127), 127))
//	if q ≠ 0: append index[i] to active, q to bytes
//
// It returns the number n of appended elements, and the largest |z[i]·v[i]|. Each operation is
// rounded to float32; the sign of a zero is undefined. active and bytes have [Width] elements
// more than p; after the call their elements from n on are undefined. len(p) is a multiple of
// [Width].
//
// Speed limit: five loads and two stores per element, in the level-1 cache.
func advanceGeneric(active []int32, bytes []int8, index []int32, p, z, b, v []float32, step, threshold, floor, momentum, scale float32, enter uint32) (n int, largest float32) {
	index, z, b, v = index[:len(p)], z[:len(p)], b[:len(p)], v[:len(p)]
	for i, c := range p {
		u := z[i] + float32(step*c)
		x := max(u-threshold, 0)
		if u < 0 {
			x = -max(-u-threshold, 0)
		}
		if x = max(x, floor); b[i] == 0 && enter == 0 {
			x = 0
		}
		next := x + float32(momentum*float32(x-b[i]))
		z[i], b[i] = next, x
		w := next * v[i]
		largest = max(largest, w, -w)
		if q := int8(int32(roundToEven(min(max(scale*w, -127), 127)))); q != 0 {
			active[n], bytes[n] = index[i], q
			n++
		}
	}
	return n, largest
}
