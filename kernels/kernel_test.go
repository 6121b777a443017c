//go:build gpu

package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"overcomplete/encode/encodetest"
	"overcomplete/graph"
	"overcomplete/train"
)

// bench is a GPU for tests of single kernels.
type bench struct {
	*gpu
	t   *testing.T
	rng *rand.Rand
}

func newBench(t *testing.T) *bench {
	t.Helper()
	g, err := openGPU(0)
	if err != nil {
		t.Fatal(err)
	}
	leave := g.enter()
	t.Cleanup(func() {
		leave()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{g, t, rand.New(rand.NewPCG(1, 2))}
}

// array is a matrix on the device between two guards.
type array struct {
	data               pointer[float32]
	rows, width, pitch int
}

const guard, guardValue = 64, 12345

// array puts rows on the device, or, if they are nil, others that must be
// overwritten. Padding is zero, as kernels find it.
func (b *bench) array(values []float32, rows, width int) array {
	a := array{rows: rows, width: width, pitch: roundUp(width, 4)}
	if values == nil {
		values = slices.Repeat([]float32{float32(math.NaN())}, rows*width)
	}
	all := slices.Repeat([]float32{guardValue}, guard+rows*a.pitch+guard)
	copy(all[guard:], pitched(values, width, a.pitch))
	a.data = upload(b.gpu, all).at(guard)
	return a
}

// read returns the rows, and fails if a kernel wrote where there are none.
func (b *bench) read(a array) []float32 {
	b.t.Helper()
	all := make([]float32, guard+a.rows*a.pitch+guard)
	toHost(b.gpu, all, a.data.at(-guard), b.compute)
	b.synchronize(b.compute)
	if b.err != nil {
		b.t.Fatal(b.err)
	}
	for i := range guard {
		if all[i] != guardValue || all[len(all)-1-i] != guardValue {
			b.t.Fatal("a kernel wrote outside its result")
		}
	}
	padded := all[guard : len(all)-guard]
	rows := make([]float32, a.rows*a.width)
	copyRows(rows, a.width, padded, a.pitch)
	if !slices.Equal(pitched(rows, a.width, a.pitch), padded) && !slices.ContainsFunc(rows, isNaN) {
		b.t.Fatal("a kernel wrote into padding")
	}
	return rows
}

func isNaN(x float32) bool { return x != x }

func readBack[T any](b *bench, p pointer[T], n int) []T {
	b.t.Helper()
	values := make([]T, n)
	toHost(b.gpu, values, p, b.compute)
	b.synchronize(b.compute)
	if b.err != nil {
		b.t.Fatal(b.err)
	}
	return values
}

// normal returns normally distributed numbers of which a share is zero.
func (b *bench) normal(n int, zeros float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		if b.rng.Float64() >= zeros {
			x[i] = float32(b.rng.NormFloat64())
		}
	}
	return x
}

// codes returns codes with rows of zeros among them.
func (b *bench) codes(words, atoms int) []float32 {
	x := b.normal(words*atoms, 0.6)
	for i := 2; i < words; i += 5 {
		clear(x[i*atoms : (i+1)*atoms])
	}
	return x
}

// few gives the launch of a kernel that takes a row a warp four warps at most, so that
// they have several rows to go through.
func few(l launch) launch {
	l.x, l.threads, l.shared = min(2, l.x), 2*warp, l.shared*2*warp/l.threads
	return l
}

// shapes of products: below, at and beyond the tiles' sizes, and nothing that
// divides them.
var shapes = []struct{ words, atoms, dim int }{
	{1, 1, 1}, {1, 12, 4}, {3, 5, 2}, {128, 64, 64}, {128, 128, 32}, {129, 130, 33}, {5, 300, 70}, {200, 37, 131}, {33, 7, 300},
}

// tolerance bounds the error of a sum of products, relative to the sum of their
// magnitudes. TF32 rounds each factor by 2⁻¹¹ of it at most, and adding up loses
// a little more; with factors in two parts about 2⁻²² is left, and float32 sums
// of a few hundred terms.
var tolerance = map[Precision]float64{TF32: 1.02 / 1024, FP32: 3e-6}

// expect compares sums of products.
func (b *bench) expect(what string, got []float32, want, magnitude []float64, tolerance float64) {
	b.t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= tolerance*magnitude[i]) {
			b.t.Fatalf("%s: element %d is %v, want %v ± %.2g", what, i, got[i], want[i], tolerance*magnitude[i])
		}
	}
}

