// Package program compiles the steps of the paper's trainer to programs that devices run.
//
// [Dictionary], [Code], [Authors] and [Evaluate] return the programs of the steps that package graph specifies under
// the same names. A program consists of matrix products and instructions. Devices have kernels for the products. The
// instructions do the elementwise work on the rows of the products. They also compute the loss and its gradient,
// which this package lowers from Gorgonia's graph. ExampleDictionary prints a program.
package program

import (
	"fmt"
	"slices"
	"strings"

	"overcomplete/graph"
)

// A Program is a list of steps to run in order, for a batch of any size.
//
// It reads the vectors X, and updates the codes A, the dictionary D and the sums H, S and Q of gradients in place
// (see [graph.Expression]). A [Correlate] step replaces A. Earlier steps multiply the old codes, and later steps
// multiply the new codes.
type Program struct {
	Name    string
	Steps   []Step
	Vectors []Vector       // operands with rows of length L; the first are X and the products
	Numbers []float64      // initial values for a batch of one row: constants, and 0 for computed numbers
	Outputs map[string]int // indices of the results in the numbers, by name, such as "loss"
	Stored  int            // number of values that each row stores for totals
	Squared bool           // reports whether the program differentiates the squared loss

	perRow []int // indices of numbers to multiply by the number of rows
}

// Start sets numbers, of length len(p.Numbers), to the initial values for a batch of the given number of rows.
func (p *Program) Start(numbers []float64, rows int) {
	copy(numbers, p.Numbers)
	for _, i := range p.perRow {
		numbers[i] *= float64(rows)
	}
}

// SameInBatches reports whether the initial value of number i is the same for batches of every size.
func (p *Program) SameInBatches(i int) bool { return !slices.Contains(p.perRow, i) }

// An Axis is a symbolic number of rows.
type Axis byte

const (
	One   Axis = iota // 1: scratch memory for the current row
	Rows              // n, the number of rows of the batch
	Atoms             // K, the number of atoms
)

func (a Axis) String() string { return [...]string{"1", "n", "K"}[a] }

// A Vector is an operand with rows of L elements.
type Vector struct {
	Input string // "X", "D" or "H" for a matrix of the training, otherwise ""
	Rows  Axis
}

// The first vectors of every program are X and the products of the current step.
const (
	VectorX           = iota
	DecodeProduct     // n×L, the product of a [Decode] step
	AccumulateProduct // K×L, the product of an [Accumulate] step
	SquaresProduct    // K×L, the second product of an [Accumulate] step, of squared codes and squared residuals
)

// A Step is one of
//
//	*Decode       n×L  codes · atoms, then elementwise work
//	*Accumulate   K×L  codesᵀ · residuals, perhaps also (codes²)ᵀ · residuals², then elementwise work
//	*Correlate    n×K  residuals · atomsᵀ, then dual averaging of the codes
//	*Elementwise  K×L  elementwise work alone
//	*Update            an Accumulate, a Decode and an Elementwise step that update the dictionary
//
// The rows of a step (rows or atoms) are independent of each other, except for totals, which are complete
// at the end of the step.
type Step interface {
	lines() []string // for the program's listing
}

// Decode multiplies the codes with atoms, A·atoms.
type Decode struct {
	Atoms int // index of a K×L matrix in Program.Vectors
	Body
}

// Accumulate multiplies the codes with residuals, Aᵀ·residuals. If Squares is set, it also computes
// (A∘A)ᵀ·(residuals∘residuals).
type Accumulate struct {
	Residuals int // index of an n×L matrix in Program.Vectors
	Squares   bool
	Body
}

// Elementwise is a step without a product.
type Elementwise struct{ Body }

