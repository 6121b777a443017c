package graph

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"slices"

	"github.com/chewxy/hm"
	gonum "gonum.org/v1/gonum/floats"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Shrinkage is the closed form of regularised dual averaging.
type Shrinkage struct {
	Lambda float64 // λ
	Rate   float64 // η
}

// Apply returns an element of a code after t epochs. s is the sum of the element's gradients, and q the sum of its
// squared gradients. The paper (§2.3) writes t·ḡ for s and γ for the nonzero value:
//
//	0 where |s| ≤ tλ, else −sgn(s)·η(|s|−tλ)/√(q+ε)
func (k Shrinkage) Apply(s, q, t float64) float64 {
	excess := math.Abs(s) - t*k.Lambda
	if excess <= 0 {
		return 0
	}
	return -math.Copysign(k.Rate*excess/math.Sqrt(q+Epsilon), s)
}

// ClampedRatio returns num/den clamped to [0, 1], and 1 if den is 0: the least-squares coefficient of the line
// search and of the damping.
func ClampedRatio(num, den float64) float64 {
	if den == 0 {
		return 1
	}
	return min(max(num/den, 0), 1)
}

// customOp is an operation that Gorgonia lacks. Its result has the shape of the first argument.
type customOp struct {
	name string
	args hm.Types
	do   func(args [][]float64, width int) []float64 // width is the length of a row of the first argument
}

var (
	anyType    = hm.TypeVariable('a')
	matrixType = gorgonia.TensorType{Dims: 2, Of: anyType}
	vectorType = gorgonia.TensorType{Dims: 1, Of: anyType}
)

// shrinkOp computes codes, n×K, from S and Q, n×K, and the scalar t.
func shrinkOp(k Shrinkage) customOp {
	return customOp{
		name: fmt.Sprintf("shrink λ=%g η=%g", k.Lambda, k.Rate), args: hm.Types{matrixType, matrixType, anyType},
		do: func(args [][]float64, _ int) []float64 {
			return mapped(args[0], func(i int, s float64) float64 { return k.Apply(s, args[1][i], args[2][0]) })
		},
	}
}

// ratioOp computes ClampedRatio of two scalars or of the elements of two vectors.
var ratioOp = customOp{
	name: "clamped ratio", args: hm.Types{anyType, anyType},
	do: func(args [][]float64, _ int) []float64 {
		return mapped(args[0], func(i int, num float64) float64 { return ClampedRatio(num, args[1][i]) })
	},
}

// scaleRowsOp multiplies row i of a matrix by element i of a vector.
var scaleRowsOp = customOp{
	name: "scale rows", args: hm.Types{matrixType, vectorType},
	do: func(args [][]float64, width int) []float64 {
		return mapped(args[0], func(i int, x float64) float64 { return x * args[1][i/width] })
	},
}

// softOp soft-thresholds a matrix by a scalar: sgn(x)·max(|x| − threshold, 0).
var softOp = customOp{
	name: "soft", args: hm.Types{matrixType, anyType},
	do: func(args [][]float64, _ int) []float64 {
		return mapped(args[0], func(_ int, x float64) float64 { return math.Copysign(max(math.Abs(x)-args[1][0], 0), x) })
	},
}

// overCurvatureOp divides row k of a matrix by max(g_kk, Σ_j|g_kj|/relaxation) + c, given a square matrix G and a
// scalar c. Rows with g_kk ≤ floor become 0.
func overCurvatureOp(floor, relaxation float64) customOp {
	return customOp{
		name: fmt.Sprintf("over curvature above %g ω=%g", floor, relaxation), args: hm.Types{matrixType, matrixType, anyType},
		do: func(args [][]float64, width int) []float64 {
			size := len(args[0]) / width
			return mapped(args[0], func(i int, x float64) float64 {
				k := i / width
				g := args[1][k*size:][:size]
				if g[k] > floor {
					return x / (max(g[k], gonum.Norm(g, 1)/relaxation) + args[2][0])
				}
				return 0
			})
		},
	}
}

// unitOp replaces the zero rows of a matrix by the rows of another matrix, and then scales all rows to norm 1.
var unitOp = customOp{
	name: "unit rows", args: hm.Types{matrixType, matrixType},
	do: func(args [][]float64, width int) []float64 {
		unit := slices.Clone(args[0])
		for first := 0; first < len(unit); first += width {
			row := unit[first:][:width]
			if gonum.Norm(row, 2) == 0 {
				copy(row, args[1][first:])
			}
			if norm := gonum.Norm(row, 2); norm > 0 {
				gonum.Scale(1/norm, row)
			}
		}
		return unit
	},
}

func mapped(in []float64, f func(i int, x float64) float64) []float64 {
	out := make([]float64, len(in))
	for i, x := range in {
		out[i] = f(i, x)
	}
	return out
}

func (o customOp) Do(args ...gorgonia.Value) (gorgonia.Value, error) {
	data := make([][]float64, len(args))
	for i, a := range args {
		data[i] = elements(a)
	}
	shape, width := args[0].Shape(), 1
	if len(shape) == 2 {
		width = shape[1]
	}
	return newValue(o.do(data, width), shape), nil
}

func (o customOp) Arity() int     { return len(o.args) }
func (o customOp) String() string { return o.name }

func (o customOp) Type() hm.Type {
	return hm.NewFnType(append(o.args[:len(o.args):len(o.args)], o.args[0])...)
}

func (o customOp) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	shape, ok := in[0].(tensor.Shape)
	if !ok {
		return nil, fmt.Errorf("graph: %v of a %T", o, in[0])
	}
	return shape.Clone(), nil
}

func (o customOp) ReturnsPtr() bool      { return false }
func (o customOp) CallsExtern() bool     { return false }
func (o customOp) OverwritesInput() int  { return -1 }
func (o customOp) WriteHash(h hash.Hash) { fmt.Fprint(h, o.String()) }
func (o customOp) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// elements returns the elements of a value, row-major.
func elements(v gorgonia.Value) []float64 {
	if x, ok := v.Data().(float64); ok {
		return []float64{x}
	}
	return v.Data().([]float64)
}

// newValue returns a Gorgonia value, a scalar if shape is empty.
func newValue(data []float64, shape tensor.Shape) gorgonia.Value {
	if shape.IsScalar() {
		return gorgonia.NewF64(data[0])
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data))
}
