//go:build gpu

package kernels

import (
	"fmt"
	"maps"
	"slices"

	"overcomplete/internal/program"
)

// executable is a program compiled to kernel launches, for batches of any size.
type executable struct {
	*program.Program
	numbers    int // count of numbers, including the scales and the sums over runs
	steps      []*step
	halves     []halfMatrix
	share      int            // first place of the additional partial products of decode (split-K), or 0
	sums       map[string]int // index of each number that is summed over runs: loss, error, shortened, nonzeros, l1
	rowNumbers int            // count of the numbers that each row stores for totals and factors
	finish     *finish        // nil if the program doesn't update the codes
}

// halfMatrix is a float16 copy of a float32 matrix.
type halfMatrix struct {
	vector int // index of the float32 matrix
	place  int // place of the copy: its index in instructions
	number int // index of the copy's scale
}

// finish holds the indices of row numbers for the kernel finish_codes. The kernel scales and counts updated codes.
type finish struct {
	factors      int // −1 if codes aren't scaled
	nonzeros, l1 int
}

// step is a product, followed by instructions of the row machine: body for each row, then totals after all rows.
type step struct {
	program.Step
	rows    program.Axis
	body    []instruction
	totals  []instruction
	scratch []int // vectors that body stores in scratch rows

	// The launches of the instructions, without the number of rows; newProgram sets them.
	bodyLaunch   body
	totalsLaunch totals
}

// compile translates a program to kernel launches of a precision.
func compile(p *program.Program, precision Precision) *executable {
	x := &executable{
		Program: p, numbers: len(p.Numbers), rowNumbers: p.Stored, sums: make(map[string]int),
	}
	steps := p.Steps
	if precision == fp16 {
		if i := slices.IndexFunc(steps, is[*program.Correlate]); i >= 0 {
			x.addCodeUpdate(steps[i].(*program.Correlate), steps[i+1].(*program.Decode))
			steps = nil
		}
		for _, s := range steps {
			x.addHalfFactors(s)
		}
		// Programs that update the dictionary run on few rows, which make few tiles. So several blocks share each tile.
		if slices.ContainsFunc(steps, is[*program.Update]) {
			x.share = x.places()
		}
	}
	for _, s := range steps {
		x.add(s)
	}
	x.addReportedSums()
	return x
}

func is[S program.Step](s program.Step) bool { _, ok := s.(S); return ok }

// addCodeUpdate adds the steps of [program.Code] with the squared loss. The kernel update_codes runs all of them. The
// kernel keeps residuals and decoded codes on chip, so the program has no vectors after D. Row number 0 is the loss.
func (x *executable) addCodeUpdate(s *program.Correlate, damping *program.Decode) {
	short := *x.Program
	short.Vectors = short.Vectors[:s.Atoms+1]
	x.Program = &short
	x.addHalfFactor(s.Atoms)
	x.finish = &finish{factors: x.rowNumbers}
	x.rowNumbers++
	x.addBody(s, &program.Body{Rows: program.Rows, Then: damping.Then})
}

// addHalfFactors adds float16 copies of the matrices that a step multiplies.
func (x *executable) addHalfFactors(s program.Step) {
	switch s := s.(type) {
	case *program.Update:
		x.addHalfFactors(s.Accumulate)
		x.addHalfFactors(s.Search)
	case *program.Decode:
		x.addHalfFactor(s.Atoms)
	case *program.Accumulate:
		x.addHalfFactor(s.Residuals)
	}
}

func (x *executable) addHalfFactor(vector int) {
	if x.halvesOf(vector) == nil {
		x.halves = append(x.halves, halfMatrix{vector, x.places(), x.numbers})
		x.numbers++
	}
}

// places returns the number of places: one for each vector and each float16 copy, and one for translate's
// scratch vector.
func (x *executable) places() int { return len(x.Vectors) + 1 + len(x.halves) }

func (x *executable) halvesOf(vector int) *halfMatrix {
	for i := range x.halves {
		if x.halves[i].vector == vector {
			return &x.halves[i]
		}
	}
	return nil
}

func (x *executable) add(s program.Step) {
	switch s := s.(type) {
	case *program.Update:
		if x.halvesOf(s.P) != nil { // the kernel update_fp16 does the elementwise work of Body.Each
			x.addBody(s, &program.Body{Rows: program.Atoms, Then: s.Accumulate.Then})
		} else {
			x.add(s.Accumulate)
		}
		x.add(s.Search)
		x.joinTotals()
		x.add(s.Move)
	case *program.Correlate:
		x.finish = &finish{factors: -1}
		x.addBody(s, &program.Body{Rows: program.Rows})
	case *program.Decode:
		x.addBody(s, &s.Body)
	case *program.Accumulate:
		x.addBody(s, &s.Body)
	case *program.Elementwise:
		x.addBody(s, &s.Body)
	default:
		panic(fmt.Sprintf("kernels: no kernels for a %T", s))
	}
}

// joinTotals moves the totals over rows from earlier steps to the last step, the Search of an Update. These totals
// are the loss, which no step of the program reads.
func (x *executable) joinTotals() {
	search := x.steps[len(x.steps)-1]
	for _, s := range x.steps[:len(x.steps)-1] {
		if s.rows == program.Rows {
			search.totals, s.totals = append(s.totals, search.totals...), nil
		}
	}
}

