package simd

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Kernels are the loops that training and encoding spend their time in, for one
// level of instructions. What each computes is said with its generic twin.
type Kernels struct {
	Name string // generic, avx2, avx512 or neon
	why  string // the processor has what it takes

	Product       func(dst *float32, dstRow int, a *float32, aRow, aColumn int, b *float32, bRow, n int, s, q *byte, sRow, sRows, every int)
	Rows, Columns int // of a product

	Average     func(index []int32, value, p, s, q []float32, column int32, gradient, square, threshold, rate, floor float32) int
	AverageHalf averageHalf
	Decode      func(dst []float32, index []int32, value, d []float32, dim int, end int32) int
	MoveAtom    func(h, p, d, m, n []float32, index []int32, value, r []float32, dim int, c0, c1, c2, c3, c4, epsilon, step float32)

	FISTA func(index []int32, value, p, b, a []float32, column int32, momentum, step, threshold, floor float32) (n int, against float32)
	Dots  func(p []float32, index []int32, r, d []float32, dim int, end int32) int
	Axpy  func(c []float64, x float64, g []float32)

	Combine  func(dst []float32, c float32, a []float32, d float32, b []float32)
	AddConst func(dst, a []float32, c float32)
	Scale    func(dst, a []float32, c float32)
	Mul      func(dst, a, b []float32)
	DivSqrt  func(dst, a, b []float32)
	Relu     func(dst, a []float32)
	Sum      func(a []float32) float64

	Peak func(n int)
}

// Width is the number of floats that rows which kernels read or write are padded
// to a multiple of: the widest register's.
const Width = 16

// Pitch is the distance of padded rows.
func Pitch(width int) int { return (width + Width - 1) &^ (Width - 1) }

var generic = Kernels{
	Name: "generic", why: "plain Go, which every processor runs",
	Product: productGeneric, Rows: 2, Columns: 4,
	Average: averageGeneric, AverageHalf: averageHalfGeneric, Decode: decodeGeneric, MoveAtom: moveAtomGeneric,
	FISTA: fistaGeneric, Dots: dotsGeneric, Axpy: axpyGeneric,
	Combine: combineGeneric, AddConst: addConstGeneric, Scale: scaleGeneric, Mul: mulGeneric,
	DivSqrt: divSqrtGeneric, Relu: reluGeneric, Sum: sumGeneric, Peak: peakGeneric,
}

// ErrLevel is returned, wrapped, when the environment asks for instructions that
// there are not.
var ErrLevel = errors.New("no such kernels")

// Variable names the environment variable that forces a level.
const Variable = "OVERCOMPLETE_CPU"

// Levels returns the kernels that this processor can run, the best last.
func Levels() []*Kernels { return append([]*Kernels{&generic}, processorLevels()...) }

// Choose returns the kernels of the best level, or of that which the environment
// asks for, and why.
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
