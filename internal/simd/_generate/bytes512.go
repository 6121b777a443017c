package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// decodeBytesVNNI interleaves the bytes of four atoms, because VPDPBUSD adds the products of four adjacent bytes. It
// multiplies unsigned bytes d + 128 with z, and subtracts 128·Σz. A vector of four atoms takes four loads, eight
// shuffles and four multiplications. On processors with one shuffle per cycle, the shuffles bound the loop.
func (l level) decodeBytesVNNI() {
	l.text("decodeBytes")
	out, left, d := base("out"), length("out"), base("d")
	pitch, offset, zero := length("out"), l.constantBits(0x80808080), l.constant(0)
	const most = 5 // vectors of 64 columns, with four vectors of sums each
	l.rowInRegisters(left, most, func(vectors int) {
		loop, done := fmt.Sprint("four", vectors), fmt.Sprint("done", vectors)
		sums, correction := make([][4]VecVirtual, vectors), l.vector()
		VMOVAPS(zero, correction)
		for i := range sums {
			for j := range sums[i] {
				sums[i][j] = l.vector()
				VMOVAPS(zero, sums[i][j])
			}
		}
		index, n, zp := base("index"), length("index"), base("z")
		SHRQ(U8(2), n)
		JZ(LabelRef(done))
		Label(loop)
		var rows [4]Register
		for i := range rows {
			rows[i] = GP64()
			MOVLQSX(at(index, 4*i), rows[i])
			IMULQ(pitch, rows[i])
			ADDQ(d, rows[i])
		}
		z := l.vector()
		VPBROADCASTD(at(zp, 0), z)
		VPDPBUSD(z, offset, correction)
		for i := range sums {
			var x [4]VecVirtual
			for j := range x {
				x[j] = l.vector()
				VPXORD(at(rows[j], 64*i), offset, x[j])
			}
			y0, y1 := l.vector(), l.vector()
			VPUNPCKLBW(x[1], x[0], y0)
			VPUNPCKHBW(x[1], x[0], x[0])
			VPUNPCKLBW(x[3], x[2], y1)
			VPUNPCKHBW(x[3], x[2], x[2])
			VPUNPCKLWD(y1, y0, x[1])
			VPUNPCKHWD(y1, y0, y0)
			VPUNPCKLWD(x[2], x[0], x[3])
			VPUNPCKHWD(x[2], x[0], x[0])
			for j, four := range []VecVirtual{x[1], y0, x[3], x[0]} {
				VPDPBUSD(z, four, sums[i][j])
			}
		}
		ADDQ(U8(16), index)
		ADDQ(U8(4), zp)
		DECQ(n)
		JNZ(LabelRef(loop))
		Label(done)
		for i := range sums {
			for j, sum := range sums[i] {
				VPSUBD(correction, sum, sum)
				for lane := range 4 {
					VEXTRACTI32X4(U8(lane), sum, at(out, 4*(64*i+16*lane+4*j)))
				}
			}
		}
		ADDQ(U32(4*64*vectors), out)
		ADDQ(U32(64*vectors), d)
	})
	finish()
}