// multiply is Σ_k left(i, k)·right(k, j) and the same of magnitudes, in float64.
func multiply(rows, columns, depth int, left, right func(i, k int) float32) (sum, magnitude []float64) {
	sum, magnitude = make([]float64, rows*columns), make([]float64, rows*columns)
	for i := range rows {
		for k := range depth {
			if l := float64(left(i, k)); l != 0 {
				for j := range columns {
					p := l * float64(right(k, j))
					sum[i*columns+j] += p
					magnitude[i*columns+j] += math.Abs(p)
				}
			}
		}
	}
	return sum, magnitude
}

func forShapes(t *testing.T, f func(b *bench, precision Precision, words, atoms, dim int)) {
	b := newBench(t) // one for all: a GPU takes a good part of a second to start
	for _, precision := range []Precision{TF32, FP32} {
		for _, s := range shapes {
			t.Run(fmt.Sprintf("%s %d×%d×%d", precision, s.words, s.atoms, s.dim), func(t *testing.T) {
				defer b.enter()() // of this goroutine's thread
				b.t = t
				f(b, precision, s.words, s.atoms, s.dim)
			})
		}
	}
}

func TestDecode(t *testing.T) {
	forShapes(t, func(b *bench, precision Precision, words, atoms, dim int) {
		codes, d := b.codes(words, atoms), b.normal(atoms*dim, 0)
		a, atomRows, result := b.array(codes, words, atoms), b.array(d, atoms, dim), b.array(nil, words, dim)
		k := decode{product: result.data, codes: a.data, atoms: atomRows.data, shape: newWidths(atoms, dim).shape(words)}
		b.queue(k.launch(precision), b.compute)
		want, magnitude := multiply(words, dim, atoms,
			func(i, k int) float32 { return codes[i*atoms+k] }, func(k, j int) float32 { return d[k*dim+j] })
		b.expect("product", b.read(result), want, magnitude, tolerance[precision])
	})
}

func TestAccumulate(t *testing.T) {
	forShapes(t, func(b *bench, precision Precision, words, atoms, dim int) {
		codes, r := b.codes(words, atoms), b.normal(words*dim, 0)
		a, residuals := b.array(codes, words, atoms), b.array(r, words, dim)
		result, squares := b.array(nil, atoms, dim), b.array(nil, atoms, dim)
		b.queue(accumulate{
			product: result.data, squares: squares.data, codes: a.data, residuals: residuals.data, shape: newWidths(atoms, dim).shape(words),
		}.launch(precision), b.compute)
		want, magnitude := multiply(atoms, dim, words,
			func(i, k int) float32 { return codes[k*atoms+i] }, func(k, j int) float32 { return r[k*dim+j] })
		b.expect("product", b.read(result), want, magnitude, tolerance[precision])
		want, magnitude = multiply(atoms, dim, words,
			func(i, k int) float32 { return codes[k*atoms+i] * codes[k*atoms+i] }, func(k, j int) float32 { return r[k*dim+j] * r[k*dim+j] })
		b.expect("product of squares", b.read(squares), want, magnitude, tolerance[precision])
	})
}