func (x *executable) addBody(s program.Step, b *program.Body) {
	t := &step{Step: s, rows: b.Rows}
	if _, ok := s.(*program.Decode); ok && x.share > 0 {
		for i := range halfDecodeShares - 1 {
			t.body = append(t.body, instruction{opAddVV, program.DecodeProduct, program.DecodeProduct, int32(x.share + i)})
		}
	}
	for i, in := range b.Each {
		if list := x.translate(in, t); !t.fuse(in, b.Each[i+1:]) {
			t.body = append(t.body, list...)
		}
		made, read := in.Operands()
		for _, v := range append(read, made...) {
			if x.Vectors[*v].Rows == program.One {
				t.reserveScratch(*v)
			}
		}
	}
	for _, h := range x.halves {
		if slices.ContainsFunc(b.Each, func(in program.Instruction) bool {
			made, _ := in.Operands()
			return len(made) > 0 && *made[0] == h.vector
		}) {
			t.body = append(t.body, instruction{opHalves, int32(h.place), int32(h.vector), int32(h.number)})
		}
	}
	for _, in := range b.Then {
		t.totals = append(t.totals, x.translate(in, t)...)
	}
	x.steps = append(x.steps, t)
}

// fuse merges an elementwise product and its row sum into opRowDot if no following instruction reads the
// product. It reports whether it merged them.
func (s *step) fuse(in program.Instruction, following []program.Instruction) bool {
	if in.Op != program.RowSum || len(s.body) == 0 || !slices.Contains(s.scratch, in.A) {
		return false
	}
	last := &s.body[len(s.body)-1]
	if last.op != opMulVV || int(last.dst) != in.A {
		return false
	}
	for _, f := range following {
		made, read := f.Operands()
		if slices.ContainsFunc(read, func(v *int) bool { return *v == in.A }) {
			return false
		}
		if slices.ContainsFunc(made, func(v *int) bool { return *v == in.A }) {
			break
		}
	}
	*last = instruction{opRowDot, int32(in.Dst), last.a, last.b}
	return true
}

func (s *step) reserveScratch(vector int) {
	if !slices.Contains(s.scratch, vector) {
		s.scratch = append(s.scratch, vector)
	}
}

// ops maps operations to the row machine's instructions of the same meaning.
var ops = map[program.Op]op{
	program.MulVV: opMulVV, program.AddVN: opAddVN, program.SubVN: opSubVN, program.MulVN: opMulVN,
	program.Abs: opAbs, program.Sign: opSign, program.Relu: opRelu,
	program.RowSum: opRowSum, program.Mul: opMul, program.Ratio: opRatio,
	program.Store: opStore, program.Total: opTotal,
}

// translate translates an instruction for the row machine. It may use one scratch vector, whose index follows the
// program's vectors.
func (x *executable) translate(in program.Instruction, s *step) (list []instruction) {
	scratch := len(x.Vectors)
	emit := func(o op, dst, a, b int) { list = append(list, instruction{o, int32(dst), int32(a), int32(b)}) }
	switch in.Op {
	case program.AddScaled:
		switch c := x.Numbers[in.C]; { // c is 0 if a step computes the number
		case c == 1 && x.SameInBatches(in.C):
			emit(opAddVV, in.Dst, in.A, in.B)
		case c == -1 && x.SameInBatches(in.C):
			emit(opSubVV, in.Dst, in.A, in.B)
		default:
			s.reserveScratch(scratch)
			emit(opMulVN, scratch, in.B, in.C)
			emit(opAddVV, in.Dst, in.A, scratch)
		}
	case program.DivRoot:
		s.reserveScratch(scratch)
		emit(opSqrt, scratch, in.B, 0)
		emit(opDivVV, in.Dst, in.A, scratch)
	case program.ScaleCodes: // the kernel finish_codes scales, because it reads all nonzeros of a row
		x.finish.factors = x.rowNumbers
		x.rowNumbers++
		emit(opStore, x.finish.factors, in.A, 0)
	default:
		emit(ops[in.Op], in.Dst, in.A, in.B)
	}
	return list
}

// addReportedSums appends instructions that add the outputs of each run to the sums that readSums returns.
func (x *executable) addReportedSums() {
	last := &x.steps[len(x.steps)-1].totals // the last totals that are not empty
	for i := len(x.steps) - 1; i >= 0 && len(*last) == 0 && x.finish == nil; i-- {
		last = &x.steps[i].totals
	}
	number := func(o op, a int) int {
		*last = append(*last, instruction{o, int32(x.numbers), int32(a), 0})
		x.numbers++
		return x.numbers - 1
	}
	for _, name := range slices.Sorted(maps.Keys(x.Outputs)) {
		at := x.Outputs[name]
		if name == "alpha" {
			x.sums["shortened"] = number(opCountBelowOne, at)
		} else {
			x.sums[name] = number(opAccumulate, at)
		}
	}
	if x.finish != nil {
		x.finish.nonzeros, x.finish.l1 = x.rowNumbers, x.rowNumbers+1
		x.rowNumbers += 2
		x.sums["nonzeros"] = number(opAccumulate, number(opTotal, x.finish.nonzeros))
		x.sums["l1"] = number(opAccumulate, number(opTotal, x.finish.l1))
	}
}
