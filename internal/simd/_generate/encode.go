package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// total leaves the sum of a vector's floats in its first element.
func (l level) total(v VecVirtual) Register {
	if l.wide {
		high := YMM()
		VEXTRACTF64X4(U8(1), v, high)
		VADDPS(high, v.AsY(), v.AsY())
	}
	high := XMM()
	VEXTRACTF128(U8(1), v.AsY(), high)
	VADDPS(high, v.AsX(), v.AsX())
	VHADDPS(v.AsX(), v.AsX(), v.AsX())
	VHADDPS(v.AsX(), v.AsX(), v.AsX())
	return v.AsX()
}

// dots loads two vectors per multiplication with addition. Four groups of sums hide the latency of this instruction. A
// group has 16 sums at every level, so that all levels round alike.
func (l level) dots() {
	l.text("dots")
	pp, index, n, rp, length := base("p"), base("index"), length("index"), base("r"), length("r")
	d, width, end, i := base("d"), bytes("dim"), GP64(), GP64()
	MOVLQSX(parameter("end"), end)
	XORQ(i, i)
	const groups = 4
	size := vectorFloats / l.floats // vectors of a group
	Label("nonzero")
	CMPQ(i, n)
	JGE(LabelRef("done"))
	row, r, left := GP64(), GP64(), GP64()
	MOVLQSX(floats(index, i), row)
	CMPQ(row, end)
	JGE(LabelRef("done"))
	IMULQ(width, row)
	ADDQ(d, row)
	MOVQ(rp, r)
	MOVQ(length, left)
	sum := l.zeros(groups * size)
	vectors := func(count int) {
		for v := range count {
			x := l.vector()
			VMOVUPS(at(r, v*4*l.floats), x)
			VFMADD231PS(at(row, v*4*l.floats), x, sum[v])
		}
		ADDQ(U32(count*4*l.floats), r)
		ADDQ(U32(count*4*l.floats), row)
	}
	SUBQ(U8(groups*vectorFloats), left)
	JL(LabelRef("rest"))
	Label("vectors")
	vectors(groups * size)
	SUBQ(U8(groups*vectorFloats), left)
	JGE(LabelRef("vectors"))
	Label("rest")
	ADDQ(U8(groups*vectorFloats), left)
	JZ(LabelRef("add"))
	Label("vector")
	vectors(size)
	SUBQ(U8(vectorFloats), left)
	JNZ(LabelRef("vector"))
	Label("add")
	for i := range size {
		VADDPS(sum[size+i], sum[i], sum[i])
		VADDPS(sum[3*size+i], sum[2*size+i], sum[2*size+i])
		VADDPS(sum[2*size+i], sum[i], sum[i])
	}
	if !l.wide { // add the group's halves; for a wide vector, the method total does this
		VADDPS(sum[1], sum[0], sum[0])
	}
	VMOVSS(l.total(sum[0]), floats(pp, i))
	INCQ(i)
	JMP(LabelRef("nonzero"))
	Label("done")
	Store(i, ReturnIndex(0))
	finish()
}

// axpy converts half a vector to float64 at a time.
func (l level) axpy() {
	l.text("axpy")
	c, n, g, x := base("c"), length("c"), base("g"), l.vector()
	VBROADCASTSD(parameter("x"), x)
	half := l.floats / 2
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("loop")
	for i := range vectorFloats / half {
		sum, wide := l.vector(), l.vector()
		VMOVUPD(at(c, i*8*half), sum)
		VCVTPS2PD(at(g, i*4*half), wide)
		VFMADD231PD(wide, x, sum)
		VMOVUPD(sum, at(c, i*8*half))
	}
	ADDQ(U32(8*vectorFloats), c)
	ADDQ(U8(4*vectorFloats), g)
	SUBQ(U8(vectorFloats), n)
	JNZ(LabelRef("loop"))
	Label("done")
	finish()
}

// vectorFloats is a divisor of the length of every padded row.
const vectorFloats = 16
