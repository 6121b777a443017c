package graph

import (
	"math"
	"slices"

	gonum "gonum.org/v1/gonum/floats"
)

// interpreter runs a program plainly, in float64: the training's matrices, which
// results overwrite, and what the program has places for.
type interpreter struct {
	problem
	program *Program
	vectors [][]float64
	numbers []float64
	stored  [][]float64
}

func newInterpreter(p problem, program *Program) *interpreter {
	n, k, l := p.sizes()
	in := &interpreter{problem: p, program: program, numbers: make([]float64, len(program.Numbers))}
	in.inputs = make(map[string][]float64)
	for name, matrix := range p.inputs {
		in.inputs[name] = slices.Clone(matrix)
	}
	for _, v := range program.Vectors {
		switch rows := (map[Axis]int{Words: n, Atoms: k, One: 1})[v.Rows]; {
		case v.Input != "":
			in.vectors = append(in.vectors, in.inputs[v.Input])
		default:
			in.vectors = append(in.vectors, make([]float64, rows*l))
		}
	}
	for range program.Stored {
		in.stored = append(in.stored, make([]float64, max(n, k)))
	}
	program.Start(in.numbers, n, int(p.inputs["t"][0]))
	return in
}

// run runs a step; an update as what it says that it does, or as its three steps.
func (in *interpreter) run(step Step, fused bool) {
	n, k, l := in.sizes()
	A := in.inputs["A"]
	switch s := step.(type) {
	case *Decode:
		fill(in.vectors[DecodeProduct], l, k, func(i, j, a int) float64 { return A[i*k+a] * in.vectors[s.Atoms][a*l+j] })
		in.body(&s.Body)
	case *Accumulate:
		R := in.vectors[s.Residuals]
		fill(in.vectors[AccumulateProduct], l, n, func(a, j, i int) float64 { return A[i*k+a] * R[i*l+j] })
		if s.Squares {
			fill(in.vectors[SquaresProduct], l, n, func(a, j, i int) float64 { return math.Pow(A[i*k+a]*R[i*l+j], 2) })
		}
		in.body(&s.Body)
	case *Elementwise:
		in.body(&s.Body)
	case *Correlate:
		p := make([]float64, n*k)
		fill(p, k, l, func(i, a, j int) float64 { return in.vectors[s.Residuals][i*l+j] * in.vectors[s.Atoms][a*l+j] })
		S, Q := in.inputs["S"], in.inputs["Q"]
		for i := range p {
			S[i] += s.Gradient * p[i]
			Q[i] += s.Square * p[i] * p[i]
			A[i] = s.Apply(S[i], Q[i], in.inputs["t"][0])
			if s.Nonnegative {
				A[i] = max(A[i], 0)
			}
		}
	case *Proximal:
		X, D, Z, size, m := in.inputs["X"], in.inputs["D"], in.inputs["Z"], in.inputs["s"][0], in.inputs["m"][0]
		R, p := make([]float64, n*l), make([]float64, n*k)
		fill(R, l, k, func(i, j, a int) float64 { return X[i*l+j]/float64(k) - Z[i*k+a]*D[a*l+j] })
		fill(p, k, l, func(i, a, j int) float64 { return R[i*l+j] * D[a*l+j] })
		for i := range n {
			b, against := make([]float64, k), 0.0
			for a := range k {
				x := Z[i*k+a] - size*s.Gradient*p[i*k+a]
				b[a] = math.Copysign(max(math.Abs(x)-size*s.Lambda, 0), x)
				if s.Nonnegative {
					b[a] = max(b[a], 0)
				}
				against += (Z[i*k+a] - b[a]) * (b[a] - A[i*k+a])
			}
			for a := range k {
				Z[i*k+a] = b[a] + m*is(against <= 0)*(b[a]-A[i*k+a])
				A[i*k+a] = b[a]
			}
		}
	case *AtomUpdate:
		D, G, B, W, c := in.inputs["D"], in.inputs["G"], in.inputs["B"], in.inputs["W"], in.inputs["c"][0]
		for a := range k {
			if g := G[a*k+a]; g > s.LeastUse {
				products := make([]float64, l)
				fill(products, l, k, func(_, j, other int) float64 { return G[a*k+other] * D[other*l+j] })
				for j, product := range products {
					D[a*l+j] += (B[a*l+j] - product - c*(D[a*l+j]-W[a*l+j])) / (g + c)
				}
			}
			d := D[a*l:][:l]
			gonum.Scale(s.Norm/gonum.Norm(d, 2), d)
		}
	case *Update:
		if !fused {
			for _, part := range []Step{s.Accumulate, s.Search, s.Move} {
				in.run(part, false)
			}
			return
		}
		products := *s.Accumulate
		products.Body = Body{}
		in.run(&products, false)
		var c [6]float64
		for i, at := range s.Coefficients {
			c[i] = in.numbers[at]
		}
		M, N, D, H, P := in.vectors[AccumulateProduct], in.vectors[SquaresProduct], in.vectors[s.D], in.vectors[s.H], in.vectors[s.P]
		for i, d := range D {
			H[i] += max(c[0]*N[i]+d*(c[1]*M[i]+c[2]*d), 0)
			P[i] = (c[3]*d + c[4]*M[i]) / math.Sqrt(H[i]+s.Epsilon)
			D[i] += c[5] * P[i]
		}
		in.run(s.Search, false)
		for i := range D {
			D[i] += c[5] * (in.numbers[s.Alpha] - 1) * P[i]
		}
	}
}

