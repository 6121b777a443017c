package interpreter

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"strings"

	"overcomplete/internal/float32s"
)

// operation is the semantics of an instruction. parser.operand documents the forms of its operands.
type operation struct {
	operands string
	run      func(w *warp, in *instruction, active uint32)
	together bool // all lanes of the warp must execute it
}

func find(name string, operands []string) (op operation, ok bool) {
	if strings.HasPrefix(name, "mov.b") {
		for i, s := range operands {
			if strings.HasPrefix(s, "{") {
				name += []string{", apart", ", together"}[i]
			}
		}
	}
	if op, ok = operations[name]; ok {
		return op, true
	}
	return accessOperation(name)
}

// operations are all operations except loads and stores.
var operations = map[string]operation{
	"mov.u32": apply1(same[uint32]), "mov.b32": apply1(same[uint32]), "mov.f32": apply1(same[uint32]),
	"mov.u64": apply1(same[uint64]), "mov.b64": apply1(same[uint64]), "mov.f64": apply1(same[uint64]),
	"mov.b16": apply1(same[uint16]), "mov.u16": apply1(same[uint16]),
	"mov.b32, apart": apart(16), "mov.b32, together": together(16),
	"mov.b64, apart": apart(32), "mov.b64, together": together(32),

	"add.s32": apply2(add[uint32]), "sub.s32": apply2(sub[uint32]), "mul.lo.s32": apply2(mul[uint32]),
	"add.s64": apply2(add[uint64]), "mul.lo.s64": apply2(mul[uint64]),
	"mul.wide.s32": apply2(func(a, b int32) int64 { return int64(a) * int64(b) }),
	"mul.wide.u32": apply2(func(a, b uint32) uint64 { return uint64(a) * uint64(b) }),
	"mul.hi.u32":   apply2(func(a, b uint32) uint32 { hi, _ := bits.Mul32(a, b); return hi }),
	"min.s32":      apply2(func(a, b int32) int32 { return min(a, b) }),
	"max.s32":      apply2(func(a, b int32) int32 { return max(a, b) }),
	"max.u32":      apply2(func(a, b uint32) uint32 { return max(a, b) }),
	"mad.lo.s32":   apply3(func(a, b, c uint32) uint32 { return a*b + c }),
	"div.u32":      apply2(divide),
	"and.b32":      apply2(and[uint32]), "or.b32": apply2(or[uint32]), "xor.b32": apply2(xor[uint32]), "xor.b64": apply2(xor[uint64]), "not.b32": apply1(not[uint32]),
	"and.b64": apply2(and[uint64]), "or.b64": apply2(or[uint64]),
	"shl.b32":  apply2(func(a, n uint32) uint32 { return a << n }),
	"shl.b64":  apply2(func(a uint64, n uint32) uint64 { return a << n }),
	"shr.u32":  apply2(func(a, n uint32) uint32 { return a >> n }),
	"shr.s32":  apply2(func(a int32, n uint32) int32 { return a >> n }),
	"shr.u64":  apply2(func(a uint64, n uint32) uint64 { return a >> n }),
	"bfi.b32":  {operands: "R r r r r", run: insertBits},
	"prmt.b32": apply3(permute),
	"popc.b32": apply1(func(a uint32) uint32 { return uint32(bits.OnesCount32(a)) }),

	"add.f32": apply2(add[float32]), "sub.f32": apply2(sub[float32]), "mul.f32": apply2(mul[float32]),
	"add.rn.f32": apply2(add[float32]), "sub.rn.f32": apply2(sub[float32]), "mul.rn.f32": apply2(mul[float32]),
	"min.f32": apply2(extreme(math.Min)), "max.f32": apply2(extreme(math.Max)),
	"div.rn.f32": apply2(quotient[float32]), "rcp.rn.f32": apply1(inverse[float32]), "fma.rn.f32": apply3(fma),
	"abs.f32": apply1(func(a uint32) uint32 { return a &^ (1 << 31) }), "neg.f32": apply1(func(a uint32) uint32 { return a ^ 1<<31 }),
	"sqrt.rn.f32":          apply1(func(a float32) float32 { return float32(math.Sqrt(float64(a))) }),
	"rsqrt.approx.ftz.f32": apply1(inverseRoot),
	"add.f64":              apply2(add[float64]), "sub.f64": apply2(sub[float64]), "mul.f64": apply2(mul[float64]),
	"div.rn.f64": apply2(quotient[float64]), "rcp.rn.f64": apply1(inverse[float64]), "fma.rn.f64": apply3(math.FMA),
	"sqrt.rn.f64": apply1(math.Sqrt),

	"cvt.u32.u64": apply1(convert[uint64, uint32]), "cvt.u64.u32": apply1(convert[uint32, uint64]), "cvt.s64.s32": apply1(convert[int32, int64]),
	"cvt.rn.f32.s32": apply1(convert[int32, float32]), "cvt.rn.f32.u32": apply1(convert[uint32, float32]),
	"cvt.u16.u32":    apply1(func(a uint32) uint16 { return uint16(a) }),
	"cvt.rn.f64.s32": apply1(convert[int32, float64]), "cvt.rn.f64.u32": apply1(convert[uint32, float64]),
	"cvt.rn.f32.f64": apply1(convert[float64, float32]), "cvt.f64.f32": apply1(convert[float32, float64]),
	"cvt.rna.tf32.f32":   apply1(roundTF32),
	"cvt.rn.f16.f32":     apply1(toHalf),
	"cvt.f32.f16":        apply1(fromHalf),
	"cvt.rn.f16x2.f32":   apply2(func(a, b float32) uint32 { return uint32(toHalf(a))<<16 | uint32(toHalf(b)) }),
	"cvt.rn.bf16x2.f32":  apply2(func(a, b float32) uint32 { return uint32(toBfloat(a))<<16 | uint32(toBfloat(b)) }),
	"cvta.to.global.u64": apply1(same[uint64]), "cvta.to.shared.u64": apply1(func(a uint64) uint64 { return a - sharedWindow }),
	"cvta.shared.u64": apply1(func(a uint64) uint64 { return a + sharedWindow }),

	"selp.u32": selection, "selp.b32": selection, "selp.f32": selection, "selp.b64": selection, "selp.f64": selection,
	"mov.pred": {operands: "R n", run: movePredicate},
	"and.pred": logic(and[uint32]), "or.pred": logic(or[uint32]), "xor.pred": logic(xor[uint32]), "not.pred": {operands: "R r", run: notPredicate},

	"bar.sync":                                 {operands: "n", together: true},
	"bar.sync, counted":                        {operands: "n n", together: true},
	"bar.warp.sync":                            {operands: "r", together: true, run: meetLanes},
	"shfl.sync.bfly.b32":                       {operands: "S r r r r", together: true, run: shuffle},
	"vote.sync.ballot.b32":                     {operands: "R r r", together: true, run: ballot},
	"red.release.gpu.global.add.u32":           {operands: "A r", run: addReleasing},
	"ld.acquire.gpu.global.s32":                {operands: "R A", run: loadAcquiring},
	"cp.async.cg.shared.global":                {operands: "A A n r", run: copyAsync},
	"ldmatrix.sync.aligned.m8n8.x1.shared.b16": loadMatrices(1, false), "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16": loadMatrices(1, true),
	"ldmatrix.sync.aligned.m8n8.x2.shared.b16": loadMatrices(2, false), "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16": loadMatrices(2, true),
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16": loadMatrices(4, false), "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16": loadMatrices(4, true),
	"cp.async.commit_group":                               {together: true, run: copyCommit},
	"cp.async.wait_group":                                 {operands: "n", together: true, run: copyWait},
	"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32":     {operands: "R4 r4 r2 r4", together: true, run: multiply8},
	"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32":  {operands: "R4 r4 r2 r4", together: true, run: multiplyTF32},
	"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32":   {operands: "R4 r4 r2 r4", together: true, run: multiply16(fromHalf)},
	"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": {operands: "R4 r4 r2 r4", together: true, run: multiply16(fromBfloat)},
}

