package cpu

import (
	"fmt"
	"slices"

	"overcomplete/cpu/simd"
	"overcomplete/graph"
)

// executable is a compiled program: its values have places in a frame.
type executable struct {
	steps    []*step
	matrices []matrixPlace
	codes    []string // name of the input that stands there, "" if none
	numbers  []string // likewise
	totals   int      // sums over rows

	matrixOf map[*graph.Value]int
	codesOf  map[*graph.Value]int
	numberOf map[*graph.Value]int
	outputs  map[string]*graph.Value
}

// matrixPlace is a matrix that a step reads or leaves for later steps.
type matrixPlace struct {
	input string // the backend's matrix that it is, "" if it is the frame's own
	shape graph.Shape
}

// step is a compiled graph.Step. Its functions read and write the current row
// of a lane.
type step struct {
	kernels *simd.Kernels
	kind    graph.Kind
	shape   graph.Shape
	product []product
	squares bool // Accumulate: the second product is that of the squares

	average *averaging // Correlate: all that it does
	moves   *update    // Accumulate: the update that it is the first step of
	update  *update    // Elementwise: all that it and the two steps before it do

	body    []func(*lane)
	temps   int // scratch rows that the body needs
	numbers int // row numbers that the body needs

	totals  []func(*lane) // after all rows
	scalars []func(*lane)
}

// product multiplies what stands at the two places: codes by a matrix (Decode),
// codes by residuals (Accumulate).
type product struct{ left, right int }

// averaging is dual averaging of what stands at the places.
type averaging struct {
	residuals, atoms, codes int
	graph.DualAveraging
}

// vector returns an operand's part of the lane's current row.
type vector func(*lane) []float32

// number returns a scalar, or the current row's number.
type number func(*lane) float64

// compile places a program's values and turns its steps into functions. What
// this package cannot run is an error that names the step.
func compile(p *graph.Program, k *simd.Kernels) (*executable, error) {
	x := &executable{
		matrixOf: make(map[*graph.Value]int),
		codesOf:  make(map[*graph.Value]int),
		numberOf: make(map[*graph.Value]int),
		outputs:  make(map[string]*graph.Value),
	}
	for _, out := range p.Outputs {
		x.outputs[out.Name] = out.Value
	}
	for i, s := range p.Steps {
		c := compiler{executable: x, program: p, source: s, step: &step{kernels: k, kind: s.Kind(), shape: s.Shape}, local: make(map[*graph.Value]any)}
		if err := c.compile(); err != nil {
			return nil, fmt.Errorf("cpu: step %d (%s) of the %s program: %w", i+1, s.Kind(), p.Name, err)
		}
		x.steps = append(x.steps, c.step)
	}
	for _, s := range x.steps {
		if s.squares {
			return nil, fmt.Errorf("cpu: the %s program has products of squares that no update of the dictionary reads", p.Name)
		}
	}
	return x, nil
}

// overwrites returns the name of the input that a value replaces, or "".
func (x *executable) overwrites(v *graph.Value) string {
	for _, name := range []string{"D", "H", "S", "Q"} {
		if x.outputs[name] == v {
			return name
		}
	}
	return ""
}

// matrixAt is the place of an input or kept matrix.
func (x *executable) matrixAt(v *graph.Value) int {
	if at, ok := x.matrixOf[v]; ok {
		return at
	}
	place := matrixPlace{shape: v.Shape}
	if v.Op == graph.Load {
		place.input = v.Name
	} else {
		place.input = x.overwrites(v)
	}
	at := len(x.matrices)
	if place.input != "" {
		if old := slices.Index(x.matrices, place); old >= 0 {
			at = old
		}
	}
	if at == len(x.matrices) {
		x.matrices = append(x.matrices, place)
	}
	x.matrixOf[v] = at
	return at
}

// codesAt is the place of codes, numberAt that of a scalar.
func (x *executable) codesAt(v *graph.Value) int  { return placeOf(v, x.codesOf, &x.codes) }
func (x *executable) numberAt(v *graph.Value) int { return placeOf(v, x.numberOf, &x.numbers) }

func placeOf(v *graph.Value, places map[*graph.Value]int, names *[]string) int {
	at, ok := places[v]
	if !ok {
		at = len(*names)
		name := ""
		if v.Op == graph.Load {
			name = v.Name
		}
		*names = append(*names, name)
		places[v] = at
	}
	return at
}

// isCodes reports whether a value is held in compressed rows.
func (x *executable) isCodes(v *graph.Value) bool {
	if v.Shape != (graph.Shape{graph.Words, graph.Atoms}) || x.overwrites(v) != "" {
		return false
	}
	return v.Op != graph.Load || v.Name == "A"
}

