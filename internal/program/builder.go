package program

import (
	"fmt"
	"slices"

	"overcomplete/graph"
)

// builder builds a program step by step. It assigns places to values and emits instructions that compute the values.
type builder struct {
	values
	program   *Program
	lossGraph *graph.Expression
	err       error

	matrices map[*value]int // places of vectors that are stored between steps
	scalars  map[*value]int // places of constants, of totals, and of numbers computed from constants and totals

	// State of the current step:
	body  Body
	local map[*value]int // places of temporaries, and of numbers that are computed per row
}

func newBuilder(name string, s graph.Spec) *builder {
	if s.Dim > 0 {
		s.Dim = 3 // any length except 1, for which Gorgonia would treat the residuals as a vector
	}
	loss, err := graph.LossGradient(s, 4)
	return &builder{
		values: newValues(), lossGraph: loss, err: err, matrices: make(map[*value]int), scalars: make(map[*value]int),
		program: &Program{
			Name: name, Outputs: make(map[string]int),
			Vectors: []Vector{VectorX: {"X", Rows}, DecodeProduct: {"", Rows}, AccumulateProduct: {"", Atoms}, SquaresProduct: {"", Atoms}},
		},
	}
}

// begin starts a step. The argument title is the first line of the step's listing.
func (b *builder) begin(title string, rows Axis) {
	b.body, b.local = Body{Rows: rows, listing: []string{title}}, make(map[*value]int)
}

func (b *builder) end() Body {
	b.shareTemporaries(b.body.Each)
	return b.body
}

func (b *builder) step(s Step) { b.program.Steps = append(b.program.Steps, s) }

func (b *builder) done() (*Program, error) { return b.program, b.err }

func (b *builder) list(format string, args ...any) {
	b.body.listing = append(b.body.listing, fmt.Sprintf(format, args...))
}

// define gives v the name and adds its formula to the listing, unless v has a name already or is a constant.
func (b *builder) define(name string, v *value) *value {
	if v.name == "" && v.op != opConst {
		v.name = name
		b.list("%s = %s", name, v.formula())
	}
	return v
}

// input returns D or H, K×L.
func (b *builder) input(name string) *value {
	v := b.vector(name)
	b.matrices[v] = b.newVector(name, Atoms)
	return v
}

func (b *builder) x() *value {
	v := b.vector("X")
	b.matrices[v] = VectorX
	return v
}

// product returns the result of a matrix product of the step.
func (b *builder) product(name, formula string, place int) *value {
	v := b.vector(name)
	b.local[v] = place
	b.list("%s = %s", name, formula)
	return v
}

// keep stores a value in a new matrix for later steps and returns the matrix.
func (b *builder) keep(name string, v *value) *value {
	return b.store(name, v, b.newVector("", b.body.Rows))
}

// replace stores a value in the matrix of an input. The input's old value must not be read afterwards.
func (b *builder) replace(input, v *value) *value {
	return b.store(input.name+"′", v, b.matrices[input])
}

func (b *builder) store(name string, v *value, at int) *value {
	b.define(name, v)
	in := b.instruction(v)
	in.Dst = at
	b.emit(in)
	b.matrices[v] = at
	kept := b.vector(v.name + " kept") // the matrix includes the constant factor of v
	kept.name = v.name
	b.matrices[kept] = at
	return kept
}

func (b *builder) output(name string, v *value) {
	if b.define(name, v); v.name != name {
		b.list("%s = %s", name, v)
	}
	at := b.scalar(v)
	b.program.Outputs[name] = at
}

// total sums a vector over all rows.
func (b *builder) total(v *value) *value {
	sum := b.unary(opTotal, v)
	_, total := sum.constantFactor()
	if _, ok := b.scalars[total]; !ok {
		p, row := b.program, b.rowNumber(b.rowSum(total.args[0]))
		at := b.newNumber(b.scalars, total)
		b.emit(Instruction{Op: Store, Dst: p.Stored, A: row})
		b.body.Then = append(b.body.Then, Instruction{Op: Total, Dst: at, A: p.Stored})
		p.Stored++
	}
	return sum
}

// scaleCodes multiplies each row of A by a number.
func (b *builder) scaleCodes(factor *value) {
	b.list("A′ = diag(%s)·a", factor)
	b.emit(Instruction{Op: ScaleCodes, A: b.rowNumber(factor)})
}

// require records the error that no instruction computes v, unless ok is true.
func (b *builder) require(ok bool, v *value) {
	if !ok && b.err == nil {
		b.err = fmt.Errorf("program: no instruction computes %s", v.formula())
	}
}

func (b *builder) emit(in Instruction) { b.body.Each = append(b.body.Each, in) }

// numberOps maps operations on two numbers to instructions.
var numberOps = map[valueOp]Op{opMul: Mul, opRatio: Ratio}

// vectorOps maps operations to instructions, by the kinds of their arguments: v for a vector, n for a number.
var vectorOps = map[valueOp]map[string]Op{
	opAdd:    {"vn": AddVN, "nv": AddVN},
	opSub:    {"vn": SubVN},
	opMul:    {"vv": MulVV, "nv": MulVN},
	opSquare: {"vv": MulVV},
	opAbs:    {"v": Abs},
	opSign:   {"v": Sign},
	opRelu:   {"v": Relu},
}

