package graph

import (
	"fmt"
	"slices"
)

// placer makes the steps of a program: it gives the values of drafts places and
// their operations instructions, and refuses what no step does.
type placer struct {
	*simplifier
	*Program
	outputs []output

	vectorOf map[*value]int // matrices that steps have left
	numberOf map[*value]int // scalars
	holds    map[int]*value // what is in a matrix now, if a step has written it
	codes    *value         // what is in A now, nil until a step has written it
	closed   bool           // A is read no more: executors may scale its rows at the program's end

	draft *draft         // the one at hand
	local map[*value]int // its products, temporaries, and numbers of rows
	known map[*value]int // local or numberOf: where the next number is remembered
	list  *[]Instruction // where the next instruction goes
}

// place makes a program of drafts. Errors name the step.
func place(name string, s *simplifier, drafts []*draft, outputs []output) (*Program, error) {
	p := &placer{
		simplifier: s, outputs: outputs,
		Program: &Program{
			Name: name, Vectors: []Vector{VectorX: {"X", Words}, DecodeProduct: {"", Words}, AccumulateProduct: {"", Atoms}, SquaresProduct: {"", Atoms}},
			Outputs: make(map[string]int), inputs: make(map[string]int),
		},
		vectorOf: make(map[*value]int), numberOf: make(map[*value]int), holds: make(map[int]*value),
	}
	whole, err := p.whole(drafts)
	if err != nil {
		return nil, err
	}
	if whole != nil {
		p.Steps = []Step{whole}
		for _, d := range drafts {
			p.products += len(d.products)
		}
		return p.Program, nil
	}
	for i, d := range drafts {
		step, err := p.step(d)
		if err != nil {
			return nil, fmt.Errorf("step %d (%s) of the %s program: %w", i+1, d.kind(), name, err)
		}
		p.Steps = append(p.Steps, step)
		p.products += len(d.products)
	}
	for _, out := range outputs {
		if !p.leaves(out) {
			return nil, fmt.Errorf("result %s of the %s program: no step leaves %s there", out.name, name, out.value.formula(true))
		}
	}
	p.fuse(drafts)
	return p.Program, nil
}

// leaves reports whether the steps leave an output where it belongs: a matrix in
// that of the training, a number anywhere.
func (p *placer) leaves(out output) bool {
	switch out.name {
	case "A", "S", "Q":
		return p.codes != nil && (out.name != "A" || out.value == p.codes)
	case "D", "H":
		at, ok := p.vectorOf[out.value]
		return ok && p.Vectors[at].Input == out.name
	}
	at, ok := p.numberOf[out.value]
	p.Outputs[out.name] = at
	return ok
}

// output returns the value that is the result of that name, nil if there is none.
func (p *placer) output(name string) *value {
	for _, out := range p.outputs {
		if out.name == name {
			return out.value
		}
	}
	return nil
}

// step gives a draft its type.
func (p *placer) step(d *draft) (Step, error) {
	p.draft, p.local = d, make(map[*value]int)
	if d.kind() == "correlate" {
		return p.correlate()
	}
	if d.shape != (Shape{Words, Dims}) && d.shape != (Shape{Atoms, Dims}) {
		return nil, fmt.Errorf("no step computes %v values without a product of n×L and L×K", d.shape)
	}
	factor, squares := 0, false
	for _, v := range d.products {
		var err error
		if factor, err = p.factor(v); err != nil {
			return nil, err
		}
		left, _ := v.factors()
		switch {
		case d.shape[0] == Words:
			p.local[v] = DecodeProduct
		case left.squared:
			p.local[v], squares = SquaresProduct, true
		default:
			p.local[v] = AccumulateProduct
		}
	}
	body, err := p.body()
	if err != nil {
		return nil, err
	}
	switch d.kind() {
	case "decode":
		return &Decode{Atoms: factor, Body: body}, nil
	case "accumulate":
		return &Accumulate{Residuals: factor, Squares: squares, Body: body}, nil
	}
	return &Elementwise{body}, nil
}