func init() {
	maps.Copy(operations, comparisons[int16]("s16"))
	maps.Copy(operations, comparisons[int32]("s32"))
	maps.Copy(operations, comparisons[uint32]("u32"))
	maps.Copy(operations, comparisons[uint32]("b32"))
	maps.Copy(operations, comparisons[int64]("s64"))
	maps.Copy(operations, comparisons[uint64]("u64"))
	maps.Copy(operations, comparisons[float32]("f32"))
	maps.Copy(operations, comparisons[float64]("f64"))
}

type number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

func same[T any](a T) T                      { return a }
func convert[T, R number](a T) R             { return R(a) }
func add[T number](a, b T) T                 { return a + b }
func sub[T number](a, b T) T                 { return a - b }
func mul[T number](a, b T) T                 { return a * b }
func quotient[T float32 | float64](a, b T) T { return a / b }
func inverse[T float32 | float64](a T) T     { return 1 / a }
func and[T uint32 | uint64](a, b T) T        { return a & b }
func or[T uint32 | uint64](a, b T) T         { return a | b }
func xor[T uint32 | uint64](a, b T) T        { return a ^ b }
func not[T uint32 | uint64](a T) T           { return ^a }

func apply1[A, R any](f func(A) R) operation {
	return operation{operands: "R r", run: func(w *warp, in *instruction, active uint32) {
		r, a := &w.registers[in.args[0]], &w.registers[in.args[1]]
		for i := range lanes {
			if active>>i&1 != 0 {
				r[i] = wide(f(*lane[A](a, i)))
			}
		}
	}}
}

