//go:build !noasm && (amd64 || arm64)

package simd

// withRest returns a kernel for any number of elements. It applies vectors to whole
// vectors of the given number of floats, and the generic kernel to the remaining elements.
func withRest[T float32 | uint16](vectors averaging[T], floats int, generic averaging[T]) averaging[T] {
	return func(index []int32, value, p []float32, s, q []T, column int32, gradient, square, threshold, rate, floor float32) int {
		whole := len(p) / floats * floats
		n := vectors(index, value, p[:whole], s, q, column, gradient, square, threshold, rate, floor)
		return n + generic(index[n:], value[n:], p[whole:], s[whole:], q[whole:], column+int32(whole), gradient, square, threshold, rate, floor)
	}
}