// factor returns the matrix that the codes are multiplied with in a product of a
// decode or accumulate step.
func (p *placer) factor(v *value) (int, error) {
	left, right := v.factors()
	accumulate := p.draft.shape[0] == Atoms
	switch {
	case p.codes != nil && left.value.isLoad("A"), p.closed:
		return 0, fmt.Errorf("%s reads A after it was overwritten", v.formula(true))
	case left.value != p.codes && !left.value.isLoad("A"), left.transposed != accumulate, right.transposed,
		left.squared != right.squared, left.squared && !accumulate, right.value.isLoad("X"):
		return 0, fmt.Errorf("no kernel for the product %s", v.formula(true))
	}
	return p.matrix(right.value)
}

// correlate recognises dual averaging, which is all that is done with a product of
// n×L and L×K.
func (p *placer) correlate() (*Correlate, error) {
	d := p.draft
	product, sumG, sumQ := d.products[0], p.output("S"), p.output("Q")
	left, right := product.factors()
	if left.transposed || !right.transposed || left.squared || right.squared || left.value.isLoad("X") {
		return nil, fmt.Errorf("no kernel for the product %s", product.formula(true))
	}
	s := &Correlate{listing: d.listing(p.outputs)}
	var err error
	if s.Residuals, err = p.matrix(left.value); err != nil {
		return nil, err
	}
	if s.Atoms, err = p.matrix(right.value); err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(d.keeps), func(v *value) bool { return v == sumG || v == sumQ })
	if len(d.keeps) != 3 || len(rest) != 1 || len(d.totals) > 0 || p.codes != nil || p.output("A") == nil {
		return nil, fmt.Errorf("it leaves %v, where dual averaging leaves S, Q and codes, once", d.keeps)
	}
	p.codes = rest[0]
	a := p.codes
	if s.Nonnegative = a.op == opRelu; s.Nonnegative {
		a = a.args[0]
	}
	gradient, okG := p.added(sumG, "S", product)
	square, okQ := p.added(sumQ, "Q", p.unary(opSquare, product))
	var other *value
	switch {
	case !okG || gradient.op != opConst:
		other = sumG
	case !okQ || square.op != opConst:
		other = sumQ
	case a.op != opShrink || a.args[0] != sumG || a.args[1] != sumQ || !a.args[2].isLoad("t"):
		other = p.codes
	}
	if other != nil {
		return nil, fmt.Errorf("%v = %s is no dual averaging", other, other.formula(true))
	}
	s.Gradient, s.Square, s.Shrinkage = gradient.constant, square.constant, a.shrinkage
	return s, nil
}

