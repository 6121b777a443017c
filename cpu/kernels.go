package cpu

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// kernels are the loops that training spends its time in, for one level of
// instructions. What each computes is said with its generic twin.
type kernels struct {
	name string
	why  string // the processor has what it takes

	product       func(dst *float32, dstRow int, a *float32, aRow, aColumn int, b *float32, bRow, n int, s, q *byte, sRow, sRows, every int)
	rows, columns int // of a product

	average     func(index []int32, value, p, s, q []float32, column int32, gradient, square, threshold, rate, floor float32) int
	averageHalf averageHalf
	decode      func(dst []float32, index []int32, value, d []float32, dim int, end int32) int
	moveAtom    func(h, p, d, m, n []float32, index []int32, value, r []float32, dim int, c0, c1, c2, c3, c4, epsilon, step float32)

	fista func(index []int32, value, p, b, a []float32, column int32, momentum, step, threshold, floor float32) (n int, against float32)
	dots  func(p []float32, index []int32, r, d []float32, dim int, end int32) int
	axpy  func(c []float64, x float64, g []float32)

	combine  func(dst []float32, c float32, a []float32, d float32, b []float32)
	addConst func(dst, a []float32, c float32)
	scale    func(dst, a []float32, c float32)
	mul      func(dst, a, b []float32)
	divSqrt  func(dst, a, b []float32)
	relu     func(dst, a []float32)
	sum      func(a []float32) float64

	peak func(n int)
}

// vectorFloats is the number of floats that rows which kernels read or write
// are padded to a multiple of: the widest register's.
const vectorFloats = 16

// pitch is the distance of padded rows.
func pitch(width int) int { return (width + vectorFloats - 1) &^ (vectorFloats - 1) }

var generic = kernels{
	name: "generic", why: "plain Go, which every processor runs",
	product: productGeneric, rows: 2, columns: 4,
	average: averageGeneric, averageHalf: averageHalfGeneric, decode: decodeGeneric, moveAtom: moveAtomGeneric,
	fista: fistaGeneric, dots: dotsGeneric, axpy: axpyGeneric,
	combine: combineGeneric, addConst: addConstGeneric, scale: scaleGeneric, mul: mulGeneric,
	divSqrt: divSqrtGeneric, relu: reluGeneric, sum: sumGeneric, peak: peakGeneric,
}

// ErrLevel is returned, wrapped, when the environment asks for instructions that
// there are not.
var ErrLevel = errors.New("no such kernels")

// levelVariable names the environment variable that forces a level.
const levelVariable = "OVERCOMPLETE_CPU"

// Level returns the instructions that training on this processor will use,
// generic, avx2, avx512 or neon, and why.
func Level() (name, why string, err error) {
	k, err := chooseKernels()
	if err != nil {
		return "", "", err
	}
	if os.Getenv(levelVariable) != "" {
		return k.name, levelVariable + " asks for it", nil
	}
	return k.name, k.why, nil
}

// chooseKernels returns the kernels of the best level, or of that which the
// environment asks for.
func chooseKernels() (*kernels, error) {
	levels := append([]*kernels{&generic}, processorLevels()...)
	wanted := os.Getenv(levelVariable)
	if wanted == "" {
		return levels[len(levels)-1], nil
	}
	var names []string
	for _, k := range levels {
		if k.name == wanted {
			return k, nil
		}
		names = append(names, k.name)
	}
	return nil, fmt.Errorf("cpu: %w: %s is %q, and this processor has %s", ErrLevel, levelVariable, wanted, strings.Join(names, ", "))
}
