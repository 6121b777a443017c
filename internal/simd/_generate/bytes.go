package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// This file generates the kernels of the search, with AVX2 or AVX-512. Kernels that multiply bytes use AVX2, AVX-VNNI,
// or AVX-512 with VNNI. VPDPBUSD of VNNI multiplies unsigned by signed bytes and adds four products in 32 bits.
// VPMADDUBSW of AVX2 adds two products in 16 bits.

// multiplyFour multiplies the signed bytes d by the unsigned bytes x with VNNI, and adds groups of 4 products to sum.
func (l level) multiplyFour(d, x, sum VecVirtual) {
	if l.wide {
		VPDPBUSD(d, x, sum)
		return
	}
	operands := []Op{d, x, sum}
	Instruction(&ir.Instruction{Opcode: vex, Operands: operands, Inputs: operands, Outputs: operands[2:], ISA: []string{"AVXVNNI"}})
}

const vex = "VPDPBUSD of AVX-VNNI"

// encodeVEX writes VPDPBUSD of AVX-VNNI as bytes, because the assembler knows only the encoding for AVX-512.
func encodeVEX(i *ir.Instruction) error {
	if i.Opcode == vex {
		r := func(operand int) uint32 { return uint32(i.Operands[operand].(Physical).PhysicalIndex()) }
		d, x, sum := r(0), r(1), r(2)
		i.Opcode = "BYTE $0xc4; LONG"
		i.Operands = []Op{U32(0xc05005e2 ^ sum>>3<<7 ^ d>>3<<5 | (15-x)<<11 | sum&7<<27 | d&7<<24)}
	}
	return nil
}

// productBytes keeps two vectors of sums per row in registers. With AVX2, it adds two groups of 4 terms in 16 bits
// and then widens the sums to 32. This takes five instructions for 64 multiplications; three of the five use the two
// multipliers. With VNNI, VPDPBUSD limits the speed. With AVX-512, the loop has 83 instructions: 48 VPDPBUSD and
// 28 loads. With AVX-VNNI, it has 45 instructions: 24 VPDPBUSD and 16 loads.
func (l level) productBytes() {
	l.text("productBytes")
	ones, start, size := l.onesOfPairs(), pointer("start"), 4*l.floats
	sums := make([][2]VecVirtual, l.byteRows)
	for i := range sums {
		for half := range 2 {
			sums[i][half] = l.vector()
			VMOVUPS(at(start, size*half), sums[i][half])
		}
	}
	rows, registers := tileRows(pointer("a"), pointer("aRow"), l.byteRows)
	b, n := pointer("b"), pointer("n")
	SHRQ(U8(1), n)
	Label("loop")
	for part := range 2 {
		d0, d1, x, y := l.vector(), l.vector(), l.vector(), l.vector()
		if l.vnni { // one group of terms for both vectors of columns
			VMOVUPS(at(b, 2*size*part), d0)
			VMOVUPS(at(b, 2*size*part+size), d1)
			for i, row := range rows {
				VPBROADCASTD(row.Offset(4*part), x)
				l.multiplyFour(d0, x, sums[i][0])
				l.multiplyFour(d1, x, sums[i][1])
			}
			continue
		}
		VMOVUPS(at(b, size*part), d0) // both groups of terms for one vector
		VMOVUPS(at(b, size*part+2*size), d1)
		for i, row := range rows {
			VPBROADCASTD(row, x)
			VPBROADCASTD(row.Offset(4), y)
			l.multiplyPairs(d0, d1, x, y, ones, sums[i][part])
		}
	}
	for _, r := range registers {
		ADDQ(U8(8), r)
	}
	ADDQ(U32(4*size), b)
	DECQ(n)
	JNZ(LabelRef("loop"))
	dst, dstRow := pointer("dst"), bytes("dstRow")
	for _, pair := range sums {
		VMOVUPS(pair[0], at(dst, 0))
		VMOVUPS(pair[1], at(dst, size))
		ADDQ(dstRow, dst)
	}
	finish()
}