func apply2[A, B, R any](f func(A, B) R) operation {
	return operation{operands: "R r r", run: func(w *warp, in *instruction, active uint32) {
		r, a, b := &w.registers[in.args[0]], &w.registers[in.args[1]], &w.registers[in.args[2]]
		for i := range lanes {
			if active>>i&1 != 0 {
				r[i] = wide(f(*lane[A](a, i), *lane[B](b, i)))
			}
		}
	}}
}

func apply3[A, R any](f func(a, b, c A) R) operation {
	return operation{operands: "R r r r", run: func(w *warp, in *instruction, active uint32) {
		r, a, b, c := &w.registers[in.args[0]], &w.registers[in.args[1]], &w.registers[in.args[2]], &w.registers[in.args[3]]
		for i := range lanes {
			if active>>i&1 != 0 {
				r[i] = wide(f(*lane[A](a, i), *lane[A](b, i), *lane[A](c, i)))
			}
		}
	}}
}

// setPredicate sets the bits of some lanes of a predicate.
func (w *warp) setPredicate(r int, active, value uint32) {
	p := &w.registers[r][0]
	*p = *p&^uint64(active) | uint64(value&active)
}

// comparisons returns the setp operations of a type. Comparisons that end in u are true for NaNs.
func comparisons[T cmp.Ordered](name string) map[string]operation {
	all := make(map[string]operation)
	for relation, f := range map[string]func(a, b T) bool{
		"eq": func(a, b T) bool { return a == b }, "equ": func(a, b T) bool { return !(a < b || a > b) },
		"ne": func(a, b T) bool { return a < b || a > b }, "neu": func(a, b T) bool { return a != b },
		"lt": func(a, b T) bool { return a < b }, "ltu": func(a, b T) bool { return !(a >= b) },
		"le": func(a, b T) bool { return a <= b }, "leu": func(a, b T) bool { return !(a > b) },
		"gt": func(a, b T) bool { return a > b }, "gtu": func(a, b T) bool { return !(a <= b) },
		"ge": func(a, b T) bool { return a >= b }, "geu": func(a, b T) bool { return !(a < b) },
	} {
		all["setp."+relation+"."+name] = operation{operands: "R r r", run: func(w *warp, in *instruction, active uint32) {
			a, b := &w.registers[in.args[1]], &w.registers[in.args[2]]
			var value uint32
			for i := range lanes {
				if f(*lane[T](a, i), *lane[T](b, i)) {
					value |= 1 << i
				}
			}
			w.setPredicate(in.args[0], active, value)
		}}
	}
	return all
}