func TestCorrelate(t *testing.T) {
	const gradient, square, rate = -2, 4, 0.05
	forShapes(t, func(b *bench, precision Precision, words, atoms, dim int) {
		for _, nonnegative := range []bool{false, true} {
			r, d := b.normal(words*dim, 0), b.normal(atoms*dim, 0)
			g, q := b.normal(words*atoms, 0), b.normal(words*atoms, 0.5)
			for i := range q {
				q[i] *= q[i]
			}
			threshold := 1.5
			if words == 3 {
				threshold = 1e6 // all codes are zero
			}
			residuals, atomRows := b.array(r, words, dim), b.array(d, atoms, dim)
			codes, sumG, sumQ := b.array(nil, words, atoms), b.array(g, words, atoms), b.array(q, words, atoms)
			b.queue(correlate{
				codes: codes.data, sumG: sumG.data, sumQ: sumQ.data, residuals: residuals.data, atoms: atomRows.data,
				gradient: gradient, square: square, threshold: threshold, rate: rate,
				shape: newWidths(atoms, dim).shape(words), nonnegative: nonnegative,
			}.launch(precision), b.compute)
			p, magnitude := multiply(words, atoms, dim,
				func(i, k int) float32 { return r[i*dim+k] }, func(k, j int) float32 { return d[j*dim+k] })
			wantG, wantQ := make([]float64, len(p)), make([]float64, len(p))
			sizeG, sizeQ := make([]float64, len(p)), make([]float64, len(p))
			for i := range p {
				wantG[i], sizeG[i] = float64(g[i])+gradient*p[i], math.Abs(float64(g[i]))+2*magnitude[i]
				wantQ[i], sizeQ[i] = float64(q[i])+square*p[i]*p[i], float64(q[i])+4*2*magnitude[i]*magnitude[i]
			}
			newG, newQ := b.read(sumG), b.read(sumQ)
			b.expect("S", newG, wantG, sizeG, tolerance[precision])
			b.expect("Q", newQ, wantQ, sizeQ, tolerance[precision])

			// The codes belong to the very S and Q that were written.
			shrinkage := graph.Shrinkage{Lambda: threshold, Rate: rate}
			zeros := 0
			for i, got := range b.read(codes) {
				want := shrinkage.Apply(float64(newG[i]), float64(newQ[i]), 1)
				if nonnegative {
					want = max(want, 0)
				}
				// |S| − threshold is rounded to float32 where it may be small.
				tolerance := 1e-6*math.Abs(want) + 1e-6*rate*math.Abs(float64(newG[i]))/math.Sqrt(float64(newQ[i])+graph.Epsilon)
				if !(math.Abs(float64(got)-want) <= tolerance) || nonnegative && got < 0 {
					b.t.Fatalf("code %d is %v, want %v", i, got, want)
				}
				if got == 0 {
					zeros++
				}
			}
			if len(p) > 100 && (zeros == 0 || threshold < 2 && zeros == len(p)) {
				b.t.Errorf("%d of %d codes are zero: a poor test", zeros, len(p))
			}
		}
	})
}

// A step of FISTA. It shrinks, which makes no error larger, and adds up what
// belongs to the very codes that it wrote.
func TestFISTA(t *testing.T) {
	const size = 0.05
	forShapes(t, func(b *bench, precision Precision, words, atoms, dim int) {
		for _, c := range []struct {
			threshold            float64
			nonnegative, support bool
		}{{0.3, false, false}, {0.3, true, false}, {0, false, true}, {1e6, false, false}} {
			r, d := b.normal(words*dim, 0), b.normal(atoms*dim, 0)
			x, before, momenta := b.codes(words, atoms), b.codes(words, atoms), b.normal(words, 0.5)
			parts := divide(atoms, correlateColumns) * (correlateColumns / fistaColumns)
			residuals, atomRows, against := b.array(r, words, dim), b.array(d, atoms, dim), b.array(nil, words, parts)
			codes, result := b.array(x, words, atoms), b.array(before, words, atoms)
			b.queue(fista{
				codes: codes.data, before: result.data, against: against.data, residuals: residuals.data, atoms: atomRows.data,
				momenta: upload(b.gpu, momenta), size: size, threshold: c.threshold,
				shape: newWidths(atoms, dim).shape(words), parts: int32(parts), nonnegative: c.nonnegative, support: c.support,
			}.launch(precision), b.compute)
			p, magnitude := multiply(words, atoms, dim,
				func(i, k int) float32 { return r[i*dim+k] }, func(k, j int) float32 { return d[j*dim+k] })
			got, sums := b.read(result), b.read(against)
			zeros := 0
			for i := range words {
				var sum, sizes, gotSum float64
				for k := range atoms {
					at := i*atoms + k
					z := float64(x[at]) + float64(momenta[i])*(float64(x[at])-float64(before[at]))
					want := encodetest.Shrink(z+size*p[at], c.threshold, c.nonnegative)
					if c.support && x[at] == 0 && before[at] == 0 {
						want = 0
					}
					next := float64(got[at])
					// z and what is added to it round to float32.
					if !(math.Abs(next-want) <= tolerance[precision]*size*magnitude[at]+1e-6*(math.Abs(z)+c.threshold)) || c.nonnegative && next < 0 ||
						c.support && want == 0 && next != 0 {
						b.t.Fatalf("%+v: code %d of word %d is %v, want %v", c, k, i, next, want)
					}
					product := (z - next) * (next - float64(x[at]))
					sum, sizes = sum+product, sizes+(math.Abs(z)+math.Abs(next))*(math.Abs(next)+math.Abs(float64(x[at])))
					if next == 0 {
						zeros++
					}
				}
				for _, part := range sums[i*parts : (i+1)*parts] {
					gotSum += float64(part)
				}
				// Differences round to float32, and 32 products add up in it.
				if !(math.Abs(gotSum-sum) <= 1e-6*sizes) {
					b.t.Fatalf("%+v: ⟨z−b', b'−b⟩ of word %d is %v, want %v", c, i, gotSum, sum)
				}
			}
			if len(p) > 100 && c.threshold < 1 && (zeros == 0 || zeros == len(p)) {
				b.t.Errorf("%+v: %d of %d codes are zero: a poor test", c, zeros, len(p))
			}
		}
	})
}

