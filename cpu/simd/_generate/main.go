// Command _generate writes the kernels of package simd for amd64: AVX2 with FMA,
// and AVX-512 (F). What each computes is the doc comment of its generic twin.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"log"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// level is a set of instructions.
type level struct {
	name     string
	wide     bool // AVX-512: 32 registers of 16 floats, masks; else 16 of 8
	vector   func() VecVirtual
	floats   int // of a vector
	rows     int // of a product, whose columns are two vectors
	decode   int // vectors of a row in registers
	sums     int // likewise in moveAtom, of m and of n
	multiple int // padded rows are a multiple of so many vectors
}

// twins are the kernels in plain Go, by name: assembly has their signatures and
// doc comments.
var twins = make(map[string]*ast.FuncDecl)

func main() {
	f, err := parser.ParseFile(token.NewFileSet(), "../generic.go", nil, parser.ParseComments)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			twins[d.Name.Name] = d
		}
	}
	ConstraintExpr("!noasm")
	for _, l := range []level{
		{name: "AVX2", vector: YMM, floats: 8, rows: 6, decode: 12, sums: 6, multiple: 2},
		{name: "AVX512", wide: true, vector: ZMM, floats: 16, rows: 12, decode: 20, sums: 10, multiple: 1},
	} {
		l.product()
		l.average(false)
		l.average(true)
		l.decodeRow()
		l.moveAtom()
		l.elementwise("combine", []string{"a", "b"}, []string{"c", "d"}, func(x, n []VecVirtual) {
			VMULPS(n[1], x[1], x[1])
			VFMADD213PS(x[1], n[0], x[0])
		})
		l.elementwise("addConst", []string{"a"}, []string{"c"}, func(x, n []VecVirtual) { VADDPS(n[0], x[0], x[0]) })
		l.elementwise("scale", []string{"a"}, []string{"c"}, func(x, n []VecVirtual) { VMULPS(n[0], x[0], x[0]) })
		l.elementwise("mul", []string{"a", "b"}, nil, func(x, _ []VecVirtual) { VMULPS(x[1], x[0], x[0]) })
		l.elementwise("divSqrt", []string{"a", "b"}, nil, func(x, _ []VecVirtual) { l.divideByRoot(x[0], x[1]) })
		l.elementwise("relu", []string{"a"}, nil, func(x, _ []VecVirtual) { VMAXPS(x[0], l.constant(0), x[0]) })
		l.sum()
		l.peak()
		l.fista()
		l.dots()
		l.axpy()
	}
	Generate()
}

// text starts a kernel. What it takes for granted beyond its twin is added to the
// twin's doc comment.
func (l level) text(name string, also ...string) {
	generic, kernel := name+"Generic", name+l.name
	twin := twins[generic]
	if twin == nil {
		log.Fatalf("generic.go lacks %s", generic)
	}
	TEXT(kernel, NOSPLIT, types.ExprString(twin.Type))
	Pragma("noescape")
	var doc []string
	for _, comment := range twin.Doc.List {
		line := strings.TrimPrefix(strings.TrimPrefix(comment.Text, "//"), " ")
		doc = append(doc, strings.ReplaceAll(line, generic, kernel))
	}
	Doc(append(doc, also...)...)
}

func pointer(name string) Register { return Load(Param(name), GP64()) }
func base(slice string) Register   { return Load(Param(slice).Base(), GP64()) }
func length(slice string) Register { return Load(Param(slice).Len(), GP64()) }
func at(r Register, disp int) Mem  { return Mem{Base: r, Disp: disp} }
func floats(r, index Register) Mem { return Mem{Base: r, Index: index, Scale: 4} }
func halves(r, index Register) Mem { return Mem{Base: r, Index: index, Scale: 2} }

// bytes returns a parameter that counts floats, in bytes.
func bytes(name string) Register {
	r := pointer(name)
	SHLQ(U8(2), r)
	return r
}