// Correlate multiplies residuals with atoms, p = residuals·atomsᵀ, and updates each element of the codes by
// regularised dual averaging:
//
//	S += Gradient·p,  Q += Square·p²,  A = Shrinkage.Apply(S, Q, t); Nonnegative: max(A, 0)
type Correlate struct {
	Residuals int // index of an n×L matrix in Program.Vectors
	Atoms     int // index of a K×L matrix in Program.Vectors

	Gradient, Square float64
	graph.Shrinkage
	Nonnegative bool

	listing []string
}

// Update updates the dictionary by AdaGrad with a line search, from the residuals E of its Accumulate step:
//
//	M = AᵀE,  N = (A∘A)ᵀ(E∘E)
//	H += max(c0·N + D∘(c1·M + c2·D), 0)
//	P = (c3·D + c4·M)/√(H+ε)
//	W = AP, which determines α
//	D += c5·α·P
//
// A device may run the three steps one after the other. It may also add the full step with α = 1 to D while D,
// H and P are in cache, and correct D afterwards in the rare case that α is smaller.
type Update struct {
	Accumulate *Accumulate // computes M, N, H and P
	Search     *Decode     // computes W and α, and doesn't read D
	Move       *Elementwise

	D, H, P      int    // indices in Program.Vectors
	Coefficients [6]int // indices of c0 to c5 in Program.Numbers; the numbers are constant during a run
	Alpha        int    // index in Program.Numbers
}

// Body is the elementwise work of a step.
type Body struct {
	Rows Axis          // Rows or Atoms
	Each []Instruction // run for each row, after the step's product
	Then []Instruction // run once, after all rows: totals, and arithmetic with totals

	listing []string
}

// An Instruction is an operation on the current row or on numbers. Dst, A, B and C are indices of vectors and
// numbers of the program. Each row has its own copy of the numbers that are computed per row.
type Instruction struct {
	Op      Op
	Dst     int
	A, B, C int
}

// An Op is the operation of an instruction. Vectors are float32, numbers float64. Dst may be an operand.
type Op byte

const (
	AddScaled Op = iota // vector = A + C·B, with a number C
	MulVV               // vector = A∘B
	DivRoot             // vector = A/√B

	AddVN // vector = A + B, with a number B
	SubVN // vector = A − B
	MulVN // vector = B·A

	Abs  // vector = |A|
	Sign // vector = sign of A: −1, 0 or 1
	Relu // vector = max(A, 0)

	RowSum // number = sum of the elements of vector A in the current row

	Mul   // number = A·B, with numbers A and B
	Ratio // number = ClampedRatio(A, B)

	Store      // stored value Dst of the current row = number A
	Total      // number = sum over all rows of stored value A
	ScaleCodes // current row of the codes = A · current row of the codes, with a number A
)

// Arithmetic applies Mul or Ratio to two numbers.
func (o Op) Arithmetic(a, b float64) float64 {
	if o == Mul {
		return a * b
	}
	return graph.ClampedRatio(a, b)
}

// Operands returns pointers to the fields Dst, A and B if they are indices of vectors: written vectors, read vectors.
func (in *Instruction) Operands() (written, read []*int) {
	switch {
	case in.Op <= DivRoot:
		return []*int{&in.Dst}, []*int{&in.A, &in.B}
	case in.Op <= Relu:
		return []*int{&in.Dst}, []*int{&in.A}
	case in.Op == RowSum:
		return nil, []*int{&in.A}
	}
	return nil, nil
}

// String returns a listing of the program, one paragraph per step.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.Name)
	for i, s := range p.Steps {
		lines := s.lines()
		fmt.Fprintf(&b, "  %d %s\n", i+1, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}
	return b.String()
}

func (b *Body) lines() []string      { return b.listing }
func (s *Correlate) lines() []string { return s.listing }
func (s *Update) lines() []string {
	lines := []string{"update, three steps as one"}
	for _, part := range [][]string{s.Accumulate.listing, s.Search.listing, s.Move.listing} {
		lines = append(lines, part[0])
		for _, line := range part[1:] {
			lines = append(lines, "    "+line)
		}
	}
	return lines
}