func TestFISTAResiduals(t *testing.T) {
	for _, s := range []struct{ words, dim, parts int }{{1, 1, 4}, {3, 31, 4}, {9, 32, 32}, {17, 33, 36}, {40, 300, 96}} {
		b := newBench(t)
		y, p, q := b.normal(s.words*s.dim, 0), b.normal(s.words*s.dim, 0), b.normal(s.words*s.dim, 0)
		parts := b.normal(s.words*s.parts, 0)
		clear(parts[:s.parts]) // neither for nor against
		against := b.array(parts, s.words, s.parts)
		rows, decoded, last, result := b.array(y, s.words, s.dim), b.array(p, s.words, s.dim), b.array(q, s.words, s.dim), b.array(nil, s.words, s.dim)
		momenta, losses := b.array(nil, 1, s.words), alloc[float64](b.gpu, s.words)
		const momentum = 0.6
		b.queue(few(fistaResiduals{
			residuals: result.data, momenta: momenta.data, losses: losses, y: rows.data, decoded: decoded.data, last: last.data,
			against: against.data, momentum: momentum, shape: newWidths(1, s.dim).shape(s.words), parts: int32(s.parts),
		}.launch()), b.compute)
		got, gotMomenta, gotLosses := b.read(result), b.read(momenta), readBack(b, losses, s.words)
		for i := range s.words {
			var sum, loss float64
			for _, part := range parts[i*s.parts : (i+1)*s.parts] {
				sum += float64(part)
			}
			m := float64(float32(momentum))
			if sum > 0 {
				m = 0
			}
			if float64(gotMomenta[i]) != m {
				t.Errorf("%+v: momentum of word %d is %v, want %v", s, i, gotMomenta[i], m)
			}
			for j := range s.dim {
				at := i*s.dim + j
				want := float64(y[at]) - float64(p[at]) - m*(float64(p[at])-float64(q[at]))
				loss += want * want
				if !(math.Abs(float64(got[at])-want) <= 1e-6*(1+math.Abs(want))) {
					t.Fatalf("%+v: residual %d of word %d is %v, want %v", s, j, i, got[at], want)
				}
			}
			if !(math.Abs(gotLosses[i]-loss) <= 1e-6*(1+loss)) {
				t.Errorf("%+v: loss of word %d is %v, want %v", s, i, gotLosses[i], loss)
			}
		}
	}
}

