package float32s

import (
	"math"
	"testing"
)

// float16Value returns the value of a finite float16 by its definition in IEEE 754.
func float16Value(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	exponent, fraction := int(h>>10&31), float64(h&1023)
	if exponent == 0 {
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// The test covers every float16, the midpoint between neighbours, and the float32 on both sides of it.
func TestFloat16(t *testing.T) {
	const infinity = 0x7c00
	check := func(x float32, want uint16) {
		t.Helper()
		for sign := range uint16(2) {
			if got := ToFloat16(x * (1 - 2*float32(sign))); got != want|sign<<15 {
				t.Errorf("float16 of %v is %#x, want %#x", x, got, want|sign<<15)
			}
		}
	}
	for h := uint16(0); h < infinity; h++ {
		x := float32(float16Value(h))
		if got, negative := FromFloat16(h), FromFloat16(h|0x8000); got != x || negative != -x {
			t.Errorf("%#x is %v and %v, want ±%v", h, got, negative, x)
		}
		check(x, h)
		next := 65536.0 // the successor of the largest float16, for rounding
		if h+1 < infinity {
			next = float16Value(h + 1)
		}
		middle := float32((float64(x) + next) / 2)
		check(middle, h+h&1)
		check(math.Nextafter32(middle, 0), h)
		check(math.Nextafter32(middle, math.MaxFloat32), h+1)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	check(inf, infinity)
	check(math.MaxFloat32, infinity)
	check(math.SmallestNonzeroFloat32, 0)
	if FromFloat16(infinity) != inf || FromFloat16(infinity|0x8000) != -inf {
		t.Error("∞ is another number")
	}
	for _, h := range []uint16{ToFloat16(nan), ToFloat16(-nan), ToFloat16(math.Float32frombits(0x7f800001)), 0x7c01, 0xffff} {
		if x := FromFloat16(h); x == x {
			t.Errorf("%#x is %v, want a NaN", h, x)
		}
	}
}
