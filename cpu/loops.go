package cpu

import "math"

// The loops that step bodies are made of. Each doc comment is its loop, over
// the length of dst; dst may be one of the arguments.

// dst[i] = c·a[i] + d·b[i]
func combine(dst []float32, c float32, a []float32, d float32, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = c*a[i] + d*b[i]
	}
}

// dst[i] = a[i] + c
func addConst(dst, a []float32, c float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + c
	}
}

// dst[i] = c − a[i]
func subFrom(dst, a []float32, c float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = c - a[i]
	}
}

// dst[i] = a[i]·b[i]
func mul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// dst[i] = c·a[i]
func scale(dst, a []float32, c float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = c * a[i]
	}
}

// dst[i] = a[i]/b[i]
func div(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// dst[i] = c/a[i]
func divInto(dst, a []float32, c float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = c / a[i]
	}
}

// dst[i] = √a[i]
func sqrt(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = float32(math.Sqrt(float64(a[i])))
	}
}

// dst[i] = |a[i]|
func abs(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(math.Float32bits(a[i]) &^ (1 << 31))
	}
}

// dst[i] = −1, 0 or 1, the sign of a[i]
func sign(dst, a []float32) {
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

// dst[i] = 1 if a[i] ≥ 0, else 0
func notNegative(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		var one float32
		if a[i] >= 0 {
			one = 1
		}
		dst[i] = one
	}
}

// dst[i] = max(a[i], 0)
func relu(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], 0)
	}
}

// u = |s[i]| − threshold
// dst[i] = 0 if u ≤ 0, else −sgn(s[i])·rate·u/√(q[i]+ε)
func shrink(dst, s, q []float32, threshold, rate, epsilon float32) {
	s, q = s[:len(dst)], q[:len(dst)]
	for i := range dst {
		var a float32
		// One comparison a side: most codes fail both.
		if u := -s[i] - threshold; u > 0 {
			a = rate * u / float32(math.Sqrt(float64(q[i]+epsilon)))
		} else if u := s[i] - threshold; u > 0 {
			a = -rate * u / float32(math.Sqrt(float64(q[i]+epsilon)))
		}
		dst[i] = a
	}
}

// Σ a[i]
func sum(a []float32) (total float64) {
	for _, x := range a {
		total += float64(x)
	}
	return total
}