// Kept are those that sorting keeps, ties, zeros and infinities among them.
func TestKeepLargest(t *testing.T) {
	for _, s := range []struct{ words, atoms int }{{1, 1}, {3, 5}, {10, 128}, {33, 129}, {20, 515}} {
		b := newBench(t)
		for _, most := range []int{1, 3, s.atoms / 3, s.atoms} {
			most = min(max(1, most), s.atoms)
			values := b.codes(s.words, s.atoms)
			for i := range values {
				switch i / s.atoms % 4 {
				case 1:
					values[i] = float32(math.Round(float64(2*values[i]))) / 2 // many are equal
				case 2:
					values[i] *= float32(math.Pow(10, float64(b.rng.IntN(70)-40))) // down to denormals
				case 3:
					values[i] = 7
				}
			}
			values[len(values)-1] = float32(math.Inf(-1))
			codes, copied := b.array(values, s.words, s.atoms), b.array(nil, s.words, s.atoms)
			k := keepLargest{codes: codes.data, before: copied.data, shape: newWidths(s.atoms, 1).shape(s.words), most: int32(most)}
			b.queue(few(k.launch()), b.compute)
			var want []float32
			for i := range s.words {
				row := values[i*s.atoms : (i+1)*s.atoms]
				for k, kept := range encodetest.Largest(encodetest.Widen(row), most) {
					v := row[k]
					if !kept {
						v = 0
					}
					want = append(want, v)
				}
			}
			if !slices.Equal(b.read(codes), want) {
				t.Errorf("%+v: other codes are kept than the %d largest", s, most)
			}
			if !slices.Equal(b.read(copied), want) {
				t.Errorf("%+v: the copy differs from the codes", s)
			}
		}
	}
}

// vectorOps are what the row machine does to elements.
var vectorOps = map[op]func(a, b float32) float32{
	opAddVV: func(a, b float32) float32 { return a + b }, opAddVN: func(a, b float32) float32 { return a + b },
	opSubVV: func(a, b float32) float32 { return a - b }, opSubVN: func(a, b float32) float32 { return a - b },
	opMulVV: func(a, b float32) float32 { return a * b }, opMulVN: func(a, b float32) float32 { return a * b },
	opDivVV: func(a, b float32) float32 { return a / b }, opDivVN: func(a, b float32) float32 { return a / b },
	opSubNV: func(a, b float32) float32 { return b - a }, opDivNV: func(a, b float32) float32 { return b / a },
	opSqrt: func(a, _ float32) float32 { return float32(math.Sqrt(float64(a))) },
	opAbs:  func(a, _ float32) float32 { return float32(math.Abs(float64(a))) },
	opSign: func(a, _ float32) float32 {
		switch {
		case a > 0:
			return 1
		case a < 0:
			return -1
		}
		return 0
	},
	opNotNegative: func(a, _ float32) float32 {
		if a >= 0 {
			return 1
		}
		return 0
	},
	opRelu: func(a, _ float32) float32 { return max(a, 0) },
}

var numberOps = map[op]func(a, b float64) float64{
	opAdd: func(a, b float64) float64 { return a + b }, opSub: func(a, b float64) float64 { return a - b },
	opMul: func(a, b float64) float64 { return a * b }, opDiv: func(a, b float64) float64 { return a / b },
	opRatio: graph.ClampedRatio,
}

// Every instruction of the row machine, on rows in memory and in scratch.
func TestBody(t *testing.T) {
	for _, s := range []struct{ rows, width int }{{1, 1}, {3, 31}, {9, 32}, {17, 33}, {40, 300}} {
		t.Run(fmt.Sprintf("%d×%d", s.rows, s.width), func(t *testing.T) {
			b := newBench(t)
			x, y := b.normal(s.rows*s.width, 0.2), b.normal(s.rows*s.width, 0.2)
			copy(x, []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.NaN()), 1e-40})
			first, second := b.array(x, s.rows, s.width), b.array(y, s.rows, s.width)
			numbers := []float64{0.75, -3, 0, 0}
			for o := opAddVV; o <= opRelu; o++ {
				operand := 1 // vector y
				if o >= opAddVN && o <= opDivNV {
					operand = 0 // number 0.75
				}
				result := b.array(nil, s.rows, s.width)
				// By way of scratch row 1, so that both kinds of place are used.
				places := []place{{0, int64(first.pitch)}, {second.data, int64(second.pitch)}, {0, 1}, {result.data, int64(result.pitch)}, {0, 0}}
				program := []instruction{
					{op: opMulVN, dst: 4, a: 0, b: 1}, // scratch row 0 must not matter
					{o, 2, 0, int32(operand)},
					{op: opAddVN, dst: 3, a: 2, b: 2},
				}
				b.body(program, places, numbers, 0, body{input: first.data, rows: int32(s.rows), width: int32(s.width), temps: 2})
				for i, got := range b.read(result) {
					var operand float32 = 0.75
					if o < opAddVN {
						operand = y[i]
					}
					want := vectorOps[o](x[i], operand) + 0
					if got != want && !(isNaN(got) && isNaN(want)) {
						t.Errorf("instruction %d: element %d of %v and %v is %v, want %v", o, i, x[i], operand, got, want)
						break
					}
				}
			}
		})
	}
}