func logic(f func(a, b uint32) uint32) operation {
	return operation{operands: "R r r", run: func(w *warp, in *instruction, active uint32) {
		w.setPredicate(in.args[0], active, f(uint32(w.registers[in.args[1]][0]), uint32(w.registers[in.args[2]][0])))
	}}
}

func notPredicate(w *warp, in *instruction, active uint32) {
	w.setPredicate(in.args[0], active, ^uint32(w.registers[in.args[1]][0]))
}

func movePredicate(w *warp, in *instruction, active uint32) {
	value := uint32(0)
	if in.args[1] != 0 {
		value = allLanes
	}
	w.setPredicate(in.args[0], active, value)
}

var selection = operation{operands: "R r r r", run: func(w *warp, in *instruction, active uint32) {
	r, a, b := &w.registers[in.args[0]], &w.registers[in.args[1]], &w.registers[in.args[2]]
	predicate := w.registers[in.args[3]][0]
	for i := range lanes {
		if active>>i&1 != 0 {
			if predicate>>i&1 != 0 {
				r[i] = a[i]
			} else {
				r[i] = b[i]
			}
		}
	}
}}

// apart returns the operation that splits a value into two registers, one for each half; together returns the inverse.
func apart(half int) operation {
	return operation{operands: "R2 r", run: func(w *warp, in *instruction, active uint32) {
		lo, hi, a := &w.registers[in.args[0]], &w.registers[in.args[1]], &w.registers[in.args[2]]
		for i := range lanes {
			if active>>i&1 != 0 {
				x := a[i]
				lo[i], hi[i] = x&(1<<half-1), x>>half&(1<<half-1)
			}
		}
	}}
}

func together(half int) operation {
	return operation{operands: "R r2", run: func(w *warp, in *instruction, active uint32) {
		r, lo, hi := &w.registers[in.args[0]], &w.registers[in.args[1]], &w.registers[in.args[2]]
		for i := range lanes {
			if active>>i&1 != 0 {
				r[i] = lo[i]&(1<<half-1) | hi[i]&(1<<half-1)<<half
			}
		}
	}}
}

// wholeWarp checks that the operand for the participating lanes is the whole warp.
func (w *warp) wholeWarp(register int) {
	for i := range lanes {
		if members := *lane[uint32](&w.registers[register], i); members != allLanes {
			w.fail(i, "is for lanes %#x; the interpreter has it for whole warps alone", members)
		}
	}
}

func meetLanes(w *warp, in *instruction, _ uint32) {
	w.wholeWarp(in.args[0])
	w.block.clock++
	w.synced = w.block.clock
}

// shuffle gives each lane the value of the lane whose number differs in the bits of an operand.
func shuffle(w *warp, in *instruction, _ uint32) {
	w.wholeWarp(in.args[5])
	values := w.registers[in.args[2]]
	within := *lane[uint32](&w.registers[in.args[4]], 0)
	if within != lanes-1 {
		w.fail(0, "has the bounds %#x, not of a whole warp", within)
	}
	for i := range lanes {
		w.registers[in.args[0]][i] = values[(uint32(i)^*lane[uint32](&w.registers[in.args[3]], i))%lanes]
	}
	if in.args[1] != in.args[0] {
		w.setPredicate(in.args[1], allLanes, allLanes)
	}
}

