package cpu

import (
	"overcomplete/internal/program"
	"overcomplete/internal/simd"
)

// body runs a step's instructions on the rows from lo to hi.
func (x *executable) body(l *lane, f *frame, b *program.Body, lo, hi int) {
	for l.row = lo; l.row < hi; l.row++ {
		for i := range b.Each {
			x.instruction(l, f, &b.Each[i])
		}
	}
}

// finish runs the instructions that a step executes once, after all rows.
func (x *executable) finish(f *frame, b *program.Body) {
	for _, in := range b.Then {
		if in.Op != program.Total {
			f.numbers[in.Dst] = in.Op.Arithmetic(f.numbers[in.A], f.numbers[in.B])
			continue
		}
		var all float64
		for _, x := range f.stored[in.A][:f.length(b.Rows)] {
			all += x
		}
		f.numbers[in.Dst] = all
	}
}

func (x *executable) instruction(l *lane, f *frame, in *program.Instruction) {
	k := x.kernels
	number := func(i int) float32 { return float32(l.numbers[i]) }
	switch in.Op {
	case program.AddScaled:
		k.Combine(l.vector(in.Dst), 1, l.vector(in.A), number(in.C), l.vector(in.B))
	case program.MulVV:
		k.Mul(l.vector(in.Dst), l.vector(in.A), l.vector(in.B))
	case program.DivRoot:
		k.DivSqrt(l.vector(in.Dst), l.vector(in.A), l.vector(in.B))
	case program.AddVN:
		k.AddConst(l.vector(in.Dst), l.vector(in.A), number(in.B))
	case program.SubVN:
		k.AddConst(l.vector(in.Dst), l.vector(in.A), -number(in.B))
	case program.MulVN:
		k.Scale(l.vector(in.Dst), l.vector(in.A), number(in.B))
	case program.Abs:
		simd.Abs(l.vector(in.Dst), l.vector(in.A))
	case program.Sign:
		simd.Sign(l.vector(in.Dst), l.vector(in.A))
	case program.Relu:
		k.Relu(l.vector(in.Dst), l.vector(in.A))
	case program.RowSum:
		l.numbers[in.Dst] = k.Sum(l.vector(in.A))
	case program.Store:
		f.stored[in.Dst][l.row] = l.numbers[in.A]
	case program.ScaleCodes:
		f.codes.scaleRow(l.row, number(in.A))
	default:
		l.numbers[in.Dst] = in.Op.Arithmetic(l.numbers[in.A], l.numbers[in.B])
	}
}