// body launches the row machine with a program, and returns what rows store under
// numbers below stored, row after row for each number.
func (b *bench) body(program []instruction, places []place, numbers []float64, stored int, k body) []float64 {
	k.program, k.places, k.numbers = upload(b.gpu, program), upload(b.gpu, places), upload(b.gpu, numbers)
	k.instructions, k.numberCount = int32(len(program)), int32(len(numbers))
	k.rowNumbers, k.rowPitch = alloc[float64](b.gpu, max(1, stored)*int(k.rows)), int64(k.rows)
	b.queue(few(k.launch(0)), b.compute)
	return readBack(b, k.rowNumbers, stored*int(k.rows))
}

func TestBodyNumbers(t *testing.T) {
	b := newBench(t)
	const rows, width = 37, 45
	x := b.normal(rows*width, 0)
	a := b.array(x, rows, width)
	// Numbers 0 and 1 are constants, 2 the sum of the row, 3 the result.
	for o, f := range numberOps {
		for _, constant := range []float64{0, 2, -2, 100} {
			program := []instruction{
				{op: opRowSum, dst: 2, a: 0}, {o, 3, 2, 1}, {op: opStore, dst: 0, a: 2}, {op: opStore, dst: 1, a: 3},
				{op: opAdd, dst: 1, a: 1, b: 2}, // a row's own copy: the next row must not see it
			}
			stored := b.body(program, []place{{pitch: int64(a.pitch)}}, []float64{0, constant, 0, 0}, 2, body{input: a.data, rows: rows, width: width})
			for row := range rows {
				var sum float64
				for _, v := range x[row*width : (row+1)*width] {
					sum += float64(v)
				}
				// Float64 sums in another order.
				if math.Abs(stored[row]-sum) > 1e-12 {
					t.Fatalf("sum of row %d is %v, want %v", row, stored[row], sum)
				}
				got, want := stored[rows+row], f(stored[row], constant)
				if got != want && !math.IsNaN(want) {
					t.Errorf("instruction %d of %v and %v is %v, want %v", o, stored[row], constant, got, want)
				}
			}
		}
	}
}

func TestTotals(t *testing.T) {
	b := newBench(t)
	for _, rows := range []int{1, 31, 1024, 5000} {
		values := make([]float64, 2*rows)
		var first, second float64
		for i := range rows {
			values[i], values[rows+i] = b.rng.NormFloat64(), b.rng.Float64()
			first, second = first+values[i], second+values[rows+i]
		}
		numbers := upload(b.gpu, []float64{0, 0, 0, 10, 5, 5, 2})
		program := []instruction{
			{op: opTotal, dst: 1, a: 1}, {op: opTotal, dst: 0, a: 0}, {opRatio, 2, 0, 1},
			{op: opAccumulate, dst: 3, a: 1}, {op: opCountBelowOne, dst: 4, a: 2}, {op: opCountBelowOne, dst: 5, a: 6}, {opMul, 6, 6, 6},
		}
		b.queue(totals{
			program: upload(b.gpu, program), instructions: int32(len(program)), numbers: numbers,
			rowNumbers: upload(b.gpu, values), rowPitch: int64(rows), rows: int32(rows),
		}.launch(0), b.compute)
		got := readBack(b, numbers, 7)
		ratio := graph.ClampedRatio(got[0], got[1])
		below := 5.0
		if ratio < 1 {
			below++
		}
		want := []float64{first, second, ratio, 10 + second, below, 5, 4}
		for i := range want {
			// Float64 sums in another order.
			if math.Abs(got[i]-want[i]) > 1e-14*float64(rows) {
				t.Errorf("%d rows: number %d is %v, want %v", rows, i, got[i], want[i])
			}
		}
	}
}