// ballot gives all lanes the mask of a predicate.
func ballot(w *warp, in *instruction, _ uint32) {
	w.wholeWarp(in.args[2])
	value := w.registers[in.args[1]][0]
	for i := range lanes {
		w.registers[in.args[0]][i] = value
	}
}

// insertBits replaces bits of the second operand by the first one. The third operand is the first bit, the fourth
// the number of bits.
func insertBits(w *warp, in *instruction, active uint32) {
	for i := range lanes {
		if active>>i&1 != 0 {
			a, b := *lane[uint32](&w.registers[in.args[1]], i), *lane[uint32](&w.registers[in.args[2]], i)
			from, count := *lane[uint8](&w.registers[in.args[3]], i), *lane[uint8](&w.registers[in.args[4]], i)
			mask := (uint32(1)<<count - 1) << from
			w.registers[in.args[0]][i] = uint64(b&^mask | a<<from&mask)
		}
	}
}

// permute selects four bytes of two registers, by their numbers in the selector. It ignores the bits for sign extension.
func permute(a, b, selector uint32) (r uint32) {
	bytes := uint64(b)<<32 | uint64(a)
	for i := range 4 {
		r |= uint32(bytes>>(8*(selector>>(4*i)&7))) & 0xff << (8 * i)
	}
	return r
}

// extreme returns the smaller or the larger operand. If one of them is a NaN, it returns the other.
func extreme(f func(a, b float64) float64) func(a, b float32) float32 {
	return func(a, b float32) float32 {
		switch {
		case a != a:
			return b
		case b != b:
			return a
		}
		return float32(f(float64(a), float64(b)))
	}
}

// divide returns a / b. PTX leaves the result open if b is 0.
func divide(a, b uint32) uint32 {
	if b == 0 {
		return math.MaxUint32
	}
	return a / b
}

// fma returns a·b + c, rounded once. In float64 the product is exact. If the sum is inexact, its last bit is set
// (rounding to odd), so that the second rounding, to float32, gives the correct result.
func fma(a, b, c float32) float32 {
	x, y := float64(a)*float64(b), float64(c)
	sum := x + y
	part := sum - x
	lost := (x - (sum - part)) + (y - part)
	if at := math.Float64bits(sum); (lost > 0 || lost < 0) && at&1 == 0 {
		if (lost > 0) == (sum > 0) {
			at++
		} else {
			at--
		}
		sum = math.Float64frombits(at)
	}
	return float32(sum)
}

// inverseRoot returns 1/√a with a relative error of up to 2⁻²³; PTX allows 2⁻²²·⁹. Subnormals count as zeros.
func inverseRoot(a float32) float32 {
	if math.Abs(float64(a)) < 0x1p-126 {
		a *= 0 // ±0
	}
	off := float64(math.Float32bits(a)%3) - 1
	return float32(1 / math.Sqrt(float64(a)) * (1 + off*0x1p-24))
}

// roundTF32 rounds to 10 bits of fraction, ties away from zero.
func roundTF32(a float32) uint32 {
	switch at := math.Float32bits(a); {
	case a != a:
		return 0x7fffffff
	case math.IsInf(float64(a), 0):
		return at
	default:
		return (at + 1<<12) &^ (1<<13 - 1)
	}
}

// toHalf rounds to float16, ties to even.
func toHalf(a float32) uint16 {
	if a != a {
		return 0x7fff
	}
	return float32s.ToFloat16(a)
}

func fromHalf(h uint16) float32 { return float32s.FromFloat16(h) }

// toBfloat rounds to bfloat16, ties to even.
func toBfloat(a float32) uint16 {
	if a != a {
		return 0x7fff
	}
	at := math.Float32bits(a)
	return uint16((at + 0x7fff + at>>16&1) >> 16)
}

func fromBfloat(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }
