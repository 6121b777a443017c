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

// Shrinkage holds the constants of RDA's closed form.
type Shrinkage struct {
	Lambda float64 // λ
	Rate   float64 // η
}

// Apply returns the code of a coordinate whose gradients sum to s and whose
// squared gradients sum to q after t epochs (paper §2.3; its γ with t·ḡ = s):
//
//	0 where |s| ≤ tλ, else −sgn(s)·η(|s|−tλ)/√(q+ε)
func (k Shrinkage) Apply(s, q, t float64) float64 {
	excess := math.Abs(s) - t*k.Lambda
	if excess <= 0 {
		return 0
	}
	return -math.Copysign(k.Rate*excess/math.Sqrt(q+Epsilon), s)
}

// ClampedRatio is num/den within [0, 1], and 1 when den is 0. The line search
// and the damping are both such a least-squares coefficient.
func ClampedRatio(num, den float64) float64 {
	if den == 0 {
		return 1
	}
	return min(max(num/den, 0), 1)
}

// customOp is an operation that Gorgonia lacks. Its do is the plain reference,
// computed in float64 whatever the element type; only the tape calls it. The
// result has the shape of the first argument.
type customOp struct {
	name      string
	op        valueOp // what lowering makes of it
	shrinkage Shrinkage
	floor     float64  // of an opOverDiagonal
	args      hm.Types // types of the arguments; the result has the first's
	do        func(args []gorgonia.Value) (gorgonia.Value, error)
}

var (
	anyType    = hm.TypeVariable('a')
	matrixType = gorgonia.TensorType{Dims: 2, Of: anyType}
	vectorType = gorgonia.TensorType{Dims: 1, Of: anyType}
)

// shrinkOp computes codes, n×K, from S and Q, n×K, and the scalar t.
func shrinkOp(k Shrinkage) customOp {
	return customOp{
		name: fmt.Sprintf("shrink λ=%g η=%g", k.Lambda, k.Rate), op: opShrink, shrinkage: k, args: hm.Types{matrixType, matrixType, anyType},
		do: func(args []gorgonia.Value) (gorgonia.Value, error) {
			q, t := floats(args[1]), floats(args[2])[0]
			return mapped(args[0], func(i int, s float64) float64 { return k.Apply(s, q[i], t) })
		},
	}
}

// ratioOp is ClampedRatio of two scalars or, element by element, two vectors.
func ratioOp() customOp {
	return customOp{
		name: "clamped ratio", op: opRatio, args: hm.Types{anyType, anyType},
		do: func(args []gorgonia.Value) (gorgonia.Value, error) {
			den := floats(args[1])
			return mapped(args[0], func(i int, num float64) float64 { return ClampedRatio(num, den[i]) })
		},
	}
}

// scaleRowsOp multiplies row i of a matrix by element i of a vector.
func scaleRowsOp() customOp {
	return customOp{
		name: "scale rows", op: opScaleRows, args: hm.Types{matrixType, vectorType},
		do: func(args []gorgonia.Value) (gorgonia.Value, error) {
			factors, width := floats(args[1]), args[0].Shape()[1]
			return mapped(args[0], func(i int, x float64) float64 { return x * factors[i/width] })
		},
	}
}

// softOp is soft-thresholding of a matrix by a scalar, sgn(x)·max(|x| − threshold, 0).
func softOp() customOp {
	return customOp{
		name: "soft", op: opSoft, args: hm.Types{matrixType, anyType},
		do: func(args []gorgonia.Value) (gorgonia.Value, error) {
			threshold := floats(args[1])[0]
			return mapped(args[0], func(_ int, x float64) float64 { return math.Copysign(max(math.Abs(x)-threshold, 0), x) })
		},
	}
}

// overDiagonalOp divides row k of a matrix by the k-th diagonal element of another, plus
// a number, where that element is above floor, and makes it 0 elsewhere.
func overDiagonalOp(floor float64) customOp {
	return customOp{
		name: fmt.Sprintf("over diagonal above %g", floor), op: opOverDiagonal, floor: floor, args: hm.Types{matrixType, matrixType, anyType},
		do: func(args []gorgonia.Value) (gorgonia.Value, error) {
			square, width, size := floats(args[1]), args[0].Shape()[1], args[1].Shape()[1]
			more := floats(args[2])[0]
			return mapped(args[0], func(i int, x float64) float64 {
				if d := square[i/width*(size+1)]; d > floor {
					return x / (d + more)
				}
				return 0
			})
		},
	}
}

// unitOp scales the rows of a matrix to length 1. Where one is 0, it takes that of
// another matrix.
func unitOp() customOp {
	return customOp{
		name: "unit rows", op: opUnit, args: hm.Types{matrixType, matrixType},
		do: func(args []gorgonia.Value) (gorgonia.Value, error) {
			instead, width := floats(args[1]), args[0].Shape()[1]
			unit := slices.Clone(floats(args[0]))
			for first := 0; first < len(unit); first += width {
				row := unit[first:][:width]
				if gonum.Norm(row, 2) == 0 {
					copy(row, instead[first:])
				}
				if norm := gonum.Norm(row, 2); norm > 0 {
					gonum.Scale(1/norm, row)
				}
			}
			return mapped(args[0], func(i int, _ float64) float64 { return unit[i] })
		},
	}
}

func (o customOp) Do(args ...gorgonia.Value) (gorgonia.Value, error) { return o.do(args) }

func (o customOp) String() string { return o.name }
func (o customOp) Arity() int     { return len(o.args) }

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

// floats are the elements of a float32 or float64 value as float64.
func floats(v gorgonia.Value) []float64 {
	switch data := v.Data().(type) {
	case float64:
		return []float64{data}
	case float32:
		return []float64{float64(data)}
	case []float64:
		return data
	case []float32:
		out := make([]float64, len(data))
		for i, x := range data {
			out[i] = float64(x)
		}
		return out
	}
	return nil
}

// mapped applies f to every element of v and returns a value of v's kind.
func mapped(v gorgonia.Value, f func(i int, x float64) float64) (gorgonia.Value, error) {
	in := floats(v)
	if in == nil {
		return nil, fmt.Errorf("graph: value of type %v", v.Dtype())
	}
	out := make([]float64, len(in))
	for i, x := range in {
		out[i] = f(i, x)
	}
	return valueOf(out, v.Dtype(), v.Shape())
}

// valueOf makes a Gorgonia value of the given element type; an empty shape is a
// scalar's.
func valueOf(data []float64, dtype tensor.Dtype, shape tensor.Shape) (gorgonia.Value, error) {
	if len(data) != shape.TotalSize() {
		return nil, fmt.Errorf("graph: %d elements for shape %v", len(data), shape)
	}
	if dtype == tensor.Float64 {
		if shape.IsScalar() {
			return gorgonia.NewF64(data[0]), nil
		}
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data)), nil
	}
	narrow := make([]float32, len(data))
	for i, x := range data {
		narrow[i] = float32(x)
	}
	if shape.IsScalar() {
		return gorgonia.NewF32(narrow[0]), nil
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(narrow)), nil
}
