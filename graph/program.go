package graph

import (
	"fmt"
	"strings"
)

// Program is a lowered training step: what an executor runs for each batch.
type Program struct {
	Name    string
	Steps   []*Step
	Outputs []Result
}

// Result is an output and its value. A result with an input's name replaces it.
type Result struct {
	Name  string
	Value *Value
}

// Step computes values of one shape in one sweep: first its products, then,
// element by element while those are at hand, its body.
//
// Steps run one after the other. Within a step, rows (words or atoms) are
// independent of each other but for the totals, and these are complete when
// the step is.
type Step struct {
	Shape    Shape    // n×L, n×K or K×L
	Products []*Value // MatMul
	Body     []*Value // elementwise values and row sums, each after its arguments
	Totals   []*Value // Sum, of values of this step
	Scalars  []*Value // of totals, computed when these are complete
	Keeps    []*Value // products and body values that later steps or the caller read
}

// Kind names what a step's products do; see [Step.Kind].
type Kind string

// The kinds of steps. A is held in compressed rows, so that the first two are
// sparse and only Correlate is dense.
const (
	Decode      Kind = "decode"      // n×L: codes · atoms
	Accumulate  Kind = "accumulate"  // K×L: codesᵀ · residuals
	Correlate   Kind = "correlate"   // n×K: residuals · atomsᵀ
	Elementwise Kind = "elementwise" // no product
)

// Kind returns the step's kind.
func (s *Step) Kind() Kind {
	switch {
	case len(s.Products) == 0:
		return Elementwise
	case s.Shape == Shape{Words, Dims}:
		return Decode
	case s.Shape == Shape{Words, Atoms}:
		return Correlate
	default:
		return Accumulate
	}
}

// Operand is a factor of a product: a value, perhaps squared, perhaps
// transposed.
type Operand struct {
	Value      *Value
	Squared    bool
	Transposed bool
}

// Operands returns the two factors of a MatMul.
func (v *Value) Operands() (left, right Operand) {
	return operand(v.Args[0]), operand(v.Args[1])
}

// Reads lists the values that v is computed from. A product squares and
// transposes its operands itself.
func (v *Value) Reads() []*Value {
	if v.Op != MatMul {
		return v.Args
	}
	left, right := v.Operands()
	return []*Value{left.Value, right.Value}
}

func operand(v *Value) (o Operand) {
	if v.Op == Transpose {
		o.Transposed, v = true, v.Args[0]
	}
	if v.Op == Square {
		o.Squared, v = true, v.Args[0]
	}
	o.Value = v
	return o
}

// String lists the program, a step a paragraph.
func (p *Program) String() string {
	var b strings.Builder
	products := 0
	for _, s := range p.Steps {
		products += len(s.Products)
	}
	fmt.Fprintf(&b, "%s: %d steps, %d products\n", p.Name, len(p.Steps), products)
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "  %d %s %v\n", i+1, s.Kind(), s.Shape)
		for _, group := range [][]*Value{s.Products, s.Body, s.Totals, s.Scalars} {
			for _, v := range group {
				if v.Name != "" {
					fmt.Fprintf(&b, "      %s = %s\n", v.Name, v.Formula())
				}
			}
		}
		if len(s.Keeps) > 0 {
			names := make([]string, len(s.Keeps))
			for i, v := range s.Keeps {
				names[i] = v.String()
			}
			fmt.Fprintf(&b, "      keep %s\n", strings.Join(names, ", "))
		}
	}
	return b.String()
}