// compiler turns one step into functions.
type compiler struct {
	*executable
	program *graph.Program
	source  *graph.Step
	step    *step
	local   map[*graph.Value]any // vector or number of a value computed in this step
}

func (c *compiler) compile() error {
	if c.step.kind == graph.Correlate {
		return c.compileAveraging()
	}
	if c.source.Shape[1] == graph.Atoms {
		return fmt.Errorf("no kernel for %v values without a product", c.source.Shape)
	}
	for i, v := range c.source.Products {
		if err := c.compileProduct(i, v); err != nil {
			return err
		}
	}
	if c.compileUpdate() {
		return nil
	}
	for _, v := range c.source.Body {
		if c.isTerm(v) || c.isRoot(v) {
			continue
		}
		if err := c.compileBody(v); err != nil {
			return err
		}
	}
	for _, v := range c.source.Totals {
		if err := c.compileTotal(v); err != nil {
			return err
		}
	}
	for _, v := range c.source.Scalars {
		value, err := c.arithmetic(v)
		if err != nil {
			return err
		}
		at := c.numberAt(v)
		c.step.scalars = append(c.step.scalars, func(l *lane) { l.frame.numbers[at] = value(l) })
	}
	return nil
}

// compileAveraging places what a Correlate step reads and leaves.
func (c *compiler) compileAveraging() error {
	d, err := c.program.DualAveraging(slices.Index(c.program.Steps, c.source))
	if err != nil {
		return err
	}
	c.step.average = &averaging{
		c.matrixAt(d.Residuals), c.matrixAt(d.Atoms), c.codesAt(d.Codes), d,
	}
	return nil
}

// compileProduct places the operands of the step's i-th product.
func (c *compiler) compileProduct(i int, v *graph.Value) error {
	if slices.Contains(c.source.Keeps, v) {
		return fmt.Errorf("the product %v is kept as it is", v)
	}
	left, right := v.Operands()
	unsupported := fmt.Errorf("no kernel for the product %s", v.Formula())
	plain := !left.Squared && !right.Squared
	if right.Value.Op == graph.Load && right.Value.Name != "D" {
		return unsupported // kernels read rows to the end of their padding, and only D's have that
	}
	var p product
	switch c.step.kind {
	case graph.Decode:
		if !plain || left.Transposed || right.Transposed || !c.isCodes(left.Value) {
			return unsupported
		}
		p = product{c.codesAt(left.Value), c.matrixAt(right.Value)}
	case graph.Accumulate:
		if !left.Transposed || right.Transposed || !c.isCodes(left.Value) {
			return unsupported
		}
		p = product{c.codesAt(left.Value), c.matrixAt(right.Value)}
		if i == 0 && !plain || i == 1 && (!left.Squared || !right.Squared || p != c.step.product[0]) || i > 1 {
			return unsupported
		}
		c.step.squares = i == 1
	}
	c.step.product = append(c.step.product, p)
	c.local[v] = vector(func(l *lane) []float32 { return l.productRow(i) })
	return nil
}

// compileBody compiles one body value, and what becomes of it.
func (c *compiler) compileBody(v *graph.Value) error {
	switch {
	case v.Shape == graph.Shape{graph.Words, graph.One}:
		value, err := c.arithmetic(v)
		if err != nil {
			return err
		}
		at := c.step.numbers
		c.step.numbers++
		c.emit(func(l *lane) { l.numbers[at] = value(l) })
		c.local[v] = number(func(l *lane) float64 { return l.numbers[at] })
		return nil
	case v.Op == graph.ScaleRows && c.isCodes(v):
		return c.compileScaleCodes(v)
	}
	if slices.Contains(c.source.Keeps, v) && c.isCodes(v) {
		return fmt.Errorf("codes %v outside a correlate step", v)
	}
	dst := c.destination(v)
	if err := c.compileVector(dst, v); err != nil {
		return err
	}
	c.local[v] = dst
	return nil
}

func (c *compiler) emit(f func(*lane)) { c.step.body = append(c.step.body, f) }

// destination is where a body value goes: its matrix if it is kept, else scratch.
func (c *compiler) destination(v *graph.Value) vector {
	if slices.Contains(c.source.Keeps, v) {
		return c.matrixRow(v)
	}
	at := c.step.temps
	c.step.temps++
	return func(l *lane) []float32 { return l.temp(at) }
}

func (c *compiler) matrixRow(v *graph.Value) vector {
	at := c.matrixAt(v)
	return func(l *lane) []float32 { return l.frame.matrices[at].Row(l.row) }
}

