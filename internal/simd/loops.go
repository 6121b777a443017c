package simd

import "math"

// The functions in this file are plain Go. Only Huber's loss needs them. They process all i < len(dst). The slice a
// is at least as long as dst, and may be dst.

// Abs computes dst[i] = |a[i]|.
func Abs(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(math.Float32bits(a[i]) &^ (1 << 31))
	}
}

// Sign computes dst[i] = −1, 0 or 1, the sign of a[i].
func Sign(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		var s float32
		if a[i] > 0 {
			s = 1
		} else if a[i] < 0 {
			s = -1
		}
		dst[i] = s
	}
}