// fill sets an element of a matrix of so many columns to a sum over some terms.
func fill(m []float64, columns, terms int, term func(row, column, i int) float64) {
	for at := range m {
		m[at] = 0
		for i := range terms {
			m[at] += term(at/columns, at%columns, i)
		}
	}
}

func (in *interpreter) body(b *Body) {
	n, k, _ := in.sizes()
	for row := range map[Axis]int{Words: n, Atoms: k}[b.Rows] {
		numbers := slices.Clone(in.numbers)
		for _, i := range b.Each {
			in.instruction(i, row, numbers)
		}
	}
	for _, i := range b.Then {
		in.instruction(i, -1, in.numbers)
	}
}

// instruction runs one on a row, or on numbers.
func (in *interpreter) instruction(i Instruction, row int, numbers []float64) {
	_, k, l := in.sizes()
	each := func(f func(a, b float64) float64) {
		vector := func(at int) []float64 {
			if in.program.Vectors[at].Rows == One {
				return in.vectors[at]
			}
			return in.vectors[at][row*l : (row+1)*l]
		}
		dst, a := vector(i.Dst), vector(i.A)
		for j := range dst {
			b := numbers[min(i.B, len(numbers)-1)]
			if i.Op <= DivRoot {
				b = vector(i.B)[j]
			}
			dst[j] = f(a[j], b)
		}
	}
	switch i.Op {
	case AddScaled:
		each(func(a, b float64) float64 { return a + numbers[i.C]*b })
	case AddVN:
		each(func(a, b float64) float64 { return a + b })
	case SubVN:
		each(func(a, b float64) float64 { return a - b })
	case SubNV:
		each(func(a, b float64) float64 { return b - a })
	case MulVV, MulVN:
		each(func(a, b float64) float64 { return a * b })
	case DivVV, DivVN:
		each(func(a, b float64) float64 { return a / b })
	case DivNV:
		each(func(a, b float64) float64 { return b / a })
	case DivRoot:
		each(func(a, b float64) float64 { return a / math.Sqrt(b) })
	case Sqrt:
		each(func(a, _ float64) float64 { return math.Sqrt(a) })
	case Abs:
		each(func(a, _ float64) float64 { return math.Abs(a) })
	case Sign:
		each(func(a, _ float64) float64 { return is(a > 0) - is(a < 0) })
	case NotNegative:
		each(func(a, _ float64) float64 { return is(a >= 0) })
	case Relu:
		each(func(a, _ float64) float64 { return max(a, 0) })
	case RowSum:
		a := in.vectors[i.A]
		if in.program.Vectors[i.A].Rows != One {
			a = a[row*l : (row+1)*l]
		}
		numbers[i.Dst] = sum(a)
	case Store:
		in.stored[i.Dst][row] = numbers[i.A]
	case Total:
		numbers[i.Dst] = sum(in.stored[i.A])
	case ScaleCodes:
		for a := range k {
			in.inputs["A"][row*k+a] *= numbers[i.A]
		}
	default:
		numbers[i.Dst] = i.Op.Arithmetic(numbers[i.A], numbers[i.B])
	}
}

// read returns a result.
func (in *interpreter) read(name string) []float64 {
	if at, ok := in.program.Outputs[name]; ok {
		return in.numbers[at : at+1]
	}
	return in.inputs[name]
}

func sum(x []float64) (total float64) {
	for _, v := range x {
		total += v
	}
	return total
}