func TestFinishAndPackCodes(t *testing.T) {
	for _, s := range []struct{ words, atoms int }{{1, 1}, {3, 5}, {10, 128}, {33, 129}, {20, 515}} {
		t.Run(fmt.Sprintf("%d×%d", s.words, s.atoms), func(t *testing.T) {
			b := newBench(t)
			for _, scaled := range []bool{false, true} {
				values := b.codes(s.words, s.atoms)
				codes := b.array(values, s.words, s.atoms)
				factors := make([]float64, s.words)
				var onDevice pointer[float64]
				for i := range factors {
					factors[i] = []float64{0.25, 1, 0}[i%3]
				}
				if scaled {
					onDevice = upload(b.gpu, factors)
				}
				shape := newWidths(s.atoms, 1).shape(s.words)
				nonzeros, l1, used := alloc[float64](b.gpu, s.words), alloc[float64](b.gpu, s.words), alloc[int32](b.gpu, s.atoms)
				b.queue(few(finishCodes{
					codes: codes.data, factors: onDevice, nonzeros: nonzeros, l1: l1, used: used, shape: shape,
				}.launch()), b.compute)

				want := slices.Clone(values)
				var index, start []int64
				var packed []float32
				wantUsed := make([]int32, s.atoms)
				gotNonzeros, gotL1 := readBack(b, nonzeros, s.words), readBack(b, l1, s.words)
				for i := range s.words {
					start = append(start, int64(len(packed)))
					var size float64
					for j := range s.atoms {
						v := &want[i*s.atoms+j]
						if scaled {
							*v *= float32(factors[i])
						}
						if *v != 0 {
							index, packed = append(index, int64(j)), append(packed, *v)
							wantUsed[j] = 1
							size += math.Abs(float64(*v))
						}
					}
					if n := len(packed) - int(start[i]); int(gotNonzeros[i]) != n || math.Abs(gotL1[i]-size) > 1e-12*(1+size) {
						t.Errorf("row %d: %v nonzeros, Σ|a| %v, want %d, %v", i, gotNonzeros[i], gotL1[i], n, size)
					}
				}
				if got := b.read(codes); !slices.Equal(got, want) {
					t.Error("codes are not scaled as they should be")
				}
				if got := readBack(b, used, s.atoms); !slices.Equal(got, wantUsed) {
					t.Errorf("used dimensions %v, want %v", got, wantUsed)
				}
				// One number more than there are, as a guard.
				packedIndex, packedValue := alloc[int32](b.gpu, len(packed)+1), alloc[float32](b.gpu, len(packed)+1)
				b.queue(few(packCodes{
					codes: codes.data, starts: upload(b.gpu, start), index: packedIndex, value: packedValue, shape: shape,
				}.launch()), b.compute)
				gotIndex, gotValue := readBack(b, packedIndex, len(packed)+1), readBack(b, packedValue, len(packed)+1)
				if !slices.Equal(gotValue, append(packed, 0)) || gotIndex[len(packed)] != 0 {
					t.Errorf("packed values %v, want %v", gotValue, packed)
				}
				for i, want := range index {
					if int64(gotIndex[i]) != want {
						t.Fatalf("packed column %d is %d, want %d", i, gotIndex[i], want)
					}
				}
			}
		})
	}
}

// The GPU starts from the same bits as the CPU.
func TestRandomCodes(t *testing.T) {
	b := newBench(t)
	for _, s := range []struct {
		words, atoms, first int
		seed                uint64
	}{{1, 1, 0, 1}, {5, 7, 1000, 1 << 63}, {9, 130, 1<<33 + 5, 42}} {
		codes := b.array(nil, s.words, s.atoms)
		b.queue(few(randomCodes{
			codes: codes.data, firstWord: int64(s.first), seed: s.seed, scale: train.InitialCodeScale(s.atoms),
			shape: newWidths(s.atoms, 1).shape(s.words),
		}.launch()), b.compute)
		var want []float32
		for i := range s.words {
			code := make([]float32, s.atoms)
			train.InitialCode(code, s.seed, s.first+i)
			want = append(want, code...)
		}
		if !slices.Equal(b.read(codes), want) {
			t.Errorf("%+v: other numbers than the CPU's", s)
		}
	}
}
