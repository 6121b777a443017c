package backend

import (
	"math"
	"testing"
)

// Known answers published with Random123 (kat_vectors, "philox4x32 10").
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     uint64
		want    [4]uint32
	}{
		{[4]uint32{}, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32}, math.MaxUint64,
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822,
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		var got [4]uint32
		got[0], got[1], got[2], got[3] = philox(c.counter[0], c.counter[1], c.counter[2], c.counter[3], c.key)
		if got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestInitialValues(t *testing.T) {
	const atoms, dim, words = 301, 50, 200
	d := randomDictionary(1, atoms, dim)
	checkUniform(t, "dictionary", d, 0.6/math.Sqrt(atoms+dim))
	var codes []float32
	for i := range words {
		code := make([]float32, atoms)
		InitialCode(code, 1, i)
		codes = append(codes, code...)
	}
	checkUniform(t, "codes", codes, 0.6/math.Sqrt(atoms+1))
	if other := randomDictionary(2, atoms, dim); other[0] == d[0] {
		t.Error("two seeds give the same dictionary")
	}
}

// checkUniform checks bounds, mean and mean square of n values, with a tolerance of five standard deviations.
// The mean of uniform values in ±s has a standard deviation of s/√(3n). The mean square is s²/3 with a standard
// deviation of s²·√(4/45n).
func checkUniform(t *testing.T, what string, x []float32, s float64) {
	t.Helper()
	var sum, squares float64
	for _, v := range x {
		if math.Abs(float64(v)) >= s {
			t.Errorf("%s: %v outside ±%v", what, v, s)
			return
		}
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(x))
	if limit := 5 * s / math.Sqrt(3*n); math.Abs(sum/n) > limit {
		t.Errorf("%s: mean %v, want 0 ± %v", what, sum/n, limit)
	}
	if limit := 5 * s * s * math.Sqrt(4.0/45/n); math.Abs(squares/n-s*s/3) > limit {
		t.Errorf("%s: mean square %v, want %v ± %v", what, squares/n, s*s/3, limit)
	}
}
