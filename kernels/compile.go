package kernels

import (
	"fmt"
	"slices"

	"overcomplete/graph"
)

// executable is a program compiled for a GPU. All its sizes are still open.
type executable struct {
	steps      []*step
	matrices   []matrix
	numbers    []float64      // before the program runs; inputs are 0
	inputs     map[string]int // numbers n and t, if they are used
	sums       map[string]int // numbers that add up over runs: loss, error, shortened, nonzeros, l1
	rowNumbers int            // that rows leave for totals and factors
	finish     *finish        // nil if the program leaves the codes alone
}

// finish ends a program that renews codes: it scales and counts them.
type finish struct {
	factors      int // row number, or −1
	nonzeros, l1 int // row numbers
}

// inputMatrix is X. It is the first vector of every body too: where its rows
// are differs from batch to batch.
const inputMatrix = 0

// matrix is a matrix of vectors (of words or atoms) in device memory.
type matrix struct {
	input string // X, D or H, or "" for one of the program's own
	shape graph.Shape
}

// step is a compiled graph.Step: first its product, then a program that runs
// on each row, then one that runs once.
type step struct {
	kind    graph.Kind
	shape   graph.Shape
	product []product

	averaging graph.DualAveraging // Correlate only: all that is done there

	vectors []vector
	temps   int
	body    []instruction
	totals  []instruction
}

// product names the matrices of a product: its result, and its factors but for
// the codes. A Correlate's result never exists; a second product of an
// Accumulate is that of the squares.
type product struct {
	result      int
	left, right int // left: Correlate only
}

// vector is an operand of the body: a row of a matrix, or of scratch memory.
type vector struct {
	matrix int // −1 for scratch
	temp   int
}

// compile turns a program into kernel launches. What this package cannot run is
// an error that names the step.
func compile(p *graph.Program) (*executable, error) {
	x := &executable{inputs: make(map[string]int)}
	c := compiler{executable: x, program: p, matrixOf: make(map[*graph.Value]int), slotOf: make(map[*graph.Value]int)}
	c.matrices = []matrix{{input: "X", shape: graph.Shape{graph.Words, graph.Dims}}}
	for i, s := range p.Steps {
		c.source, c.step = s, &step{kind: s.Kind(), shape: s.Shape}
		c.vectorOf, c.rowSlotOf = make(map[*graph.Value]int), make(map[*graph.Value]int)
		c.step.vectors = []vector{{matrix: inputMatrix}}
		if err := c.compile(i); err != nil {
			return nil, fmt.Errorf("kernels: step %d (%s) of the %s program: %w", i+1, s.Kind(), p.Name, err)
		}
		x.steps = append(x.steps, c.step)
	}
	outputs := make(map[string]int)
	for _, out := range p.Outputs {
		if slot, ok := c.slotOf[out.Value]; ok {
			outputs[out.Name] = slot
		}
	}
	x.measure(outputs)
	return x, nil
}

// compiler compiles one step after the other.
type compiler struct {
	*executable
	program  *graph.Program
	matrixOf map[*graph.Value]int
	slotOf   map[*graph.Value]int // numbers that hold for the whole program
	codes    *graph.Value         // what A's memory holds, if not A any more

	source    *graph.Step
	step      *step
	vectorOf  map[*graph.Value]int
	rowSlotOf map[*graph.Value]int // numbers that hold for a row of this step
}

// compile compiles the program's i-th step.
func (c *compiler) compile(i int) error {
	if c.step.kind == graph.Correlate {
		d, err := c.program.DualAveraging(i)
		if err != nil {
			return err
		}
		return c.compileCorrelate(d)
	}
	for i, v := range c.source.Products {
		if err := c.compileProduct(i, v); err != nil {
			return err
		}
	}
	if c.step.kind == graph.Accumulate && len(c.step.product) != 2 {
		return fmt.Errorf("no kernel for %s alone", c.source.Products[0].Formula())
	}
	free := new(temps)
	for i, v := range c.source.Body {
		if err := c.compileBody(v, free); err != nil {
			return err
		}
		for _, a := range v.Args {
			if at, ok := c.vectorOf[a]; ok && !c.usedAfter(a, i) {
				free.release(c.step.vectors[at])
			}
		}
	}
	c.step.temps = free.most
	for _, v := range c.source.Totals {
		row, err := c.vector(v.Args[0])
		if err != nil {
			return err
		}
		slot := c.newSlot(0)
		c.emit(opRowSum, slot, row, 0)
		c.emit(opStore, c.rowNumbers, slot, 0)
		c.slotOf[v] = slot
		c.step.totals = append(c.step.totals, instruction{opTotal, int32(slot), int32(c.rowNumbers), 0})
		c.rowNumbers++
	}
	for _, v := range c.source.Scalars {
		if _, err := c.number(v, &c.step.totals, c.slotOf); err != nil {
			return err
		}
	}
	return nil
}

// temps hands out scratch rows.
type temps struct {
	free []int
	most int
}