// instruction returns the instruction that computes a vector, without its destination.
func (b *builder) instruction(v *value) (in Instruction) {
	args, ops := v.args, vectorOps[v.op]
	switch {
	case v.op == opVector: // a copy of a product
		args, ops = []*value{b.constant(1), v}, vectorOps[opMul]
	case (v.op == opAdd || v.op == opSub) && !args[0].number && !args[1].number:
		return b.combination(v)
	case v.op == opSquare:
		args = []*value{args[0], args[0]}
	case v.op == opDiv && !args[0].number && args[1].op == opSqrt && !b.isStored(args[1]):
		args, ops = []*value{args[0], args[1].args[0]}, map[string]Op{"vv": DivRoot}
	}
	kinds, operands := "", [2]int{}
	for i, a := range args {
		if a.number {
			kinds, operands[i] = kinds+"n", b.rowNumber(a)
		} else {
			kinds, operands[i] = kinds+"v", b.row(a)
		}
	}
	if kinds == "nv" { // instructions have the vector first
		operands[0], operands[1] = operands[1], operands[0]
	}
	op, ok := ops[kinds]
	b.require(ok, v)
	return Instruction{Op: op, A: operands[0], B: operands[1]}
}

// combination returns an AddScaled instruction for a sum or difference. Its operand C is the number that multiplies
// the second vector.
func (b *builder) combination(v *value) Instruction {
	number, x := b.constant(1), v.args[1]
	if v.op == opSub {
		number = b.constant(-1)
	}
	for x.op == opMul && x.args[0].number && !b.isStored(x) {
		number, x = b.mul(number, x.args[0]), x.args[1]
	}
	return Instruction{Op: AddScaled, A: b.row(v.args[0]), B: b.row(x), C: b.rowNumber(number)}
}

// isStored reports whether the vector v is already in memory, so that no instruction needs to compute it.
func (b *builder) isStored(v *value) bool {
	_, local := b.local[v]
	_, kept := b.matrices[v]
	return local || kept
}

// row returns the place of the vector v. If v has none, row emits instructions that compute v into a temporary.
func (b *builder) row(v *value) int {
	if at, ok := b.local[v]; ok {
		return at
	}
	if at, ok := b.matrices[v]; ok {
		return at
	}
	in := b.instruction(v)
	in.Dst = -1 - len(b.body.Each) // unique; see shareTemporaries
	b.local[v] = in.Dst
	b.emit(in)
	return in.Dst
}

func (b *builder) newVector(input string, rows Axis) int {
	b.program.Vectors = append(b.program.Vectors, Vector{input, rows})
	return len(b.program.Vectors) - 1
}

func (b *builder) newNumber(known map[*value]int, v *value) int {
	known[v] = len(b.program.Numbers)
	b.program.Numbers = append(b.program.Numbers, 0)
	return known[v]
}

// given returns the place of v if v is a constant, or a constant times the number of rows. Otherwise ok is false.
func (b *builder) given(v *value) (at int, ok bool) {
	if at, ok := b.scalars[v]; ok {
		return at, true
	}
	c, x := v.constantFactor()
	if x.op != opConst && x.op != opRows {
		return 0, false
	}
	at = b.newNumber(b.scalars, v)
	b.program.Numbers[at] = c
	if x.op == opConst {
		b.program.Numbers[at] = x.constant
	} else {
		b.program.perRow = append(b.program.perRow, at)
	}
	return at, true
}

// rowNumber returns the place of the number v. If v has none, rowNumber emits instructions that compute v for each
// row.
func (b *builder) rowNumber(v *value) int {
	if v.op == opRowSum {
		if at, ok := b.local[v]; ok {
			return at
		}
		row := b.row(v.args[0])
		at := b.newNumber(b.local, v)
		b.emit(Instruction{Op: RowSum, Dst: at, A: row})
		return at
	}
	return b.number(v, b.local, &b.body.Each, b.rowNumber)
}

// scalar returns the place of the number v. If v has none, scalar emits instructions that compute v once, after all
// rows.
func (b *builder) scalar(v *value) int { return b.number(v, b.scalars, &b.body.Then, b.scalar) }

func (b *builder) number(v *value, known map[*value]int, list *[]Instruction, operand func(v *value) int) int {
	if at, ok := b.given(v); ok {
		return at
	}
	if at, ok := known[v]; ok {
		return at
	}
	op, ok := numberOps[v.op]
	if b.require(ok, v); !ok {
		return 0
	}
	in := Instruction{Op: op, A: operand(v.args[0]), B: operand(v.args[1])}
	in.Dst = b.newNumber(known, v)
	*list = append(*list, in)
	return in.Dst
}

// shareTemporaries assigns scratch vectors to the temporaries (the vectors with negative places). Temporaries with
// disjoint lifetimes share a scratch vector, because GPUs have little shared memory for these vectors.
func (b *builder) shareTemporaries(each []Instruction) {
	last := make(map[int]int) // index of the last instruction that uses a temporary
	for i := range each {
		written, read := each[i].Operands()
		for _, v := range slices.Concat(written, read) {
			last[*v] = i
		}
	}
	var free []int
	for at, v := range b.program.Vectors {
		if v.Rows == One {
			free = append(free, at)
		}
	}
	places := make(map[int]int)
	for i := range each {
		written, read := each[i].Operands()
		for _, v := range read {
			if temporary := *v; temporary < 0 {
				*v = places[temporary]
				if last[temporary] == i {
					free, last[temporary] = append(free, *v), -1 // free it once, even if the instruction reads it twice
				}
			}
		}
		for _, v := range written {
			if temporary := *v; temporary < 0 {
				if len(free) == 0 {
					free = append(free, b.newVector("", One))
				}
				*v, free = free[len(free)-1], free[:len(free)-1]
				places[temporary] = *v
			}
		}
	}
}
