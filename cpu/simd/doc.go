// Package simd has the loops that training and encoding on a CPU spend their time
// in: products of matrices, products of sparse codes, and what is done to their
// sums. Each is written in plain Go, which is the reference, and in assembly for
// AVX2, AVX-512 and NEON.
package simd