func (t *temps) take() vector {
	if n := len(t.free); n > 0 {
		at := t.free[n-1]
		t.free = t.free[:n-1]
		return vector{-1, at}
	}
	t.most++
	return vector{-1, t.most - 1}
}

func (t *temps) release(v vector) {
	if v.matrix < 0 && !slices.Contains(t.free, v.temp) {
		t.free = append(t.free, v.temp)
	}
}

// usedAfter reports whether a value is read after the body's i-th.
func (c *compiler) usedAfter(v *graph.Value, i int) bool {
	return slices.ContainsFunc(slices.Concat(c.source.Body[i+1:], c.source.Totals), func(user *graph.Value) bool {
		return slices.Contains(user.Args, v)
	})
}

func (c *compiler) emit(o op, dst, a, b int) {
	c.step.body = append(c.step.body, instruction{o, int32(dst), int32(a), int32(b)})
}

func (c *compiler) newSlot(value float64) int {
	c.numbers = append(c.numbers, value)
	return len(c.numbers) - 1
}

// newMatrix gives a value a matrix of its own, unless it is, or replaces, one of
// the training's.
func (c *compiler) newMatrix(v *graph.Value) int {
	m := matrix{shape: v.Shape}
	if v.Op == graph.Load {
		m.input = v.Name
	}
	for _, out := range c.program.Outputs {
		if out.Value == v && (out.Name == "D" || out.Name == "H") {
			m.input = out.Name
		}
	}
	at := -1
	if m.input != "" {
		at = slices.Index(c.matrices, m)
	}
	if at < 0 {
		at = len(c.matrices)
		c.matrices = append(c.matrices, m)
	}
	c.matrixOf[v] = at
	return at
}

// factor is the matrix of a product's dense operand.
func (c *compiler) factor(v *graph.Value) (int, bool) {
	if at, ok := c.matrixOf[v]; ok {
		return at, true
	}
	if v.Op != graph.Load || v.Shape[1] != graph.Dims {
		return 0, false
	}
	return c.newMatrix(v), true
}

// isCodes reports whether a value is what A's memory holds now.
func (c *compiler) isCodes(v *graph.Value) bool {
	if c.codes != nil {
		return v == c.codes
	}
	return v.Op == graph.Load && v.Name == "A"
}

func (c *compiler) compileProduct(i int, v *graph.Value) error {
	left, right := v.Operands()
	at, ok := c.factor(right.Value)
	square := left.Squared && right.Squared
	switch accumulate := c.step.kind == graph.Accumulate; {
	case !ok, !c.isCodes(left.Value), right.Transposed, left.Transposed != accumulate:
		ok = false
	case i == 1 && accumulate:
		ok = square && at == c.step.product[0].right
	default:
		ok = !left.Squared && !right.Squared && !(i > 0 && accumulate)
	}
	if !ok {
		return fmt.Errorf("no kernel for the product %s", v.Formula())
	}
	c.step.product = append(c.step.product, product{result: c.newMatrix(v), right: at})
	return nil
}

// compileBody compiles one value of the body.
func (c *compiler) compileBody(v *graph.Value, free *temps) error {
	switch {
	case v.Shape[1] == graph.One:
		_, err := c.number(v, &c.step.body, c.rowSlotOf)
		return err
	case v.Op == graph.ScaleRows && c.finish != nil && c.isCodes(v.Args[0]):
		return c.scaleCodes(v)
	}
	o, args, err := c.operation(v)
	if err != nil {
		return err
	}
	var dst vector
	if slices.Contains(c.source.Keeps, v) {
		dst.matrix = c.newMatrix(v)
	} else {
		dst = free.take()
	}
	c.step.vectors = append(c.step.vectors, dst)
	c.vectorOf[v] = len(c.step.vectors) - 1
	c.emit(o, c.vectorOf[v], args[0], args[1])
	return nil
}

// scaleCodes leaves the factors of codes for the end of the program.
func (c *compiler) scaleCodes(v *graph.Value) error {
	last := c.program.Steps[len(c.program.Steps)-1] == c.source
	if !last || c.finish.factors >= 0 || c.usedAfter(v, slices.Index(c.source.Body, v)) {
		return fmt.Errorf("codes %v are read after they are scaled", v.Args[0])
	}
	slot, err := c.number(v.Args[1], &c.step.body, c.rowSlotOf)
	if err != nil {
		return err
	}
	c.finish.factors = c.rowNumbers
	c.rowNumbers++
	c.emit(opStore, c.finish.factors, slot, 0)
	return nil
}

// vector finds an operand that is as long as a row.
func (c *compiler) vector(v *graph.Value) (int, error) {
	if at, ok := c.vectorOf[v]; ok {
		return at, nil
	}
	at, ok := c.factor(v)
	if ok && at == inputMatrix {
		return 0, nil
	}
	if !ok || v.Shape != c.source.Shape {
		return 0, fmt.Errorf("no kernel reads %v (%v)", v, v.Shape)
	}
	c.step.vectors = append(c.step.vectors, vector{matrix: at})
	c.vectorOf[v] = len(c.step.vectors) - 1
	return c.vectorOf[v], nil
}

