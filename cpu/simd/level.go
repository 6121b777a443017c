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

	product       func(dst *float32, dstRow int, a *float32, aRow, aColumn int, b *float32, bRow, n int, s, q *byte, sRow, sRows, every int)
	rows, columns int // of a product

	average     func(index []int32, value, p, s, q []float32, column int32, gradient, square, threshold, rate, floor float32) int
	averageHalf averageHalf
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

	peak func(n int)
}

// Width is the number of floats that rows which kernels read or write are padded
// to a multiple of: the widest register's.
const Width = 16

// Pitch is the distance of padded rows.
func Pitch(width int) int { return (width + Width - 1) &^ (Width - 1) }

var generic = Kernels{
	Name: "generic", why: "plain Go, which every processor runs",
	product: productGeneric, rows: 2, columns: 4,
	average: averageGeneric, averageHalf: averageHalfGeneric, Decode: decodeGeneric, MoveAtom: moveAtomGeneric,
	FISTA: fistaGeneric, Dots: dotsGeneric, Axpy: axpyGeneric,
	Combine: combineGeneric, AddConst: addConstGeneric, Scale: scaleGeneric, Mul: mulGeneric,
	DivSqrt: divSqrtGeneric, Relu: reluGeneric, Sum: sumGeneric, peak: peakGeneric,
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

// FMA multiplies and adds in registers alone, n times in each, and returns how many
// flops that was: no product can do more in the same time.
func (k *Kernels) FMA(n int) (flops float64) {
	k.peak(n)
	return 2 * float64(n) * float64(k.rows*k.columns)
}