// parameter is where a parameter is in memory.
func parameter(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// broadcast fills a vector with a parameter of four bytes.
func (l level) broadcast(name string) VecVirtual {
	v := l.vector()
	VBROADCASTSS(parameter(name), v)
	return v
}

// constant fills a vector with a number.
func (l level) constant(x float32) VecVirtual {
	if x == 0 {
		v := l.vector()
		l.clear(v)
		return v
	}
	return l.constantBits(math.Float32bits(x))
}

func (l level) constantBits(bits uint32) VecVirtual {
	v := l.vector()
	VBROADCASTSS(global(fmt.Sprintf("bits%08x", bits), 1, func(int) Constant { return U32(bits) }), v)
	return v
}

func (l level) clear(v VecVirtual) {
	if l.wide {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// estimatedRoot returns y, 1/√x to 14 bits, and 1 − x·y·y: a Newton step makes
// it y·(1 + (1−x·y·y)/2), good to a unit or two in the last place. VSQRTPS and
// VDIVPS are no pipelined instructions on 16 floats.
func (l level) estimatedRoot(x VecVirtual) (y, error VecVirtual) {
	y, error = l.vector(), l.vector()
	VRSQRT14PS(x, y)
	VMULPS(y, x, error)
	VFNMADD213PS(l.constant(1), y, error)
	return y, error
}

// divideByRoot makes x x/√y.
func (l level) divideByRoot(x, y VecVirtual) {
	if l.wide {
		root, error := l.estimatedRoot(y)
		VMULPS(root, x, x)
		VMULPS(x, error, error)
		VFMADD231PS(l.constant(0.5), error, x)
	} else {
		VSQRTPS(y, y)
		VDIVPS(y, x, x)
	}
}

// peak keeps every register but one busy: no other loop can do more flops.
func (l level) peak() {
	l.text("peak")
	n := pointer("n")
	y := l.vector()
	l.clear(y)
	var sums []VecVirtual
	for range 2 * l.rows {
		x := l.vector()
		l.clear(x)
		sums = append(sums, x)
	}
	Label("loop")
	for _, x := range sums {
		VFMADD231PS(y, y, x)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// product keeps rows × two vectors of sums. A step broadcasts each row's element
// of a to a register, which costs half the loads of one for each vector.
func (l level) product() {
	l.text("product")
	bytesOf := 4 * l.floats
	var sums [][2]VecVirtual
	for range l.rows {
		pair := [2]VecVirtual{l.vector(), l.vector()}
		l.clear(pair[0])
		l.clear(pair[1])
		sums = append(sums, pair)
	}
	// An address reaches three rows: r, r + aRow, r + 2·aRow.
	aRow, aColumn := bytes("aRow"), bytes("aColumn")
	rows := []Register{pointer("a")}
	for len(rows) < l.rows/3 {
		r := GP64()
		LEAQ(Mem{Base: rows[len(rows)-1], Index: aRow, Scale: 2}, r)
		ADDQ(aRow, r)
		rows = append(rows, r)
	}
	b, bRow, n := pointer("b"), bytes("bRow"), pointer("n")
	s, q, sRow, sRows := pointer("s"), pointer("q"), pointer("sRow"), pointer("sRows")
	step := func() {
		b0, b1 := l.vector(), l.vector()
		VMOVUPS(at(b, 0), b0)
		VMOVUPS(at(b, bytesOf), b1)
		ADDQ(bRow, b)
		for i := range l.rows {
			x := l.vector()
			m := Mem{Base: rows[i/3]}
			if i%3 > 0 {
				m.Index, m.Scale = aRow, uint8(i%3)
			}
			VBROADCASTSS(m, x)
			VFMADD231PS(x, b0, sums[i][0])
			VFMADD231PS(x, b1, sums[i][1])
		}
		for _, r := range rows {
			ADDQ(aColumn, r)
		}
	}
	TESTQ(sRows, sRows)
	JZ(LabelRef("loop"))
	Label("prefetch")
	for disp := 0; disp < 2*bytesOf; disp += 64 {
		PREFETCHT1(at(s, disp))
		PREFETCHT1(at(q, disp))
	}
	ADDQ(sRow, s)
	ADDQ(sRow, q)
	until := pointer("every")
	Label("steps")
	step()
	DECQ(n)
	JZ(LabelRef("done"))
	DECQ(until)
	JNZ(LabelRef("steps"))
	DECQ(sRows)
	JNZ(LabelRef("prefetch"))
	Label("loop")
	step()
	DECQ(n)
	JNZ(LabelRef("loop"))
	Label("done")
	dst, dstRow := pointer("dst"), bytes("dstRow")
	for _, pair := range sums {
		for i, v := range pair {
			VADDPS(at(dst, i*bytesOf), v, v)
			VMOVUPS(v, at(dst, i*bytesOf))
		}
		ADDQ(dstRow, dst)
	}
	VZEROUPPER()
	RET()
}

// part is a vector's place in slices, or that of what is left at their end.
type part struct {
	level
	offset Register   // elements
	mask   VecVirtual // AVX2: of the rest, else nil
	k      Register   // AVX-512
}

func (p part) load(slice Register) VecVirtual {
	v, m := p.vector(), floats(slice, p.offset)
	switch {
	case p.wide:
		VMOVUPS_Z(m, p.k, v)
	case p.mask != nil:
		VMASKMOVPS(m, p.mask, v)
	default:
		VMOVUPS(m, v)
	}
	return v
}

func (p part) store(v VecVirtual, slice Register) {
	m := floats(slice, p.offset)
	switch {
	case p.wide:
		VMOVUPS(v, p.k, m)
	case p.mask != nil:
		VMASKMOVPS(v, p.mask, m)
	default:
		VMOVUPS(v, m)
	}
}

// loadHalf and storeHalf are load and store of float16, on AVX2 of whole vectors.
func (p part) loadHalf(slice Register) VecVirtual {
	v, m := p.vector(), halves(slice, p.offset)
	if p.wide {
		VCVTPH2PS_Z(m, p.k, v)
	} else {
		VCVTPH2PS(m, v)
	}
	return v
}

func (p part) storeHalf(v VecVirtual, slice Register) {
	const nearestEven = 0
	m := halves(slice, p.offset)
	if p.wide {
		VCVTPS2PH(U8(nearestEven), v, p.k, m)
	} else {
		VCVTPS2PH(U8(nearestEven), v, m)
	}
}

// sweep emits body for the vectors of n elements. The last may be a part of one.
func (l level) sweep(n Register, body func(p part)) {
	p := part{level: l, offset: GP64()}
	XORQ(p.offset, p.offset)
	if l.wide {
		ones, rest := GP64(), GP64()
		p.k = K()
		MOVQ(I32(-1), ones)
		KMOVW(ones.As32(), p.k)
		Label("sweep")
		CMPQ(n, U8(l.floats))
		JGE(LabelRef("whole"))
		BZHIQ(n, ones, rest)
		KMOVW(rest.As32(), p.k)
		Label("whole")
		body(p)
		ADDQ(U8(l.floats), p.offset)
		SUBQ(U8(l.floats), n)
		JG(LabelRef("sweep"))
		return
	}
	l.wholeVectors(p, n, body)
	ADDQ(U8(l.floats), n)
	JZ(LabelRef("end"))
	masks, after := GP64(), GP64()
	LEAQ(masksOfRests(), masks)
	LEAQ(Mem{Base: masks, Disp: 4 * l.floats}, after)
	back := GP64()
	MOVQ(n, back)
	NEGQ(back)
	p.mask = l.vector()
	VMOVUPS(floats(after, back), p.mask)
	body(p)
	Label("end")
}

// wholeVectors emits body for the whole vectors of n elements, of which the rest
// stays in n, less a vector.
func (l level) wholeVectors(p part, n Register, body func(p part)) {
	SUBQ(U8(l.floats), n)
	JL(LabelRef("rest"))
	Label("sweep")
	body(p)
	ADDQ(U8(l.floats), p.offset)
	SUBQ(U8(l.floats), n)
	JGE(LabelRef("sweep"))
	Label("rest")
}

// masksOfRests are ones before zeros: a vector that starts n elements before
// the zeros masks n elements.
func masksOfRests() Mem {
	return global("masksOfRests", 16, func(i int) Constant {
		if i < 8 {
			return U32(0xffffffff)
		}
		return U32(0)
	})
}

// global returns a table in memory, made when it is first asked for.
func global(name string, elements int, element func(i int) Constant) Mem {
	if m, ok := globals[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range elements {
		c := element(i)
		DATA(i*c.Bytes(), c)
	}
	globals[name] = m
	return m
}

var globals = make(map[string]Mem)

// elementwise emits dst[i] = f of slices and numbers. Its result is in x[0].
func (l level) elementwise(name string, slices, numbers []string, f func(x, numbers []VecVirtual)) {
	l.text(name)
	dst, n := base("dst"), length("dst")
	var bases []Register
	for _, slice := range slices {
		bases = append(bases, base(slice))
	}
	var constants []VecVirtual
	for _, number := range numbers {
		constants = append(constants, l.broadcast(number))
	}
	l.sweep(n, func(p part) {
		var x []VecVirtual
		for _, slice := range bases {
			x = append(x, p.load(slice))
		}
		f(x, constants)
		p.store(x[0], dst)
	})
	VZEROUPPER()
	RET()
}

// sum adds in two (AVX-512) or four registers of float64.
func (l level) sum() {
	l.text("sum")
	a, n := base("a"), length("a")
	low, high := l.vector(), l.vector()
	l.clear(low)
	l.clear(high)
	l.sweep(n, func(p part) {
		x := p.load(a)
		y := l.vector()
		if l.wide {
			VCVTPS2PD(x.AsY(), y)
			VADDPD(y, low, low)
			VEXTRACTF64X4(U8(1), x, x.AsY())
			VCVTPS2PD(x.AsY(), y)
		} else {
			VCVTPS2PD(x.AsX(), y)
			VADDPD(y, low, low)
			VEXTRACTF128(U8(1), x, x.AsX())
			VCVTPS2PD(x.AsX(), y)
		}
		VADDPD(y, high, high)
	})
	VADDPD(high, low, low)
	if l.wide {
		VEXTRACTF64X4(U8(1), low, high.AsY())
		VADDPD(high.AsY(), low.AsY(), low.AsY())
	}
	VEXTRACTF128(U8(1), low.AsY(), high.AsX())
	VADDPD(high.AsX(), low.AsX(), low.AsX())
	VHADDPD(low.AsX(), low.AsX(), low.AsX())
	Store(low.AsX(), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// average skips what comes after S and Q where all codes of a vector are zero,
// on AVX2: its exact root and division are slow, and it has no compress-store.
// AVX-512 has no branch but the loop's. With half, S and √Q are float16, and
// AVX2 takes whole vectors only: it has no masks for them.
func (l level) average(half bool) {
	switch {
	case !half:
		l.text("average")
	case l.wide:
		l.text("averageHalf")
	default:
		l.text("averageHalf", "", fmt.Sprintf("len(p) is a multiple of %d.", l.floats))
	}
	index, value := base("index"), base("value")
	pp, sp, qp, n := base("p"), base("s"), base("q"), length("p")
	gradient, square, threshold := l.broadcast("gradient"), l.broadcast("square"), l.broadcast("threshold")
	count := GP64()
	XORQ(count, count)
	columns := l.broadcast("column")
	VPADDD(global("iota", 16, func(i int) Constant { return U32(i) }), columns, columns)
	magnitude := l.constantBits(0x7fffffff)
	var rate, halfRate, floor, step, epsilon, signs VecVirtual
	if l.wide { // AVX2 has no registers for these
		rate, floor, step, epsilon = l.broadcast("rate"), l.broadcast("floor"), l.constantBits(16), l.constant(1e-30)
		halfRate, signs = l.vector(), l.constantBits(0x80000000)
		VMULPS(l.constant(0.5), rate, halfRate)
	}
	body := func(part part) {
		var s, q VecVirtual
		if half {
			s, q = part.loadHalf(sp), part.loadHalf(qp)
			VMULPS(q, q, q)
		} else {
			s, q = part.load(sp), part.load(qp)
		}
		p := part.load(pp)
		VFMADD231PS(p, gradient, s)
		VMULPS(p, p, p)
		VFMADD231PS(p, square, q)
		if half {
			part.storeHalf(s, sp)
			VFMADD231PS(l.constant(0), s, q)
		} else {
			part.store(s, sp)
			part.store(q, qp)
		}
		if l.wide {
			u, a := l.vector(), l.vector()
			VPANDD(magnitude, s, u)
			VSUBPS(threshold, u, u)
			shrunk, zero := K(), l.constant(0)
			VCMPPS(U8(0x1e), zero, u, part.k, shrunk) // u > 0
			VADDPS(epsilon, q, q)
			y, error := l.estimatedRoot(q)
			if half {
				root := l.vector()
				VMULPS(l.constant(0.5), error, root)
				VFMADD213PS(y, y, root)
				VMULPS(q, root, root)
				part.storeHalf(root, qp)
			}
			VFMADD213PS(rate, halfRate, error) // the Newton step's factor, times rate
			VMULPS_Z(u, y, shrunk, a)
			VMULPS_Z(error, a, shrunk, a)
			VPTERNLOGD(U8(0xf2), signs, s, a)      // a | signs &^ s
			VMAXPS(a, floor, a)                    // a NaN stays one
			VCMPPS(U8(4), zero, a, part.k, shrunk) // a ≠ 0
			l.appendMasked(index, value, count, columns, a, shrunk)
			VPADDD(step, columns, columns)
			return
		}
		next := "next"
		if part.mask != nil {
			next = "nextOfRest"
		}
		var root VecVirtual
		if half {
			root = l.vector()
			VADDPS(l.constant(1e-30), q, q)
			VSQRTPS(q, root)
			part.storeHalf(root, qp)
		}
		u, a, zero := l.vector(), l.vector(), l.constant(0)
		VANDPS(magnitude, s, u)
		VSUBPS(threshold, u, u)
		VCMPPS(U8(0x1e), zero, u, a) // u > 0
		if part.mask != nil {
			VANDPS(part.mask, a, a)
		}
		found := GP32()
		VMOVMSKPS(a, found)
		TESTL(found, found)
		JZ(LabelRef(next))
		VANDPS(a, u, u)
		if half {
			VMULPS(root, u, u)
			VDIVPS(q, u, u)
			VANDPS(a, u, u) // 0·√h/h may be a NaN
		} else {
			VADDPS(l.constant(1e-30), q, q)
			l.divideByRoot(u, q)
		}
		VANDNPS(s, magnitude, a) // sgn(s)
		VXORPS(l.broadcast("rate"), a, a)
		VMULPS(u, a, a)
		VSUBPS(a, zero, a)
		VMAXPS(a, l.broadcast("floor"), a) // a NaN stays one
		VCMPPS(U8(4), zero, a, u)          // a ≠ 0
		if part.mask != nil {
			VANDPS(part.mask, u, u)
		}
		VMOVMSKPS(u, found)
		l.appendFound(index, value, count, columns, a, found)
		Label(next)
		VPADDD(l.constantBits(8), columns, columns)
	}
	if half && !l.wide {
		p := part{level: l, offset: GP64()}
		XORQ(p.offset, p.offset)
		l.wholeVectors(p, n, body)
	} else {
		l.sweep(n, body)
	}
	Store(count, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// appendMasked appends the elements of x that are in a mask, and their columns, as
// AVX-512 does.
func (l level) appendMasked(index, value, count Register, columns, x VecVirtual, mask Register) {
	found, kept := GP32(), l.vector()
	VCOMPRESSPS_Z(x, mask, x)
	VMOVUPS(x, floats(value, count))
	VPCOMPRESSD_Z(columns, mask, kept)
	VMOVDQU32(kept, floats(index, count))
	KMOVW(mask, found)
	POPCNTL(found, found)
	ADDQ(found.As64(), count)
}

// appendFound is appendMasked for AVX2, whose mask is the bits of found.
func (l level) appendFound(index, value, count Register, columns, x VecVirtual, found GPVirtual) {
	order, orders := l.vector(), GP64()
	LEAQ(global("compressed", 256, compressed), orders)
	VPMOVZXBD(Mem{Base: orders, Index: found.As64(), Scale: 8}, order)
	VPERMPS(x, order, x)
	VMOVUPS(x, floats(value, count))
	VPERMD(columns, order, order)
	VMOVDQU(order, floats(index, count))
	POPCNTL(found, found)
	ADDQ(found.As64(), count)
}

// compressed is the order that moves the elements of a mask to the front, a
// byte each.
func compressed(mask int) Constant {
	var order uint64
	to := 0
	for i := range 8 {
		if mask>>i&1 == 1 {
			order |= uint64(i) << (8 * to)
			to++
		}
	}
	return U64(order)
}

// rowInRegisters emits body for a row of so many bytes, in pieces of up to most vectors.
// Each number of vectors has code of its own.
func (l level) rowInRegisters(left Register, most int, body func(vectors int)) {
	Label("row")
	for v := most; v > 0; v -= l.multiple {
		CMPQ(left, U32(v*4*l.floats))
		if v == most {
			JGE(LabelRef(fmt.Sprint("vectors", v)))
		} else {
			JEQ(LabelRef(fmt.Sprint("vectors", v)))
		}
	}
	JMP(LabelRef("end"))
	for v := most; v > 0; v -= l.multiple {
		Label(fmt.Sprint("vectors", v))
		body(v)
		SUBQ(U32(v*4*l.floats), left)
		JMP(LabelRef("row"))
	}
	Label("end")
}

// eachNonzero emits body for the nonzeros, those before end if there is one, with a row of the matrix
// and the value in a vector.
func (l level) eachNonzero(vectors int, i, n, index, value, matrix, width, end Register, body func(row Register, x VecVirtual)) {
	loop, done := fmt.Sprint("nonzero", vectors), fmt.Sprint("done", vectors)
	XORQ(i, i)
	Label(loop)
	CMPQ(i, n)
	JGE(LabelRef(done))
	row, x := GP64(), l.vector()
	MOVLQSX(floats(index, i), row)
	if end != nil {
		CMPQ(row, end)
		JGE(LabelRef(done))
	}
	IMULQ(width, row)
	ADDQ(matrix, row)
	VBROADCASTSS(floats(value, i), x)
	body(row, x)
	INCQ(i)
	JMP(LabelRef(loop))
	Label(done)
}

// decodeRow keeps a row of dst in registers: a nonzero is one load and one
// multiplication with addition a vector.
func (l level) decodeRow() {
	l.text("decode")
	dst, left, index, n := base("dst"), length("dst"), base("index"), length("index")
	value, d, width, end, i := base("value"), base("d"), bytes("dim"), GP64(), GP64()
	MOVLQSX(parameter("end"), end)
	SHLQ(U8(2), left)
	XORQ(i, i)
	l.rowInRegisters(left, l.decode, func(vectors int) {
		sums := l.loaded(dst, vectors)
		l.eachNonzero(vectors, i, n, index, value, d, width, end, func(row Register, x VecVirtual) {
			for v, sum := range sums {
				VFMADD231PS(at(row, v*4*l.floats), x, sum)
			}
		})
		l.stored(sums, dst)
		ADDQ(U32(vectors*4*l.floats), dst)
		ADDQ(U32(vectors*4*l.floats), d)
	})
	Store(i, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// moveAtom has M and N in registers from their first term to D's move. What it
// does with them is bound by memory: while it adds them up, the next atom's rows
// of H, D and P come.
func (l level) moveAtom() {
	l.text("moveAtom")
	hp, left, pp, dp, mp, np := base("h"), length("h"), base("p"), base("d"), base("m"), base("n")
	index, count, value, r, width, i := base("index"), length("index"), base("value"), base("r"), bytes("dim"), GP64()
	SHLQ(U8(2), left)
	zero := l.constant(0)
	l.rowInRegisters(left, l.sums, func(vectors int) {
		for _, row := range []Register{hp, dp, pp} {
			for disp := 0; disp < vectors*4*l.floats; disp += 64 {
				PREFETCHT0(Mem{Base: row, Index: width, Scale: 1, Disp: disp})
			}
		}
		m, n := l.loaded(mp, vectors), l.loaded(np, vectors)
		l.eachNonzero(vectors, i, count, index, value, r, width, nil, func(row Register, x VecVirtual) {
			for v := range m {
				p := l.vector()
				VMULPS(at(row, v*4*l.floats), x, p)
				VADDPS(p, m[v], m[v])
				VFMADD231PS(p, p, n[v])
			}
		})
		for v := range m {
			disp := v * 4 * l.floats
			d, t := l.vector(), l.vector()
			VMOVUPS(at(dp, disp), d)
			VMULPS(l.broadcast("c2"), d, t)
			VFMADD231PS(l.broadcast("c1"), m[v], t)
			VMULPS(l.broadcast("c0"), n[v], n[v])
			VFMADD231PS(d, t, n[v])
			VMAXPS(n[v], zero, n[v]) // a NaN stays one
			VADDPS(at(hp, disp), n[v], n[v])
			VMOVUPS(n[v], at(hp, disp))
			VMULPS(l.broadcast("c4"), m[v], m[v])
			VFMADD231PS(l.broadcast("c3"), d, m[v])
			VADDPS(l.broadcast("epsilon"), n[v], n[v])
			l.divideByRoot(m[v], n[v])
			VMOVUPS(m[v], at(pp, disp))
			VFMADD231PS(l.broadcast("step"), m[v], d)
			VMOVUPS(d, at(dp, disp))
		}
		for _, p := range []Register{hp, pp, dp, mp, np, r} {
			ADDQ(U32(vectors*4*l.floats), p)
		}
	})
	VZEROUPPER()
	RET()
}

func (l level) loaded(from Register, vectors int) (v []VecVirtual) {
	for i := range vectors {
		v = append(v, l.vector())
		VMOVUPS(at(from, i*4*l.floats), v[i])
	}
	return v
}

func (l level) stored(v []VecVirtual, to Register) {
	for i := range v {
		VMOVUPS(v[i], at(to, i*4*l.floats))
	}
}