// compileScaleCodes scales rows of codes where they are. Only products of this
// step, which come first, may read the old values.
func (c *compiler) compileScaleCodes(v *graph.Value) error {
	factor, err := c.number(v.Args[1])
	if err != nil {
		return err
	}
	old := v.Args[0]
	at, ok := c.codesOf[old]
	if !ok || c.codes[at] != "" || c.step.kind != graph.Decode || c.readLater(old, v) {
		return fmt.Errorf("codes %v cannot be scaled in place", old)
	}
	c.codesOf[v] = at
	c.emit(func(l *lane) { l.frame.codes[at].scaleRow(l.row, float32(factor(l))) })
	return nil
}

// readLater reports whether anything but scaled reads codes from this step's
// body on.
func (c *compiler) readLater(codes, scaled *graph.Value) bool {
	later := slices.Clone(c.source.Body)
	at := slices.Index(c.program.Steps, c.source)
	for _, s := range c.program.Steps[at+1:] {
		later = slices.Concat(later, s.Products, s.Body)
	}
	for _, v := range later {
		if v != scaled && slices.Contains(v.Reads(), codes) {
			return true
		}
	}
	return slices.ContainsFunc(c.program.Outputs, func(out graph.Result) bool { return out.Value == codes })
}

func (c *compiler) compileTotal(v *graph.Value) error {
	row, err := c.vector(v.Args[0])
	if err != nil {
		return err
	}
	at, total := c.numberAt(v), c.executable.totals
	c.executable.totals++
	c.emit(func(l *lane) { l.frame.rowTotals[total][l.row] = c.step.kernels.Sum(row(l)) })
	c.step.totals = append(c.step.totals, func(l *lane) {
		f := l.frame
		var all float64
		for _, x := range f.rowTotals[total][:f.rows(c.step.shape[0])] {
			all += x
		}
		f.numbers[at] = all
	})
	return nil
}

// vector finds an operand that is as long as a row.
func (c *compiler) vector(v *graph.Value) (vector, error) {
	if local, ok := c.local[v].(vector); ok {
		return local, nil
	}
	if v.Shape != c.source.Shape || c.isCodes(v) {
		return nil, fmt.Errorf("no kernel reads %v (%v)", v, v.Shape)
	}
	if _, kept := c.matrixOf[v]; v.Op != graph.Load && !kept {
		return nil, fmt.Errorf("%v is not at hand", v)
	}
	return c.matrixRow(v), nil
}

// number finds an operand that is a scalar or a row's number.
func (c *compiler) number(v *graph.Value) (number, error) {
	if local, ok := c.local[v].(number); ok {
		return local, nil
	}
	if v.Op == graph.Const {
		return func(*lane) float64 { return v.Const }, nil
	}
	if _, known := c.numberOf[v]; v.Shape != (graph.Shape{}) || v.Op != graph.Load && !known {
		return c.arithmetic(v)
	}
	at := c.numberAt(v)
	return func(l *lane) float64 { return l.frame.numbers[at] }, nil
}

// isNumber reports whether a value is a scalar or a number for each word.
func isNumber(v *graph.Value) bool { return v.Shape[1] == graph.One }

// arithmetic compiles operations on numbers, in float64.
func (c *compiler) arithmetic(v *graph.Value) (number, error) {
	if v.Op == graph.RowSum {
		row, err := c.vector(v.Args[0])
		if err != nil {
			return nil, err
		}
		return func(l *lane) float64 { return c.step.kernels.Sum(row(l)) }, nil
	}
	f, ok := map[graph.Op]func(a, b float64) float64{
		graph.Add:   func(a, b float64) float64 { return a + b },
		graph.Sub:   func(a, b float64) float64 { return a - b },
		graph.Mul:   func(a, b float64) float64 { return a * b },
		graph.Div:   func(a, b float64) float64 { return a / b },
		graph.Ratio: graph.ClampedRatio,
	}[v.Op]
	if !ok || !isNumber(v) {
		return nil, fmt.Errorf("no kernel for the number %s", v.Formula())
	}
	a, err := c.number(v.Args[0])
	if err != nil {
		return nil, err
	}
	b, err := c.number(v.Args[1])
	if err != nil {
		return nil, err
	}
	return func(l *lane) float64 { return f(a(l), b(l)) }, nil
}

// isCombination reports whether v is a sum or difference of two vectors, which
// multiplies each by a number on the way.
func isCombination(v *graph.Value) bool {
	return (v.Op == graph.Add || v.Op == graph.Sub) && !slices.ContainsFunc(v.Args, isNumber)
}

