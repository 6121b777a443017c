package simd

import "math"

// Operations that only losses other than the squared one need, in plain Go. Each applies to all i < len(dst);
// other slices are at least as long, and dst may be one of them.

// SubFrom computes dst[i] = c − a[i].
func SubFrom(dst, a []float32, c float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = c - a[i]
	}
}

// Div computes dst[i] = a[i]/b[i].
func Div(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// DivInto computes dst[i] = c/a[i].
func DivInto(dst, a []float32, c float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = c / a[i]
	}
}

// Sqrt computes dst[i] = √a[i].
func Sqrt(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = float32(math.Sqrt(float64(a[i])))
	}
}

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

// NotNegative computes dst[i] = 1 if a[i] ≥ 0, else 0.
func NotNegative(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		var one float32
		if a[i] >= 0 {
			one = 1
		}
		dst[i] = one
	}
}