// body makes instructions of what the draft does beside its products.
func (p *placer) body() (b Body, err error) {
	d := p.draft
	b = Body{Rows: d.shape[0], listing: d.listing(p.outputs)}
	p.known, p.list = p.local, &b.Each
	for _, v := range d.products {
		if slices.Contains(d.keeps, v) {
			one, _ := p.number(p.constant(1))
			p.emit(Instruction{Op: MulVN, Dst: p.keep(v), A: p.local[v], B: one})
		}
	}
	for _, v := range d.body { // those that only others read are made for them
		if slices.Contains(d.keeps, v) {
			if err := p.compute(v); err != nil {
				return b, err
			}
		}
	}
	for _, v := range d.totals {
		row, err := p.vector(v.args[0])
		if err != nil {
			return b, err
		}
		at := p.newNumber(p.numberOf, v)
		p.emit(Instruction{Op: RowSum, Dst: at, A: row})
		p.emit(Instruction{Op: Store, Dst: p.Stored, A: at})
		b.Then = append(b.Then, Instruction{Op: Total, Dst: at, A: p.Stored})
		p.Stored++
	}
	p.shareTemporaries(b.Each)
	p.known, p.list = p.numberOf, &b.Then
	for _, v := range d.scalars {
		if _, err := p.number(v); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (p *placer) emit(in Instruction) { *p.list = append(*p.list, in) }

// compute makes a vector of the draft at hand, after what it is computed from.
func (p *placer) compute(v *value) error {
	if v.op == opScaleRows && v.shape[1] == Atoms {
		return p.scaleCodes(v)
	}
	in, err := p.instruction(v)
	if err != nil {
		return err
	}
	if slices.Contains(p.draft.keeps, v) {
		in.Dst = p.keep(v)
	} else {
		in.Dst = -1 - len(*p.list) // any number that no other has; see shareTemporaries
		p.local[v] = in.Dst
	}
	p.emit(in)
	return nil
}

// scaleCodes multiplies rows of A.
func (p *placer) scaleCodes(v *value) error {
	if v.args[0] != p.codes || p.closed {
		return fmt.Errorf("no kernel for %s", v.formula(true))
	}
	factor, err := p.number(v.args[1])
	p.emit(Instruction{Op: ScaleCodes, A: factor})
	p.codes, p.closed = v, true
	return err
}

// numberOps are the operations on numbers.
var numberOps = map[valueOp]Op{opAdd: Add, opSub: Sub, opMul: Mul, opDiv: Div, opRatio: Ratio}

// vectorOps are the operations on vectors (v) and numbers (n), in the order of
// their arguments.
var vectorOps = map[valueOp]map[string]Op{
	opAdd:         {"vn": AddVN, "nv": AddVN},
	opSub:         {"vn": SubVN, "nv": SubNV},
	opMul:         {"vv": MulVV, "vn": MulVN, "nv": MulVN},
	opDiv:         {"vv": DivVV, "vn": DivVN, "nv": DivNV},
	opScaleRows:   {"vn": MulVN},
	opSquare:      {"vv": MulVV},
	opSqrt:        {"v": Sqrt},
	opAbs:         {"v": Abs},
	opSign:        {"v": Sign},
	opNotNegative: {"v": NotNegative},
	opRelu:        {"v": Relu},
}

// instruction is the one that makes a vector, but for where it goes.
func (p *placer) instruction(v *value) (in Instruction, err error) {
	args, ops := v.args, vectorOps[v.op]
	switch {
	case isCombination(v):
		return p.combination(v)
	case v.op == opSquare:
		args = []*value{args[0], args[0]}
	case v.op == opDiv && !args[0].isNumber() && args[1].op == opSqrt && !p.isMade(args[1]):
		args, ops = []*value{args[0], args[1].args[0]}, map[string]Op{"vv": DivRoot}
	}
	kinds, operands := "", [2]int{}
	for i, a := range args {
		find, kind := p.vector, "v"
		if a.isNumber() {
			find, kind = p.number, "n"
		}
		kinds += kind
		if operands[i], err = find(a); err != nil {
			return in, err
		}
	}
	if kinds == "nv" { // instructions name the vector first
		operands[0], operands[1] = operands[1], operands[0]
	}
	op, ok := ops[kinds]
	if !ok {
		err = fmt.Errorf("no kernel for %s", v.formula(true))
	}
	return Instruction{Op: op, A: operands[0], B: operands[1]}, err
}

// isCombination reports whether v is a sum or difference of two vectors. The second
// is multiplied by a number on the way.
func isCombination(v *value) bool {
	return (v.op == opAdd || v.op == opSub) && !slices.ContainsFunc(v.args, (*value).isNumber)
}

func (p *placer) combination(v *value) (in Instruction, err error) {
	number, x := p.constant(1), v.args[1]
	if v.op == opSub {
		number = p.constant(-1)
	}
	for x.op == opMul && x.args[0].isNumber() && !p.isMade(x) {
		if number, err = p.mul(number, x.args[0]); err != nil {
			return in, err
		}
		x = x.args[1]
	}
	in.Op = AddScaled
	if in.A, err = p.vector(v.args[0]); err != nil {
		return in, err
	}
	if in.B, err = p.vector(x); err != nil {
		return in, err
	}
	in.C, err = p.number(number)
	return in, err
}

// isMade reports whether a vector is at hand already.
func (p *placer) isMade(v *value) bool {
	_, local := p.local[v]
	_, kept := p.vectorOf[v]
	return local || kept
}

// input is the place of a matrix of the training.
func (p *placer) input(name string, rows Axis) int {
	at := slices.Index(p.Vectors, Vector{name, rows})
	if at < 0 {
		return p.newVector(name, rows)
	}
	return at
}

func (p *placer) newVector(input string, rows Axis) int {
	p.Vectors = append(p.Vectors, Vector{input, rows})
	return len(p.Vectors) - 1
}

// keep is the place of a matrix for later steps: a new one, or that of the
// training which it replaces.
func (p *placer) keep(v *value) int {
	at := -1
	for _, name := range []string{"D", "H"} {
		if v == p.output(name) && v.shape == inputShapes[name] {
			at = p.input(name, v.shape[0])
		}
	}
	if at < 0 {
		at = p.newVector("", v.shape[0])
	}
	p.vectorOf[v], p.holds[at] = at, v
	return at
}

// matrix finds a matrix of the training or of an earlier step.
func (p *placer) matrix(v *value) (int, error) {
	at, ok := p.vectorOf[v]
	if v.op == opLoad && v.shape[1] == Dims {
		at, ok = p.input(v.name, v.shape[0]), true
	}
	if !ok {
		return 0, fmt.Errorf("no kernel reads %v (%v)", v, v.shape)
	}
	if held := p.holds[at]; held != nil && held != v {
		return 0, fmt.Errorf("it reads %v after it was overwritten", v)
	}
	return at, nil
}

// vector finds an operand of which each row of the step has one, and computes it first if
// need be.
func (p *placer) vector(v *value) (int, error) {
	if v.shape != p.draft.shape {
		return 0, fmt.Errorf("no kernel reads %v (%v)", v, v.shape)
	}
	if !p.isMade(v) && slices.Contains(p.draft.body, v) {
		if err := p.compute(v); err != nil {
			return 0, err
		}
	}
	if at, ok := p.local[v]; ok {
		return at, nil
	}
	return p.matrix(v)
}

func (p *placer) newNumber(known map[*value]int, v *value) int {
	known[v] = len(p.Numbers)
	p.Numbers = append(p.Numbers, 0)
	return known[v]
}

// number finds a scalar or a number of the row, and computes it first if need be: before the
// program if it depends on no more than n and t, else where instructions go.
func (p *placer) number(v *value) (at int, err error) {
	known, list := p.known, p.list
	if v.given() {
		known, list = p.numberOf, &p.prepare
	}
	for _, m := range []map[*value]int{p.numberOf, known} {
		if at, ok := m[v]; ok {
			return at, nil
		}
	}
	var in Instruction
	switch op, ok := numberOps[v.op]; {
	case v.op == opConst:
		at = p.newNumber(known, v)
		p.Numbers[at] = v.constant
		return at, nil
	case v.op == opLoad && v.shape == Shape{}:
		at = p.newNumber(known, v)
		p.inputs[v.name] = at
		return at, nil
	case v.op == opRowSum:
		in.Op = RowSum
		in.A, err = p.vector(v.args[0])
	case ok && v.isNumber():
		in.Op = op
		if in.A, err = p.number(v.args[0]); err == nil {
			in.B, err = p.number(v.args[1])
		}
	default:
		err = fmt.Errorf("no kernel for the number %s", v.formula(true))
	}
	if err != nil {
		return 0, err
	}
	in.Dst = p.newNumber(known, v)
	*list = append(*list, in)
	return in.Dst, nil
}

// shareTemporaries gives temporaries, which have negative numbers, scratch memory:
// those that are not needed at the same time share it.
func (p *placer) shareTemporaries(body []Instruction) {
	last := make(map[int]int) // the instruction that needs a temporary last
	for i := range body {
		made, read := body[i].VectorOperands()
		for _, v := range append(made, read...) {
			last[*v] = i
		}
	}
	var free []int
	for at, v := range p.Vectors {
		if v.Rows == One {
			free = append(free, at)
		}
	}
	places := make(map[int]int)
	for i := range body {
		made, read := body[i].VectorOperands()
		for _, v := range read {
			if temporary := *v; temporary < 0 {
				*v = places[temporary]
				if last[temporary] == i {
					free, last[temporary] = append(free, *v), -1 // once, if it is read twice
				}
			}
		}
		for _, v := range made {
			if temporary := *v; temporary < 0 {
				if len(free) == 0 {
					free = append(free, p.newVector("", One))
				}
				*v, free = free[len(free)-1], free[:len(free)-1]
				places[temporary] = *v
			}
		}
	}
}