// onesOfPairs returns 16-bit ones for AVX2, and nil for VNNI. A multiplication by the ones adds pairs of 16 bits.
func (l level) onesOfPairs() (ones VecVirtual) {
	if !l.vnni {
		ones = l.constantBits(0x00010001)
	}
	return ones
}

// multiplyPairs multiplies the signed bytes d0, d1 by the unsigned bytes x, y, and adds groups of 4 products to sum.
func (l level) multiplyPairs(d0, d1 Op, x, y, ones, sum VecVirtual) {
	p, q := l.vector(), l.vector()
	VPMADDUBSW(d0, x, p)
	VPMADDUBSW(d1, y, q)
	VPADDW(q, p, p)
	VPMADDWD(ones, p, p)
	VPADDD(p, sum, sum)
}

func (l level) peakBytes() {
	l.text("peakBytes")
	n, ones, d, sums := pointer("n"), l.onesOfPairs(), l.constant(0), l.zeros(2*l.byteRows)
	if !l.vnni {
		SHRQ(U8(1), n)
	}
	Label("loop")
	for _, sum := range sums {
		if l.vnni {
			l.multiplyFour(d, d, sum)
		} else {
			l.multiplyPairs(d, d, d, d, ones, sum)
		}
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	finish()
}

// dotsBytes multiplies four atoms at a time. They share each load of the residual. With AVX-512, 64 bytes of four
// atoms take five loads and four multiplications, so that the level-2 cache limits the speed.
func (l level) dotsBytes() {
	l.text("dotsBytes")
	p, index, n, r, d := base("p"), base("index"), length("index"), base("r"), base("d")
	pitch, start, scale := length("r"), base("start"), base("scale")
	ones := l.onesOfPairs()
	SHRQ(U8(2), n)
	JZ(LabelRef("done"))
	Label("four")
	var atoms [4]GPVirtual
	var rows [4]Register
	var sums [8]VecVirtual // AVX-VNNI needs 8 to hide the latency of its instruction; the other levels use 4
	for i := range 4 {
		atoms[i], rows[i] = GP64(), GP64()
		MOVLQSX(at(index, 4*i), rows[i])
		IMULQ(pitch, rows[i])
		ADDQ(d, rows[i])
		sums[i], sums[4+i] = l.vector(), l.vector()
		l.clear(sums[i])
		if l.vnni && !l.wide {
			l.clear(sums[4+i])
		}
	}
	offset := GP64()
	XORQ(offset, offset)
	Label("bytes")
	r0, r1 := l.vector(), l.vector()
	VMOVUPS(Mem{Base: r, Index: offset, Scale: 1}, r0)
	if !l.wide {
		VMOVUPS(Mem{Base: r, Index: offset, Scale: 1, Disp: 32}, r1)
	}
	for i := range 4 {
		row := Mem{Base: rows[i], Index: offset, Scale: 1}
		switch {
		case l.wide:
			VPDPBUSD(row, r0, sums[i])
		case l.vnni:
			x, y := l.vector(), l.vector()
			VMOVUPS(row, x)
			VMOVUPS(row.Offset(32), y)
			l.multiplyFour(x, r0, sums[i])
			l.multiplyFour(y, r1, sums[4+i])
		default:
			l.multiplyPairs(row, row.Offset(32), r0, r1, ones, sums[i])
		}
	}
	ADDQ(U8(64), offset)
	CMPQ(offset, pitch)
	JL(LabelRef("bytes"))
	for i, sum := range sums[:4] {
		if l.wide {
			VEXTRACTI64X4(U8(1), sum, sums[4+i].AsY())
		}
		if l.vnni {
			VPADDD(sums[4+i].AsY(), sum.AsY(), sum.AsY())
		}
	}
	add := func(x, y VecVirtual) { VPHADDD(y.AsY(), x.AsY(), x.AsY()) }
	add(sums[0], sums[1])
	add(sums[2], sums[3])
	add(sums[0], sums[2])
	sum, high := sums[0].AsX(), XMM()
	VEXTRACTI128(U8(1), sums[0].AsY(), high)
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
	finish()
}

// decodeBytes adds pairs of atoms in 16 bits, with up to 6 vectors of columns in registers. It widens the sums to 32
// bits before Σ|z| exceeds 520, because 63·520 < 2¹⁵.
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
	finish()
	for v := most; v > 0; v -= 2 {
		name := func(s string) string { return fmt.Sprint(s, v) }
		Label(name("vectors"))
		zero := l.constant(0)
		for i := range 4 * v {
			VMOVDQU(zero, at(out, 32*i))
		}
		sums := l.zeros(2 * v)
		widen := func() {
			for i := range v {
				for j, sum := range []VecVirtual{sums[2*i], sums[2*i+1]} {
					for half := range 2 { // unpacking splits the 16 bytes of a half into 8 and 8
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

// each emits body for every vector of n elements. n is a multiple of a vector's length, and offset counts elements.
// Instructions limit the speed more than loads do. Per AVX-512 vector, residual has 10, candidates 19 and advance 34.
func (l level) each(n Register, body func(offset Register)) {
	offset := GP64()
	XORQ(offset, offset)
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("loop")
	body(offset)
	ADDQ(U8(l.floats), offset)
	CMPQ(offset, n)
	JL(LabelRef("loop"))
	Label("done")
}

// storeLargest emits instructions that store the largest element of v in the named result, and return.
func (l level) storeLargest(v VecVirtual, result string) {
	if l.wide {
		high := YMM()
		VEXTRACTF64X4(U8(1), v, high)
		VMAXPS(high, v.AsY(), v.AsY())
	}
	high, x := XMM(), v.AsX()
	VEXTRACTF128(U8(1), v.AsY(), high)
	VMAXPS(high, x, x)
	VPERMILPS(U8(0x4e), x, high)
	VMAXPS(high, x, x)
	VPERMILPS(U8(0xb1), x, high)
	VMAXPS(high, x, x)
	Store(x, Return(result))
	finish()
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
		l.and(magnitude, row, row)
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
	round := func(disp int, v VecVirtual) {
		VMULPS(at(x, disp), scale, v)
		VCVTPS2DQ(v, v)
	}
	round(0, low)
	if l.wide {
		VPMOVDB(low, low.AsX())
	} else {
		round(32, high)
		VPACKSSDW(high, low, low) // exchanges the middle quarters
		VPERMQ(U8(0xd8), low, low)
		VEXTRACTI128(U8(1), low, high.AsX())
		VPACKSSWB(high.AsX(), low.AsX(), low.AsX())
	}
	VPADDB(add, low.AsX(), low.AsX())
	VMOVDQU(low.AsX(), at(dst, 0))
	ADDQ(U8(16), dst)
	ADDQ(U8(64), x)
	SUBQ(U8(16), n)
	JNZ(LabelRef("loop"))
	Label("done")
	finish()
}

// candidates with AVX2 skips a vector of atoms if none enters. With AVX-512 a mispredicted branch takes longer than two
// compressions.
func (l level) candidates() {
	l.text("candidates")
	index, p, sums, n := base("index"), base("p"), base("sums"), length("sums")
	scale, members, count := base("scale"), base("members"), GP64()
	XORQ(count, count)
	columns, limit, floor, magnitude := l.broadcast("column"), l.broadcast("limit"), l.broadcast("floor"), l.constantBits(0x7fffffff)
	VPADDD(global("iota", 16, func(i int) Constant { return U32(i) }), columns, columns)
	step := l.constantBits(uint32(l.floats))
	l.each(n, func(offset Register) {
		x, y := l.vector(), l.vector()
		VCVTDQ2PS(floats(sums, offset), x)
		VMULPS(floats(scale, offset), x, x)
		VMAXPS(floor, x, y)
		l.and(magnitude, y, y)
		if l.wide {
			mask := K()
			KMOVW(at(members, 0), mask)
			KNOTW(mask, mask)
			VCMPPS(U8(0x1e), limit, y, mask, mask) // y > limit
			l.appendMasked(index, p, count, columns, x, mask)
		} else {
			found, known := GP32(), GP32()
			VCMPPS(U8(0x1e), limit, y, y) // y > limit
			VMOVMSKPS(y, found)
			MOVBLZX(at(members, 0), known)
			NOTL(known)
			ANDL(known, found)
			JZ(LabelRef("next"))
			l.appendFound(index, p, count, columns, x, found)
		}
		Label("next")
		ADDQ(U8(l.floats/8), members)
		VPADDD(step, columns, columns)
	})
	Store(count, ReturnIndex(0))
	finish()
}

func (l level) advance() {
	l.text("advance")
	active, bytes, index := base("active"), base("bytes"), base("index")
	pp, n, zp, bp, vp := base("p"), length("p"), base("z"), base("b"), base("v")
	step, threshold, momentum, scale := l.broadcast("step"), l.broadcast("threshold"), l.broadcast("momentum"), l.broadcast("scale")
	floor, magnitude, zero, largest, count := l.broadcast("floor"), l.constantBits(0x7fffffff), l.constant(0), l.constant(0), GP64()
	least, most := l.constant(-127), l.constant(127)
	var enter Register
	if l.wide {
		enter = K()
		KMOVW(Load(Param("enter"), GP32()), enter)
	} else {
		enter = l.broadcast("enter")
	}
	XORQ(count, count)
	l.each(n, func(offset Register) {
		u, x, b, t := l.vector(), l.vector(), l.vector(), l.vector()
		VMULPS(floats(pp, offset), step, u)
		VADDPS(floats(zp, offset), u, u)
		l.and(magnitude, u, x)
		VSUBPS(threshold, x, x)
		VMAXPS(x, zero, x)
		if l.wide {
			VPTERNLOGD(U8(0xf4), magnitude, u, x) // x | u &^ magnitude
		} else {
			VANDNPS(u, magnitude, u)
			VORPS(u, x, x)
		}
		VMAXPS(floor, x, x)
		VMOVUPS(floats(bp, offset), b)
		if l.wide {
			moves := K()
			VCMPPS(U8(4), zero, b, moves) // b ≠ 0
			KORW(enter, moves, moves)
			VMOVAPS_Z(x, moves, x)
		} else {
			VCMPPS(U8(4), zero, b, t)
			VORPS(enter, t, t)
			VANDPS(t, x, x)
		}
		VMOVUPS(x, floats(bp, offset))
		VSUBPS(b, x, b)
		VMULPS(momentum, b, b)
		VADDPS(b, x, x)
		VMOVUPS(x, floats(zp, offset))
		VMULPS(floats(vp, offset), x, x)
		l.and(magnitude, x, t)
		VMAXPS(t, largest, largest)
		VMULPS(scale, x, x)
		VMAXPS(least, x, x)
		VMINPS(most, x, x)
		VCVTPS2DQ(x, x)
		found, order, orders := GP32(), l.vector(), GP64()
		to := Mem{Base: bytes, Index: count, Scale: 1}
		if l.wide {
			nonzero := K()
			VPTESTMD(x, x, nonzero)
			VPCOMPRESSD_Z(x, nonzero, x)
			VPMOVDB(x, x.AsX())
			VMOVDQU(x.AsX(), to)
			VMOVUPS(floats(index, offset), t)
			VPCOMPRESSD_Z(t, nonzero, t)
			VMOVUPS(t, floats(active, count))
			KMOVW(nonzero, found)
		} else {
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
			VMOVQ(x.AsX(), to)
		}
		POPCNTL(found, found)
		ADDQ(found.As64(), count)
		Label("next")
	})
	Store(count, Return("n"))
	l.storeLargest(largest, "largest")
}
