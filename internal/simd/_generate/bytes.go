package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The kernels of the search on 8-bit integers, with AVX2. VPMADDUBSW multiplies unsigned with signed bytes and adds
// pairs of products in 16 bits.

// byteRows is the number of rows of productBytes's tile, whose two vectors of columns per row are in registers.
const byteRows = 4

// productBytes adds two groups of 4 terms in 16 bits before it widens them to 32: five instructions for 64
// multiplications; three of them use the two multipliers.
func (l level) productBytes() {
	l.text("productBytes")
	ones, start := l.constantBits(0x00010001), pointer("start")
	var sums [byteRows][2]VecVirtual
	for half := range 2 {
		for i := range byteRows {
			sums[i][half] = l.vector()
			VMOVDQU(at(start, 32*half), sums[i][half])
		}
	}
	aRow := pointer("aRow") // bytes
	rows := []Register{pointer("a"), GP64()}
	LEAQ(Mem{Base: rows[0], Index: aRow, Scale: 2}, rows[1])
	b, n := pointer("b"), pointer("n")
	SHRQ(U8(1), n)
	Label("loop")
	for half := range 2 {
		d0, d1 := l.vector(), l.vector()
		VMOVDQU(at(b, 32*half), d0)
		VMOVDQU(at(b, 64+32*half), d1)
		for i := range byteRows {
			x, y := l.vector(), l.vector()
			m := Mem{Base: rows[i/2]}
			if i%2 > 0 {
				m.Index, m.Scale = aRow, 1
			}
			VPBROADCASTD(m, x)
			VPBROADCASTD(m.Offset(4), y)
			l.multiplyBytes(d0, d1, x, y, ones, sums[i][half])
		}
	}
	ADDQ(U8(8), rows[0])
	ADDQ(U8(8), rows[1])
	SUBQ(I8(-128), b)
	DECQ(n)
	JNZ(LabelRef("loop"))
	dst, dstRow := pointer("dst"), bytes("dstRow")
	for i := range byteRows {
		VMOVDQU(sums[i][0], at(dst, 0))
		VMOVDQU(sums[i][1], at(dst, 32))
		ADDQ(dstRow, dst)
	}
	VZEROUPPER()
	RET()
}

// multiplyBytes adds the products of the signed bytes d0, d1 and the unsigned bytes x, y, 4 at a time, to sum. It
// overwrites x and y.
func (l level) multiplyBytes(d0, d1 Op, x, y, ones, sum VecVirtual) {
	VPMADDUBSW(d0, x, x)
	VPMADDUBSW(d1, y, y)
	VPADDW(y, x, x)
	VPMADDWD(ones, x, x)
	VPADDD(x, sum, sum)
}

