package graph

import (
	"fmt"
	"strings"
)

// Program is an expression as executors run it: typed steps, one after the other,
// over operands that have their places. It depends on no size, so that it fits any
// batch. That of [Encode] is a [Proximal] and that of [Learn] an [AtomUpdate], alone;
// what follows is of programs of training.
//
// A program reads and writes the training's own X, A, D, H, S and Q where they
// are; an output with such a name replaces the input. It holds one matrix of
// codes, A, of which a [Correlate] step makes new ones: steps before it multiply
// the old codes, steps after it the new ones.
type Program struct {
	Name    string
	Steps   []Step
	Vectors []Vector       // what has rows of length L; the first are X and the products
	Numbers []float64      // scalars: constants, and 0 for those that are computed
	Outputs map[string]int // the results among the numbers, such as "loss"
	Stored  int            // how many numbers each row leaves for totals

	inputs   map[string]int // the numbers n and t, where they are used
	prepare  []Instruction  // the numbers that depend on n and t alone
	products int
}

// Start sets numbers, of which there are as many as p.Numbers, to what they are
// before the program runs on a batch of words in an epoch.
func (p *Program) Start(numbers []float64, words, epoch int) {
	copy(numbers, p.Numbers)
	if n, ok := p.inputs["n"]; ok {
		numbers[n] = float64(words)
	}
	if t, ok := p.inputs["t"]; ok {
		numbers[t] = float64(epoch)
	}
	for _, in := range p.prepare {
		numbers[in.Dst] = in.Op.Arithmetic(numbers[in.A], numbers[in.B])
	}
}

// Vector is an operand whose rows have L elements each. Instructions name it by
// its index in [Program.Vectors].
type Vector struct {
	Input string // X, D or H, if it is that matrix of the training
	Rows  Axis   // Words or Atoms; One for scratch memory of the row at hand
}

// The first vectors of every program are X and what the products of steps are left
// in, for the step's own instructions.
const (
	VectorX           = iota
	DecodeProduct     // n×L, of a [Decode]
	AccumulateProduct // K×L, of an [Accumulate]
	SquaresProduct    // K×L, its second one: squared codes, transposed, times squared residuals
)

// Step is a step of a program, one of
//
//	*Decode        n×L         codes · atoms, and elementwise work
//	*Accumulate    K×L         codesᵀ · residuals, perhaps that of their squares, and elementwise work
//	*Correlate     n×K         residuals · atomsᵀ, and the dual averaging of codes
//	*Elementwise   n×L or K×L  elementwise work alone
//	*Update                    three of these, which move the dictionary
//	*Proximal                  a step of FISTA: a program of its own, which encoders run
//	*AtomUpdate                each atom in turn: a program of its own, which learners run
//
// Steps run one after the other. Within a step, rows (words or atoms) are
// independent of each other, but for the totals, which are complete when the step
// is.
//
// An executor has kernels for all of this list and nothing to refuse: [Compile]
// refuses what is not in it. The codes have no elementwise work but dual averaging,
// which renews them once, and at last a factor for each row. X is no factor of a
// product. And nothing is read after it was overwritten.
type Step interface {
	lines() []string // of the program's listing
}

// Decode multiplies the codes with atoms, A·atoms.
type Decode struct {
	Atoms int // vector, K×L
	Body
}

// Accumulate multiplies the codes with residuals, Aᵀ·residuals, and perhaps their
// squares, (A∘A)ᵀ·(residuals∘residuals).
type Accumulate struct {
	Residuals int  // vector, n×L
	Squares   bool // whether the second product is wanted
	Body
}

// Elementwise has no product.
type Elementwise struct{ Body }

// Correlate multiplies residuals with atoms, p = residuals·atomsᵀ, and renews the
// codes by regularised dual averaging, element by element while p is at hand:
//
//	S += Gradient·p,  Q += Square·p²,  A = Shrinkage.Apply(S, Q, t), perhaps max(A, 0)
type Correlate struct {
	Residuals int // vector, n×L
	Atoms     int // vector, K×L

	Gradient, Square float64
	Shrinkage
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
// It is made of three steps that an executor may run as they stand. Run as one,
// D can take its step in full, as if α were 1, while D, H and P are at hand, and
// what a shorter α takes back, which is rare, be taken back later.
type Update struct {
	Accumulate *Accumulate // M and N; H and P
	Search     *Decode     // W and α; it does not read D
	Move       *Elementwise

	D, H, P      int    // vectors
	Coefficients [6]int // the numbers c0 to c5, known before the program runs
	Alpha        int    // number
	Epsilon      float64
}

// Proximal is a step of FISTA with restart. With the step's size s, the momentum m and
// the point Z beyond the codes A:
//
//	B = soft(Z − s·Gradient·(X − ZD)·Dᵀ, s·Lambda), perhaps max(B, 0)
//	Z = B + m·[⟨Z−B, A−B⟩ ≥ 0]·(B − A) for each word,  A = B
//
// The first Z is A. X, A, Z and D are the encoder's own.
type Proximal struct {
	Gradient, Lambda float64
	Nonnegative      bool

	listing []string
}

// AtomUpdate moves every row of D, each in turn with those before it moved already:
//
//	u = d_k + (b_k − g_k D − c(d_k − w_k))/(g_kk + c), d_k where g_kk ≤ LeastUse
//	d_k = Norm·u/‖u‖, in its own direction where u = 0
//
// D, G, B, W and c are the learner's own.
type AtomUpdate struct {
	Norm, LeastUse float64

	listing []string
}

// Body is a step's elementwise work.
type Body struct {
	Rows Axis          // Words or Atoms
	Each []Instruction // on each row, after the step's product
	Then []Instruction // once, after all rows: totals, and arithmetic with them

	listing []string
}

// Instruction is one operation on a row, or on numbers. Its operands are indices
// of the program's vectors and numbers: of the vectors a row is meant. Numbers
// that rows compute are each row's own.
type Instruction struct {
	Op      Op
	Dst     int
	A, B, C int
}

// Op is what an instruction does. Elementwise operations are in float32, numbers
// in float64; Dst may be one of the operands.
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

	Store      // number A of each row is kept as its Dst-th
	Total      // number = the sum of the rows' A-th numbers
	ScaleCodes // the row of A is multiplied by the number A; no product after it reads A
)

// Arithmetic is Add to Ratio of two numbers.
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
	return ClampedRatio(a, b)
}

// VectorOperands returns pointers to those of Dst, A and B that name vectors, not numbers: of
// the vector that the instruction makes, and of those that it reads.
func (in *Instruction) VectorOperands() (made, read []*int) {
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
	fmt.Fprintf(&b, "%s: %s, %s\n", p.Name, count(len(p.Steps), "step"), count(p.products, "product"))
	for i, s := range p.Steps {
		lines := s.lines()
		fmt.Fprintf(&b, "  %d %s\n", i+1, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}
	return b.String()
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

func (b *Body) lines() []string       { return b.listing }
func (s *Correlate) lines() []string  { return s.listing }
func (s *Proximal) lines() []string   { return s.listing }
func (s *AtomUpdate) lines() []string { return s.listing }
func (s *Update) lines() []string {
	return together("update, three steps as one", s.Accumulate.lines(), s.Search.lines(), s.Move.lines())
}

// together lists a step that is made of others.
func together(what string, parts ...[]string) []string {
	lines := []string{what}
	for _, part := range parts {
		for i, line := range part {
			if i > 0 {
				line = "    " + line
			}
			lines = append(lines, line)
		}
	}
	return lines
}
