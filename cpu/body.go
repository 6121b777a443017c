package cpu

import (
	"overcomplete/graph"
	"overcomplete/internal/simd"
)

// body runs a step's instructions on the rows from lo to hi.
func (x *executable) body(l *lane, f *frame, b *graph.Body, lo, hi int) {
	for l.row = lo; l.row < hi; l.row++ {
		for i := range b.Each {
			x.instruction(l, f, &b.Each[i])
		}
	}
}

// then runs what follows when all rows are done.
func (x *executable) then(f *frame, b *graph.Body) {
	for _, in := range b.Then {
		if in.Op != graph.Total {
			f.numbers[in.Dst] = in.Op.Arithmetic(f.numbers[in.A], f.numbers[in.B])
			continue
		}
		var all float64
		for _, x := range f.stored[in.A][:f.rows(b.Rows)] {
			all += x
		}
		f.numbers[in.Dst] = all
	}
}

// instruction runs one on the lane's row.
func (x *executable) instruction(l *lane, f *frame, in *graph.Instruction) {
	k := x.kernels
	number := func(i int) float32 { return float32(l.numbers[i]) }
	switch in.Op {
	case graph.AddScaled:
		k.Combine(l.vector(in.Dst), 1, l.vector(in.A), number(in.C), l.vector(in.B))
	case graph.MulVV:
		k.Mul(l.vector(in.Dst), l.vector(in.A), l.vector(in.B))
	case graph.DivVV:
		simd.Div(l.vector(in.Dst), l.vector(in.A), l.vector(in.B))
	case graph.DivRoot:
		k.DivSqrt(l.vector(in.Dst), l.vector(in.A), l.vector(in.B))
	case graph.AddVN:
		k.AddConst(l.vector(in.Dst), l.vector(in.A), number(in.B))
	case graph.SubVN:
		k.AddConst(l.vector(in.Dst), l.vector(in.A), -number(in.B))
	case graph.SubNV:
		simd.SubFrom(l.vector(in.Dst), l.vector(in.A), number(in.B))
	case graph.MulVN:
		k.Scale(l.vector(in.Dst), l.vector(in.A), number(in.B))
	case graph.DivVN:
		k.Scale(l.vector(in.Dst), l.vector(in.A), 1/number(in.B))
	case graph.DivNV:
		simd.DivInto(l.vector(in.Dst), l.vector(in.A), number(in.B))
	case graph.Sqrt:
		simd.Sqrt(l.vector(in.Dst), l.vector(in.A))
	case graph.Abs:
		simd.Abs(l.vector(in.Dst), l.vector(in.A))
	case graph.Sign:
		simd.Sign(l.vector(in.Dst), l.vector(in.A))
	case graph.NotNegative:
		simd.NotNegative(l.vector(in.Dst), l.vector(in.A))
	case graph.Relu:
		k.Relu(l.vector(in.Dst), l.vector(in.A))
	case graph.RowSum:
		l.numbers[in.Dst] = k.Sum(l.vector(in.A))
	case graph.Store:
		f.stored[in.Dst][l.row] = l.numbers[in.A]
	case graph.ScaleCodes:
		f.codes.scaleRow(l.row, number(in.A))
	default:
		l.numbers[in.Dst] = in.Op.Arithmetic(l.numbers[in.A], l.numbers[in.B])
	}
}