// isTerm reports whether a body value is a number times a vector that only
// combinations use, perhaps with a further number. A vector that this step
// overwrites is read where the body says, not later.
func (c *compiler) isTerm(v *graph.Value) bool {
	if v.Op != graph.Mul || isNumber(v) || !isNumber(v.Args[0]) || slices.Contains(c.source.Keeps, v) {
		return false
	}
	if x := v.Args[1]; x.Op == graph.Load && slices.ContainsFunc(c.source.Keeps, func(kept *graph.Value) bool {
		return c.overwrites(kept) == x.Name
	}) {
		return false
	}
	for _, user := range slices.Concat(c.source.Body, c.source.Totals) {
		if slices.Contains(user.Args, v) && !isCombination(user) && !c.isTerm(user) {
			return false
		}
	}
	return true
}

// isRoot reports whether a body value is a square root that is only divided by.
func (c *compiler) isRoot(v *graph.Value) bool {
	if v.Op != graph.Sqrt || slices.Contains(c.source.Keeps, v) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(c.source.Body, c.source.Totals), func(user *graph.Value) bool {
		return slices.Contains(user.Args, v) && (user.Op != graph.Div || user.Args[0] == v || isNumber(user.Args[0]))
	})
}

// term splits v into a number and a vector.
func (c *compiler) term(v *graph.Value) (number, vector, error) {
	if !c.isTerm(v) {
		x, err := c.vector(v)
		return func(*lane) float64 { return 1 }, x, err
	}
	n, err := c.number(v.Args[0])
	if err != nil {
		return nil, nil, err
	}
	m, x, err := c.term(v.Args[1])
	return func(l *lane) float64 { return n(l) * m(l) }, x, err
}

// compileCombination compiles a ± b, each perhaps times a number.
func (c *compiler) compileCombination(dst vector, v *graph.Value) error {
	n, a, err := c.term(v.Args[0])
	if err != nil {
		return err
	}
	m, b, err := c.term(v.Args[1])
	if err != nil {
		return err
	}
	sign := 1.0
	if v.Op == graph.Sub {
		sign = -1
	}
	combine := c.step.kernels.Combine
	c.emit(func(l *lane) { combine(dst(l), float32(n(l)), a(l), float32(sign*m(l)), b(l)) })
	return nil
}

// compileVector compiles the operation that makes v, on rows.
func (c *compiler) compileVector(dst vector, v *graph.Value) error {
	if isCombination(v) {
		return c.compileCombination(dst, v)
	}
	unsupported := fmt.Errorf("no kernel for %s", v.Formula())
	k, args := c.step.kernels, v.Args
	divide := simd.Div
	if v.Op == graph.Div && c.isRoot(args[1]) {
		divide, args = k.DivSqrt, []*graph.Value{args[0], args[1].Args[0]}
	}
	var vectors []vector
	var numbers []number
	pattern := "" // v for a vector, n for a number
	for _, a := range args {
		if isNumber(a) {
			x, err := c.number(a)
			if err != nil {
				return err
			}
			numbers, pattern = append(numbers, x), pattern+"n"
		} else {
			x, err := c.vector(a)
			if err != nil {
				return err
			}
			vectors, pattern = append(vectors, x), pattern+"v"
		}
	}
	switch pattern {
	case "v":
		f, ok := map[graph.Op]func(dst, a []float32){
			graph.Square: func(dst, a []float32) { k.Mul(dst, a, a) }, graph.Sqrt: simd.Sqrt, graph.Abs: simd.Abs,
			graph.Sign: simd.Sign, graph.NotNegative: simd.NotNegative, graph.Relu: k.Relu,
		}[v.Op]
		if !ok {
			return unsupported
		}
		a := vectors[0]
		c.emit(func(l *lane) { f(dst(l), a(l)) })
	case "vv":
		f, ok := map[graph.Op]func(dst, a, b []float32){graph.Mul: k.Mul, graph.Div: divide}[v.Op]
		if !ok {
			return unsupported
		}
		a, b := vectors[0], vectors[1]
		c.emit(func(l *lane) { f(dst(l), a(l), b(l)) })
	case "nv", "vn":
		f, ok := map[string]func(dst, a []float32, n float32){
			"add nv": k.AddConst, "add vn": k.AddConst, "mul nv": k.Scale, "mul vn": k.Scale, "scale rows vn": k.Scale,
			"sub nv": simd.SubFrom, "sub vn": func(dst, a []float32, n float32) { k.AddConst(dst, a, -n) },
			"div nv": simd.DivInto, "div vn": func(dst, a []float32, n float32) { k.Scale(dst, a, 1/n) },
		}[v.Op.String()+" "+pattern]
		if !ok {
			return unsupported
		}
		a, n := vectors[0], numbers[0]
		c.emit(func(l *lane) { f(dst(l), a(l), float32(n(l))) })
	default:
		return unsupported
	}
	return nil
}