func (l level) peakBytes() {
	l.text("peakBytes")
	n, ones := pointer("n"), l.constantBits(0x00010001)
	d := l.vector()
	l.clear(d)
	var sums [2 * byteRows]VecVirtual
	for i := range sums {
		sums[i] = l.vector()
		l.clear(sums[i])
	}
	SHRQ(U8(1), n)
	Label("loop")
	for _, sum := range sums {
		x, y := l.vector(), l.vector()
		VPMADDUBSW(d, d, x)
		VPMADDUBSW(d, d, y)
		VPADDW(y, x, x)
		VPMADDWD(ones, x, x)
		VPADDD(x, sum, sum)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// dotsBytes multiplies four atoms at a time, so that a load of the residual serves four.
func (l level) dotsBytes() {
	l.text("dotsBytes")
	p, index, n, r, d := base("p"), base("index"), length("index"), base("r"), base("d")
	pitch, start, scale := length("r"), base("start"), base("scale")
	ones := l.constantBits(0x00010001)
	SHRQ(U8(2), n)
	JZ(LabelRef("done"))
	Label("four")
	var atoms [4]GPVirtual
	var rows [4]Register
	var sums [4]VecVirtual
	for i := range 4 {
		atoms[i], rows[i], sums[i] = GP64(), GP64(), l.vector()
		MOVLQSX(at(index, 4*i), rows[i])
		IMULQ(pitch, rows[i])
		ADDQ(d, rows[i])
		l.clear(sums[i])
	}
	offset := GP64()
	XORQ(offset, offset)
	Label("bytes")
	r0, r1 := l.vector(), l.vector()
	VMOVDQU(Mem{Base: r, Index: offset, Scale: 1}, r0)
	VMOVDQU(Mem{Base: r, Index: offset, Scale: 1, Disp: 32}, r1)
	for i := range 4 {
		x, y := l.vector(), l.vector()
		VPMADDUBSW(Mem{Base: rows[i], Index: offset, Scale: 1}, r0, x)
		VPMADDUBSW(Mem{Base: rows[i], Index: offset, Scale: 1, Disp: 32}, r1, y)
		VPADDW(y, x, x)
		VPMADDWD(ones, x, x)
		VPADDD(x, sums[i], sums[i])
	}
	ADDQ(U8(64), offset)
	CMPQ(offset, pitch)
	JL(LabelRef("bytes"))
	VPHADDD(sums[1], sums[0], sums[0])
	VPHADDD(sums[3], sums[2], sums[2])
	VPHADDD(sums[2], sums[0], sums[0])
	sum, high := sums[0].AsX(), XMM()
	VEXTRACTI128(U8(1), sums[0], high)
	VPADDD(high, sum, sum)
	starts, scales := XMM(), XMM()
	for i := range 4 {
		MOVLQSX(at(index, 4*i), atoms[i])
		if i == 0 {
			VMOVD(floats(start, atoms[i]), starts)
			VMOVD(floats(scale, atoms[i]), scales)
		} else {
			VPINSRD(U8(i), floats(start, atoms[i]), starts, starts)
			VPINSRD(U8(i), floats(scale, atoms[i]), scales, scales)
		}
	}
	VPADDD(starts, sum, sum)
	VCVTDQ2PS(sum, sum)
	VMULPS(scales, sum, sum)
	VMOVUPS(sum, at(p, 0))
	ADDQ(U8(16), p)
	ADDQ(U8(16), index)
	DECQ(n)
	JNZ(LabelRef("four"))
	Label("done")
	VZEROUPPER()
	RET()
}

// decodeBytes adds pairs of atoms in 16 bits, for up to 6 vectors of columns in registers, and widens the sums to 32
// bits before Σ|z| exceeds 520: 63·520 < 2¹⁵.
func (l level) decodeBytes() {
	l.text("decodeBytes")
	out, left, d := base("out"), length("out"), base("d")
	pitch := length("out")
	const most = 6
	Label("columns")
	for v := most; v > 0; v -= 2 {
		CMPQ(left, U32(32*v))
		if v == most {
			JGE(LabelRef(fmt.Sprint("vectors", v)))
		} else {
			JEQ(LabelRef(fmt.Sprint("vectors", v)))
		}
	}
	VZEROUPPER()
	RET()
	for v := most; v > 0; v -= 2 {
		name := func(s string) string { return fmt.Sprint(s, v) }
		Label(name("vectors"))
		zero := l.vector()
		l.clear(zero)
		for i := range 4 * v {
			VMOVDQU(zero, at(out, 32*i))
		}
		sums := make([]VecVirtual, 2*v)
		for i := range sums {
			sums[i] = l.vector()
			l.clear(sums[i])
		}
		widen := func() {
			for i := range v {
				for j, sum := range []VecVirtual{sums[2*i], sums[2*i+1]} {
					for half := range 2 { // the unpacked bytes of a half of 16 are 8 and 8
						wide, m := l.vector(), at(out, 4*(32*i+8*j+16*half))
						if half == 0 {
							VPMOVSXWD(sum.AsX(), wide)
						} else {
							VEXTRACTI128(U8(1), sum, wide.AsX())
							VPMOVSXWD(wide.AsX(), wide)
						}
						VPADDD(m, wide, wide)
						VMOVDQU(wide, m)
					}
				}
			}
		}
		index, n, z, total := base("index"), length("index"), base("z"), GP32()
		XORL(total, total)
		SHRQ(U8(2), n)
		JZ(LabelRef(name("done")))
		Label(name("four"))
		four, none, size := XMM(), XMM(), GP32()
		VMOVD(at(z, 0), four)
		VPABSB(four, four)
		VPXOR(none, none, none)
		VPSADBW(none, four, four)
		VMOVD(four, size)
		ADDL(size, total)
		CMPL(total, U32(520))
		JLE(LabelRef(name("add")))
		widen()
		for _, sum := range sums {
			l.clear(sum)
		}
		MOVL(size, total)
		Label(name("add"))
		for pair := range 2 {
			rows := [2]Register{GP64(), GP64()}
			for i, row := range rows {
				MOVLQSX(at(index, 8*pair+4*i), row)
				IMULQ(pitch, row)
				ADDQ(d, row)
			}
			sign, magnitude := l.vector(), l.vector()
			VPBROADCASTW(at(z, 2*pair), sign)
			VPABSB(sign, magnitude)
			for i := range v {
				low, high := l.vector(), l.vector()
				VMOVDQU(at(rows[0], 32*i), high)
				VPUNPCKLBW(at(rows[1], 32*i), high, low)
				VPUNPCKHBW(at(rows[1], 32*i), high, high)
				for j, x := range []VecVirtual{low, high} {
					VPSIGNB(sign, x, x)
					VPMADDUBSW(x, magnitude, x)
					VPADDW(x, sums[2*i+j], sums[2*i+j])
				}
			}
		}
		ADDQ(U8(16), index)
		ADDQ(U8(4), z)
		DECQ(n)
		JNZ(LabelRef(name("four")))
		Label(name("done"))
		widen()
		ADDQ(U32(4*32*v), out)
		ADDQ(U32(32*v), d)
		SUBQ(U32(32*v), left)
		JMP(LabelRef("columns"))
	}
}

// each emits body for each vector of 8 of n elements, a multiple of 8, with the offset in elements.
func (l level) each(n Register, body func(offset Register)) {
	offset := GP64()
	XORQ(offset, offset)
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("loop")
	body(offset)
	ADDQ(U8(8), offset)
	CMPQ(offset, n)
	JL(LabelRef("loop"))
	Label("done")
}

// storeLargest returns the largest element of a vector.
func (l level) storeLargest(v VecVirtual, result string) {
	high, x := XMM(), v.AsX()
	VEXTRACTF128(U8(1), v, high)
	VMAXPS(high, x, x)
	VPERMILPS(U8(0x4e), x, high)
	VMAXPS(high, x, x)
	VPERMILPS(U8(0xb1), x, high)
	VMAXPS(high, x, x)
	Store(x, Return(result))
	VZEROUPPER()
	RET()
}

func (l level) residual() {
	l.text("residual")
	r, n, y, o := base("r"), length("r"), base("y"), base("o")
	unit, magnitude, largest := l.broadcast("unit"), l.constantBits(0x7fffffff), l.constant(0)
	l.each(n, func(offset Register) {
		x, row := l.vector(), l.vector()
		VCVTDQ2PS(floats(o, offset), x)
		VMULPS(unit, x, x)
		VMOVUPS(floats(y, offset), row)
		VSUBPS(x, row, row)
		VMOVUPS(row, floats(r, offset))
		VANDPS(magnitude, row, row)
		VMAXPS(row, largest, largest)
	})
	l.storeLargest(largest, "largest")
}

func (l level) quantise() {
	l.text("quantise")
	dst, x, n, scale, add := base("dst"), base("x"), length("x"), l.broadcast("scale"), XMM()
	VPBROADCASTB(parameter("offset"), add)
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("loop")
	low, high := l.vector(), l.vector()
	for i, v := range []VecVirtual{low, high} {
		VMULPS(at(x, 32*i), scale, v)
		VCVTPS2DQ(v, v)
	}
	VPACKSSDW(high, low, low) // exchanges the middle quarters
	VPERMQ(U8(0xd8), low, low)
	VEXTRACTI128(U8(1), low, high.AsX())
	VPACKSSWB(high.AsX(), low.AsX(), low.AsX())
	VPADDB(add, low.AsX(), low.AsX())
	VMOVDQU(low.AsX(), at(dst, 0))
	ADDQ(U8(16), dst)
	ADDQ(U8(64), x)
	SUBQ(U8(16), n)
	JNZ(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}

// candidates skips 8 atoms if none enters, which is the rule.
func (l level) candidates() {
	l.text("candidates")
	index, p, sums, n := base("index"), base("p"), base("sums"), length("sums")
	scale, members, count := base("scale"), base("members"), GP64()
	XORQ(count, count)
	columns, limit, floor, magnitude := l.broadcast("column"), l.broadcast("limit"), l.broadcast("floor"), l.constantBits(0x7fffffff)
	VPADDD(global("iota", 16, func(i int) Constant { return U32(i) }), columns, columns)
	step := l.constantBits(8)
	l.each(n, func(offset Register) {
		x, y, found, known := l.vector(), l.vector(), GP32(), GP32()
		VCVTDQ2PS(floats(sums, offset), x)
		VMULPS(floats(scale, offset), x, x)
		VMAXPS(floor, x, y)
		VANDPS(magnitude, y, y)
		VCMPPS(U8(0x1e), limit, y, y) // y > limit
		VMOVMSKPS(y, found)
		MOVBLZX(at(members, 0), known)
		NOTL(known)
		INCQ(members)
		ANDL(known, found)
		JZ(LabelRef("next"))
		l.appendFound(index, p, count, columns, x, found)
		Label("next")
		VPADDD(step, columns, columns)
	})
	Store(count, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func (l level) advance() {
	l.text("advance")
	active, bytes, index := base("active"), base("bytes"), base("index")
	pp, n, zp, bp, vp := base("p"), length("p"), base("z"), base("b"), base("v")
	step, threshold, momentum, scale := l.broadcast("step"), l.broadcast("threshold"), l.broadcast("momentum"), l.broadcast("scale")
	enter, largest, count := l.broadcast("enter"), l.constant(0), GP64()
	XORQ(count, count)
	l.each(n, func(offset Register) {
		u, x, b, t := l.vector(), l.vector(), l.vector(), l.vector()
		magnitude, zero := l.constantBits(0x7fffffff), l.constant(0)
		VMULPS(floats(pp, offset), step, u)
		VADDPS(floats(zp, offset), u, u)
		VANDPS(magnitude, u, x)
		VSUBPS(threshold, x, x)
		VMAXPS(x, zero, x)
		VANDNPS(u, magnitude, u)
		VORPS(u, x, x)
		VMAXPS(l.broadcast("floor"), x, x)
		VMOVUPS(floats(bp, offset), b)
		VCMPPS(U8(4), zero, b, t) // b ≠ 0
		VORPS(enter, t, t)
		VANDPS(t, x, x)
		VMOVUPS(x, floats(bp, offset))
		VSUBPS(b, x, b)
		VMULPS(momentum, b, b)
		VADDPS(b, x, x)
		VMOVUPS(x, floats(zp, offset))
		VMULPS(floats(vp, offset), x, x)
		VANDPS(magnitude, x, t)
		VMAXPS(t, largest, largest)
		VMULPS(scale, x, x)
		VMAXPS(l.constant(-127), x, x)
		VMINPS(l.constant(127), x, x)
		VCVTPS2DQ(x, x)
		found, order, orders := GP32(), l.vector(), GP64()
		VPCMPEQD(zero, x, t)
		VMOVMSKPS(t, found)
		XORL(U8(0xff), found)
		JZ(LabelRef("next"))
		LEAQ(global("compressed", 256, compressed), orders)
		VPMOVZXBD(Mem{Base: orders, Index: found.As64(), Scale: 8}, order)
		VPERMD(x, order, x)
		VPERMD(floats(index, offset), order, order)
		VMOVDQU(order, floats(active, count))
		VEXTRACTI128(U8(1), x, t.AsX())
		VPACKSSDW(t.AsX(), x.AsX(), x.AsX())
		VPACKSSWB(x.AsX(), x.AsX(), x.AsX())
		VMOVQ(x.AsX(), Mem{Base: bytes, Index: count, Scale: 1})
		POPCNTL(found, found)
		ADDQ(found.As64(), count)
		Label("next")
	})
	Store(count, Return("n"))
	l.storeLargest(largest, "largest")
}
