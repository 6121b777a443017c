// Package float32s decodes, checks and sums slices of float32, and converts float16:
//
//	float32s.Decode(x, b) // b is little-endian, of 4·len(x) bytes
//	if !float32s.Finite(x) {
//		return errors.New("a number is infinite or NaN")
//	}
package float32s

import (
	"encoding/binary"
	"io"
	"math"
	"slices"
	"unsafe"
)

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

func memory(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// Decode sets x to the little-endian numbers in b, which has 4·len(x) bytes.
func Decode(x []float32, b []byte) {
	if littleEndian {
		copy(memory(x), b)
		return
	}
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// Read sets x to the next little-endian numbers of r. It returns the errors of [io.ReadFull].
func Read(r io.Reader, x []float32) error {
	b := memory(x)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	if !littleEndian {
		Decode(x, b)
	}
	return nil
}

// Squares returns ‖x‖², summed in float64. Four sums hide the latency of additions.
func Squares(x []float32) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		a += float64(x[0]) * float64(x[0])
		b += float64(x[1]) * float64(x[1])
		c += float64(x[2]) * float64(x[2])
		d += float64(x[3]) * float64(x[3])
	}
	for _, v := range x {
		a += float64(v) * float64(v)
	}
	return (a + b) + (c + d)
}

// Finite reports whether no number of x is infinite or NaN. It tests four numbers at a time: it clears their sign
// bits and adds 1 to their exponents, which sets the sign bits of infinities and NaN only.
func Finite(x []float32) bool {
	const (
		magnitude = 0x7fffffff_7fffffff
		one       = 0x00800000_00800000
		signs     = 0x80000000_80000000
	)
	var a, b uint64
	rest := memory(x)
	for ; len(rest) >= 16; rest = rest[16:] {
		a |= binary.NativeEndian.Uint64(rest)&magnitude + one
		b |= binary.NativeEndian.Uint64(rest[8:])&magnitude + one
	}
	for _, x := range x[len(x)-len(rest)/4:] {
		a |= uint64(math.Float32bits(x))&magnitude + one
	}
	return (a|b)&signs == 0
}

// NotFinite returns the index of the first number of x that is infinite or NaN, or -1.
func NotFinite(x []float32) int {
	if Finite(x) {
		return -1
	}
	return slices.IndexFunc(x, func(v float32) bool { return v-v != 0 })
}

// Zero reports whether all numbers of x are 0 or −0.
func Zero(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 })
}