// number finds an operand that is a scalar or a row's number. What has to be
// computed for it is appended to list and remembered in known.
func (c *compiler) number(v *graph.Value, list *[]instruction, known map[*graph.Value]int) (int, error) {
	if slot, ok := known[v]; ok {
		return slot, nil
	}
	if slot, ok := c.slotOf[v]; ok {
		return slot, nil
	}
	switch {
	case v.Op == graph.Const:
		c.slotOf[v] = c.newSlot(v.Const)
		return c.slotOf[v], nil
	case v.Op == graph.Load && v.Shape == graph.Shape{}:
		c.slotOf[v] = c.newSlot(0)
		c.inputs[v.Name] = c.slotOf[v]
		return c.slotOf[v], nil
	case v.Op == graph.RowSum:
		row, err := c.vector(v.Args[0])
		if err != nil {
			return 0, err
		}
		known[v] = c.newSlot(0)
		*list = append(*list, instruction{opRowSum, int32(known[v]), int32(row), 0})
		return known[v], nil
	}
	o, ok := map[graph.Op]op{graph.Add: opAdd, graph.Sub: opSub, graph.Mul: opMul, graph.Div: opDiv, graph.Ratio: opRatio}[v.Op]
	if !ok || v.Shape[1] != graph.One {
		return 0, fmt.Errorf("no kernel for the number %s", v.Formula())
	}
	a, err := c.number(v.Args[0], list, known)
	if err != nil {
		return 0, err
	}
	b, err := c.number(v.Args[1], list, known)
	if err != nil {
		return 0, err
	}
	known[v] = c.newSlot(0)
	*list = append(*list, instruction{o, int32(known[v]), int32(a), int32(b)})
	return known[v], nil
}

// operation is the instruction that computes a vector, and its operands.
func (c *compiler) operation(v *graph.Value) (o op, args [2]int, err error) {
	pattern := "" // v for a vector, n for a number
	for i, a := range v.Args {
		if a.Shape[1] == graph.One {
			pattern += "n"
			args[i], err = c.number(a, &c.step.body, c.rowSlotOf)
		} else {
			pattern += "v"
			args[i], err = c.vector(a)
		}
		if err != nil {
			return 0, args, err
		}
	}
	if v.Op == graph.Square {
		args[1] = args[0]
	}
	if pattern == "nv" { // the vector comes first in instructions
		args[0], args[1] = args[1], args[0]
	}
	o, ok := map[string]op{
		"add vv": opAddVV, "sub vv": opSubVV, "mul vv": opMulVV, "div vv": opDivVV, "square v": opMulVV,
		"add vn": opAddVN, "sub vn": opSubVN, "mul vn": opMulVN, "div vn": opDivVN, "scale rows vn": opMulVN,
		"add nv": opAddVN, "sub nv": opSubNV, "mul nv": opMulVN, "div nv": opDivNV,
		"sqrt v": opSqrt, "abs v": opAbs, "sign v": opSign, "not negative v": opNotNegative, "relu v": opRelu,
	}[v.Op.String()+" "+pattern]
	if !ok {
		return 0, args, fmt.Errorf("no kernel for %s", v.Formula())
	}
	return o, args, nil
}

// compileCorrelate places the factors of dual averaging, which has a kernel of
// its own.
func (c *compiler) compileCorrelate(d graph.DualAveraging) error {
	left, okLeft := c.matrixOf[d.Residuals]
	right, okRight := c.factor(d.Atoms)
	if !okLeft || !okRight {
		return fmt.Errorf("no kernel for the product %s", c.source.Products[0].Formula())
	}
	c.step.product = []product{{left: left, right: right}}
	c.step.averaging = d
	c.codes, c.finish = d.Codes, &finish{factors: -1}
	return nil
}

// measure has each run of the program add what a pass is asked about to sums.
func (x *executable) measure(outputs map[string]int) {
	last := &x.steps[len(x.steps)-1].totals
	number := func(o op, a int) int {
		x.numbers = append(x.numbers, 0)
		slot := len(x.numbers) - 1
		*last = append(*last, instruction{o, int32(slot), int32(a), 0})
		return slot
	}
	x.sums = make(map[string]int)
	for _, name := range []string{"loss", "error"} {
		if slot, ok := outputs[name]; ok {
			x.sums[name] = number(opAccumulate, slot)
		}
	}
	if alpha, ok := outputs["alpha"]; ok {
		x.sums["shortened"] = number(opCountBelowOne, alpha)
	}
	if x.finish != nil {
		x.finish.nonzeros, x.finish.l1 = x.rowNumbers, x.rowNumbers+1
		x.rowNumbers += 2
		x.sums["nonzeros"] = number(opAccumulate, number(opTotal, x.finish.nonzeros))
		x.sums["l1"] = number(opAccumulate, number(opTotal, x.finish.l1))
	}
}
