// Package program states the steps of the paper's trainer as typed steps that devices run.
//
// [Dictionary], [Code], [Authors] and [Evaluate] build the programs of the graphs of the same names in
// package graph. A program consists of matrix products, for which devices have kernels, and of
// elementwise work on their rows as a list of instructions. The loss and its gradient are instructions
// that are lowered from Gorgonia's graph of them: a new loss needs no new kernel.
package program

import (
	"fmt"
	"strings"

	"overcomplete/graph"
)

// A Program is a list of typed steps, to run in order. It depends on no size, so that it fits any batch.
//
// It reads and writes the training's X, A, D, H, S and Q in place. A [Correlate] step replaces the codes
// A: steps before it multiply the old codes, steps after it the new ones.
type Program struct {
	Name    string
	Steps   []Step
	Vectors []Vector       // operands with rows of length L; the first are X and the products
	Numbers []float64      // initial values: constants, and 0 for those that are computed
	Outputs map[string]int // the results among the numbers, such as "loss"
	Stored  int            // numbers that each row stores for totals

	perWord []int // numbers that are multiplied by the words of the batch
}

// Start initialises numbers, as many as p.Numbers, for a batch of words.
func (p *Program) Start(numbers []float64, words int) {
	copy(numbers, p.Numbers)
	for _, i := range p.perWord {
		numbers[i] *= float64(words)
	}
}

// Axis is a symbolic number of rows.
type Axis byte

const (
	One   Axis = iota // scratch memory of the current row
	Words             // n, the words of the batch
	Atoms             // K
)

func (a Axis) String() string { return [...]string{"1", "n", "K"}[a] }

// Vector is an operand whose rows have L elements each.
type Vector struct {
	Input string // X, D or H if it is that matrix of the training
	Rows  Axis
}

// The first vectors of every program are X and the products of the current step.
const (
	VectorX           = iota
	DecodeProduct     // n×L, of a [Decode]
	AccumulateProduct // K×L, of an [Accumulate]
	SquaresProduct    // K×L, its second one: squared codes, transposed, times squared residuals
)

// A Step is one of
//
//	*Decode       n×L  codes · atoms, then elementwise work
//	*Accumulate   K×L  codesᵀ · residuals, perhaps with their squares, then elementwise work
//	*Correlate    n×K  residuals · atomsᵀ, then dual averaging of the codes
//	*Elementwise  K×L  elementwise work alone
//	*Update            an Accumulate, a Decode and an Elementwise step that move the dictionary
//
// Rows of a step (words or atoms) are independent of each other, except for totals, which are complete
// when the step is.
type Step interface {
	lines() []string // of the program's listing
}

// Decode multiplies the codes with atoms, A·atoms.
type Decode struct {
	Atoms int // vector, K×L
	Body
}

// Accumulate multiplies the codes with residuals, Aᵀ·residuals, and perhaps their squares,
// (A∘A)ᵀ·(residuals∘residuals).
type Accumulate struct {
	Residuals int // vector, n×L
	Squares   bool
	Body
}

// Elementwise has no product.
type Elementwise struct{ Body }

// Correlate multiplies residuals with atoms, p = residuals·atomsᵀ, and renews the codes by regularised
// dual averaging, element by element while p is at hand:
//
//	S += Gradient·p,  Q += Square·p²,  A = Shrinkage.Apply(S, Q, t), perhaps max(A, 0)
type Correlate struct {
	Residuals int // vector, n×L
	Atoms     int // vector, K×L

	Gradient, Square float64
	graph.Shrinkage
	Nonnegative bool

	listing []string
}

// Update moves the dictionary by AdaGrad and a line search:
//
//	M = AᵀE,  N = (A∘A)ᵀ(E∘E)
//	H += max(c0·N + D∘(c1·M + c2·D), 0)
//	P = (c3·D + c4·M)/√(H+ε)
//	W = AP, and α of it
//	D += c5·α·P
//
// A device may run its three steps one after the other. Run as one, D can take its step in full, as if
// α were 1, while D, H and P are at hand; what a shorter α takes back, which is rare, is undone later.
type Update struct {
	Accumulate *Accumulate // M and N; H and P
	Search     *Decode     // W and α; it does not read D
	Move       *Elementwise

	D, H, P      int    // vectors
	Coefficients [6]int // the numbers c0 to c5, known before the program runs
	Alpha        int    // number
}

// Body is the elementwise work of a step.
type Body struct {
	Rows Axis          // Words or Atoms
	Each []Instruction // on each row, after the step's product
	Then []Instruction // once, after all rows: totals, and arithmetic with them

	listing []string
}

// Instruction is one operation on a row, or on numbers. Dst, A, B and C index the program's vectors, of
// which the current row is meant, and numbers. Each row has its own copy of the numbers that rows compute.
type Instruction struct {
	Op      Op
	Dst     int
	A, B, C int
}

// Op is the operation of an instruction. Vectors are float32, numbers float64; Dst may be an operand.
type Op byte

const (
	AddScaled Op = iota // vector = A + C·B, of vectors A and B and a number C
	MulVV               // vector = A∘B
	DivVV               // vector = A/B
	DivRoot             // vector = A/√B

	AddVN // vector = A + B, of a vector A and a number B
	SubVN // vector = A − B
	SubNV // vector = B − A
	MulVN // vector = B·A
	DivVN // vector = A/B
	DivNV // vector = B/A

	Sqrt        // vector = √A
	Abs         // vector = |A|
	Sign        // vector = −1, 0 or 1, as A is below, at or above 0
	NotNegative // vector = 1 where A ≥ 0, else 0
	Relu        // vector = max(A, 0)

	RowSum // number = Σ A of a vector

	Add   // number = A + B, of numbers
	Sub   // number = A − B
	Mul   // number = A·B
	Div   // number = A/B
	Ratio // number = ClampedRatio(A, B)

	Store      // number A of each row is stored as its Dst-th
	Total      // number = the sum of the rows' A-th stored numbers
	ScaleCodes // the row of A is multiplied by the number A
)

// Arithmetic applies Add, Sub, Mul, Div or Ratio to two numbers.
func (o Op) Arithmetic(a, b float64) float64 {
	switch o {
	case Add:
		return a + b
	case Sub:
		return a - b
	case Mul:
		return a * b
	case Div:
		return a / b
	}
	return graph.ClampedRatio(a, b)
}

// Operands returns pointers to those of Dst, A and B that name vectors: the one that the instruction
// writes, and those that it reads.
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

// String lists the program, a step a paragraph.
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
