package float32s

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"overcomplete/testonly"
)

func TestFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	edges := []float32{0, float32(math.Copysign(0, -1)), math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 1}
	others := []float32{inf, -inf, float32(math.NaN()), math.Float32frombits(0xffffffff), math.Float32frombits(0x7f800001)}
	for n := range 40 {
		x := make([]float32, n+1)[1:] // not aligned to 8 bytes
		for i := range x {
			x[i] = edges[i%len(edges)]
		}
		if !Finite(x) || NotFinite(x) != -1 {
			t.Errorf("Finite(%v) = false", x)
		}
		for i, was := range x {
			for _, x[i] = range others {
				if Finite(x) || NotFinite(x) != i {
					t.Errorf("Finite = true for %d numbers with %v at %d", n, x[i], i)
				}
			}
			x[i] = was
		}
	}
}

func TestDecode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	want := make([]uint32, 101)
	for i := range want {
		want[i] = rng.Uint32() // any bits, including NaN
	}
	b, err := binary.Append(nil, binary.LittleEndian, want)
	testonly.Must(t, err)
	defer func(was bool) { littleEndian = was }(littleEndian)
	for _, littleEndian = range []bool{littleEndian, false} {
		x, y := make([]float32, len(want)), make([]float32, len(want))
		Decode(x, b)
		testonly.Must(t, Read(bytes.NewReader(b), y))
		for i := range x {
			if got, read := math.Float32bits(x[i]), math.Float32bits(y[i]); got != want[i] || read != want[i] {
				t.Fatalf("number %d is %#x by Decode and %#x by Read, want %#x", i, got, read, want[i])
			}
		}
	}
	Decode(nil, nil)
}

func TestSquares(t *testing.T) {
	if got := Squares([]float32{3, -4, 1e20, 2e20}); math.Abs(got/5e40-1) > 1e-7 { // 5e40 overflows float32, and 1e20 is rounded
		t.Errorf("Squares = %v, want 5e40", got)
	}
	if got := Squares([]float32{1 << 13, 1}); got != 1<<26+1 { // the sum needs 27 bits
		t.Errorf("Squares = %v, want %v", got, 1<<26+1)
	}
	if got := Squares(nil); got != 0 {
		t.Errorf("Squares(nil) = %v", got)
	}
}
