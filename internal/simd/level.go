package simd

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Kernels holds the loops of one level. [Choose] returns the Kernels to use.
//
// The functions in generic.go, such as decodeGeneric for Decode, document the results and
// the preconditions of the exported fields. Preconditions aren't checked.
type Kernels struct {
	Name string // generic, avx2, avxvnni, avx512, avx512vnni, neon or dotprod
	why  string // the reason to choose this level

	// Decode adds the product of a sparse code and D to dst. It uses only the atoms whose
	// indices are below end.
	Decode func(dst []float32, index []int32, value, d []float32, dim int, end int32) int

	// MoveAtom updates an atom (a row of D) by a step of AdaGrad. It also updates the atom's
	// row of H (sums of squared gradients) and the atom's row of P (steps).
	MoveAtom func(h, p, d, m, n []float32, index []int32, value, r []float32, dim int, c0, c1, c2, c3, c4, epsilon, step float32)

	// Dots multiplies a residual with the atoms of a sparse code whose indices are below end.
	// Axpy computes c[j] += x·g[j].
	Dots func(p []float32, index []int32, r, d []float32, dim int, end int32) int
	Axpy func(c []float64, x float64, g []float32)

	// Residual subtracts a decoded code from a row and returns the residual's largest
	// magnitude. Quantise rounds to 8-bit integers. Candidates finds atoms that enter a code,
	// and Advance computes a step of FISTA for the atoms of a list.
	Residual   func(r, y []float32, o []int32, unit float32) (largest float32)
	Quantise   func(dst []int8, x []float32, scale float32, offset int8)
	Candidates func(index []int32, p []float32, sums []int32, scale []float32, members []byte, column int32, limit, floor float32) int
	Advance    func(active []int32, bytes []int8, index []int32, p, z, b, v []float32, step, threshold, floor, momentum, scale float32, enter uint32) (n int, largest float32)

	// Elementwise functions set dst to the expression in their comment; dst may be one of
	// the operands. Sum returns its expression.
	Combine  func(dst []float32, c float32, a []float32, d float32, b []float32) // c·a + d·b
	AddConst func(dst, a []float32, c float32)                                   // a + c
	Scale    func(dst, a []float32, c float32)                                   // c·a
	Mul      func(dst, a, b []float32)                                           // a∘b
	DivSqrt  func(dst, a, b []float32)                                           // a/√b
	Relu     func(dst, a []float32)                                              // max(a, 0)
	Sum      func(a []float32) float64                                           // Σ a, in float64

	product       func(dst *float32, dstRow int, a *float32, aRow, aColumn int, b *float32, bRow, n int, s, q *byte, sRow, sRows, every int)
	rows, columns int // size of product's tile
	peak          func(n int)
	average       func(index []int32, value, p, s, q []float32, column int32, gradient, square, threshold, rate, floor float32) int

	// Kernels of [Coarse]. The bytes of residuals have an offset, 0 or 64.
	productBytes          func(dst *int32, dstRow int, a *int8, aRow int, b *int8, start *int32, n int)
	byteRows, byteColumns int // size of productBytes's tile
	peakBytes             func(n int)
	dotsBytes             func(p []float32, index []int32, r, d []int8, start []int32, scale []float32)
	decodeBytes           func(out []int32, index []int32, z, d []int8)
	offset                int8
}

var generic = Kernels{
	Name: "generic", why: "plain Go runs on every processor",
	Decode: decodeGeneric, MoveAtom: moveAtomGeneric,
	Dots: dotsGeneric, Axpy: axpyGeneric,
	Combine: combineGeneric, AddConst: addConstGeneric, Scale: scaleGeneric, Mul: mulGeneric,
	DivSqrt: divSqrtGeneric, Relu: reluGeneric, Sum: sumGeneric,
	product: productGeneric, rows: 2, columns: 4, peak: peakGeneric,
	average:  averageGeneric,
	Residual: residualGeneric, Quantise: quantiseGeneric, Candidates: candidatesGeneric, Advance: advanceGeneric,
	productBytes: productBytesGeneric, byteRows: 2, byteColumns: 4, peakBytes: peakBytesGeneric,
	dotsBytes: dotsBytesGeneric, decodeBytes: decodeBytesGeneric,
}

// ErrLevel is wrapped by the error of [Choose] for a level that the processor lacks.
var ErrLevel = errors.New("no such kernels")

// Variable is the name of the environment variable that selects a level.
const Variable = "OVERCOMPLETE_CPU"

// Levels returns the kernels that this processor can run, the best last.
func Levels() []*Kernels { return append([]*Kernels{&generic}, processorLevels()...) }

// Choose returns the kernels of the level that [Variable] names, or else of the best
// level, and the reason for the choice. If the processor lacks the named level, the error
// wraps [ErrLevel].
func Choose() (k *Kernels, why string, err error) {
	levels := Levels()
	wanted := os.Getenv(Variable)
	if wanted == "" {
		best := levels[len(levels)-1]
		return best, best.why, nil
	}
	var names []string
	for _, k := range levels {
		if k.Name == wanted {
			return k, Variable + " asks for it", nil
		}
		names = append(names, k.Name)
	}
	return nil, "", fmt.Errorf("cpu: %w: %s is %q, and this processor has %s", ErrLevel, Variable, wanted, strings.Join(names, ", "))
}

// FMA runs n fused multiply-adds in each register of a tile, without loads, and returns
// the number of flops. The speed of FMA bounds the speed of products.
func (k *Kernels) FMA(n int) (flops float64) {
	k.peak(n)
	return 2 * float64(n) * float64(k.rows*k.columns)
}
