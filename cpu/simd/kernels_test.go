package simd

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// eachLevel runs a test for every level that this processor has.
func eachLevel(t *testing.T, f func(t *testing.T, k *Kernels)) {
	for _, k := range Levels() {
		t.Run(k.Name, func(t *testing.T) { f(t, k) })
	}
}

func TestChoose(t *testing.T) {
	eachLevel(t, func(t *testing.T, want *Kernels) {
		t.Setenv(Variable, want.Name)
		if k, why, err := Choose(); k != want || !strings.Contains(why, Variable) || err != nil {
			t.Errorf("level %v, %q, error %v", k, why, err)
		}
	})
	t.Setenv(Variable, "")
	levels := Levels()
	if k, why, err := Choose(); k != levels[len(levels)-1] || why == "" || err != nil {
		t.Errorf("level %v, %q, error %v", k, why, err)
	}
	t.Setenv(Variable, "mmx")
	want := `OVERCOMPLETE_CPU is "mmx", and this processor has generic`
	if _, _, err := Choose(); !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// guarded memory has NaNs around every slice, to show reads beyond it in the
// result and writes beyond it in themselves. Slices start at odd places.
type guarded struct {
	t       *testing.T
	rng     *rand.Rand
	written []func() (at int, yes bool) // for each slice, whether something was written beyond it, and where
}

const guards = 40 // more than two of the widest registers

func newGuarded(t *testing.T) *guarded {
	return &guarded{t: t, rng: rand.New(rand.NewPCG(1, 2))}
}

// floats returns n random numbers between guards.
func (g *guarded) floats(n int) []float32 {
	x := between(g, n, math.Float32frombits(0x7fc00123), math.Float32bits)
	for i := range x {
		x[i] = float32(g.rng.NormFloat64())
	}
	return x
}

// halves returns the float16 nearest to x between guards.
func (g *guarded) halves(x []float32) []uint16 {
	h := between(g, len(x), 0x7e12, func(h uint16) uint32 { return uint32(h) })
	for i := range h {
		h[i] = Float16Bits(x[i])
	}
	return h
}

func between[T float32 | uint16](g *guarded, n int, guard T, bits func(T) uint32) []T {
	at := guards + g.rng.IntN(16)
	block := make([]T, at+n+guards)
	for i := range block {
		block[i] = guard
	}
	g.written = append(g.written, func() (int, bool) {
		for j, x := range block {
			if (j < at || j >= at+n) && bits(x) != bits(guard) {
				return j - at, true
			}
		}
		return 0, false
	})
	return block[at : at+n : at+n]
}

// check fails if something was written between slices.
func (g *guarded) check(what string) {
	g.t.Helper()
	for i, written := range g.written {
		if at, yes := written(); yes {
			g.t.Errorf("%s: wrote at %d of slice %d", what, at, i)
			return
		}
	}
	g.written = nil
}

// nearFloats fails where got and want differ by more than so many units in the
// last place of the size that is given, that of the largest intermediate result.
func nearFloats(t *testing.T, what string, got, want []float32, ulps, size float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= ulps*size/(1<<24)) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

var lengths = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 31, 32, 33, 47, 50, 64, 65, 300, 301}

// Elementwise loops round each operation at most once more than their twins: 3
// units in the last place for at most three operations, and two more of AVX-512's
// reciprocal square root.
func TestElementwise(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for _, n := range lengths {
			for _, c := range []struct {
				name           string
				kernel, scalar func(dst, a, b []float32)
			}{
				{"combine", func(dst, a, b []float32) { k.Combine(dst, 0.7, a, -1.3, b) }, func(dst, a, b []float32) { combineGeneric(dst, 0.7, a, -1.3, b) }},
				{"addConst", func(dst, a, _ []float32) { k.AddConst(dst, a, 0.3) }, func(dst, a, _ []float32) { addConstGeneric(dst, a, 0.3) }},
				{"scale", func(dst, a, _ []float32) { k.Scale(dst, a, -0.3) }, func(dst, a, _ []float32) { scaleGeneric(dst, a, -0.3) }},
				{"mul", k.Mul, mulGeneric},
				{"relu", func(dst, a, _ []float32) { k.Relu(dst, a) }, func(dst, a, _ []float32) { reluGeneric(dst, a) }},
				{"divSqrt", k.DivSqrt, divSqrtGeneric},
			} {
				what := fmt.Sprintf("%s of %d", c.name, n)
				dst, a, b := g.floats(n), g.floats(n), g.floats(n)
				for i := range b {
					if c.name == "divSqrt" {
						b[i] = float32(math.Exp(g.rng.NormFloat64() * 10))
						a[i] *= float32(math.Sqrt(float64(b[i]))) // results near 1
					}
				}
				want := make([]float32, n)
				c.scalar(want, a, b)
				c.kernel(dst, a, b)
				nearFloats(t, what, dst, want, 5, 4)
				c.kernel(a, a, b) // dst may be an argument
				nearFloats(t, what+" in place", a, want, 5, 4)
				g.check(what)
			}
			a := g.floats(n)
			// Sums in float64 of any order agree to far more digits than float32 has.
			if got, want := k.Sum(a), sumGeneric(a); math.Abs(got-want) > 1e-12*float64(n) {
				t.Errorf("sum of %d is %v, want %v", n, got, want)
			}
			g.check("sum")
		}
	})
}

// Sums of ten terms, each below 16, and what AdaGrad makes of them, at all widths
// that have code of their own, for parts of rows.
func TestMoveAtom(t *testing.T) {
	const rows = 40
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for dim := Width; dim <= 25*Width; dim += Width {
			for _, index := range [][]int32{{}, {0}, {rows - 1}, {5, 6, 7, 9, 10, 20, 21, 22, 23, 39}} {
				what := fmt.Sprintf("words %v × %d", index, dim)
				left := dim / Width / 3 * Width
				width := dim - left
				h, p, d, m, n := g.floats(width), g.floats(width), g.floats(width), g.floats(width), g.floats(width)
				value, r := g.floats(len(index)), g.floats(rows*dim)
				for i := range h {
					h[i], n[i] = 1+h[i]*h[i], n[i]*n[i]
					if i%5 == 0 && len(index) == 0 {
						h[i], n[i] = 0, -1-n[i] // nothing is added to 0: only ε is under the root
					}
					if i%10 == 0 && len(index) == 0 {
						d[i], m[i] = 0, 0
					}
				}
				wantH, wantP, wantD := slices.Clone(h), make([]float32, width), slices.Clone(d)
				for j := range width {
					sum, squares := float64(m[j]), float64(n[j])
					for i, row := range index {
						x := float64(value[i]) * float64(r[int(row)*dim+left+j])
						sum, squares = sum+x, squares+x*x
					}
					h, d := float64(h[j]), float64(d[j])
					h += max(4*squares+d*(-0.01*sum+0.02*d), 0)
					p := (0.3*d - 2*sum) / math.Sqrt(h+1e-30)
					wantH[j], wantP[j], wantD[j] = float32(h), float32(p), float32(d+0.7*p)
				}
				k.MoveAtom(h, p, d, m, n, index, value, r[left:], dim, 4, -0.01, 0.02, 0.3, -2, 1e-30, 0.7)
				nearFloats(t, what+": h", h, wantH, 10, 4*256)
				for i := range p {
					size := 16 / math.Sqrt(float64(wantH[i])+1e-30) // of what is added up, over the root
					nearFloats(t, what+": p", p[i:i+1], wantP[i:i+1], 50, max(size, 16))
					nearFloats(t, what+": d", d[i:i+1], wantD[i:i+1], 50, max(size, 16))
				}
				g.check(what)
			}
		}
	})
}

func abs32(x float32) float32 { return float32(math.Abs(float64(x))) }

// A code is near its twin's but where S is within rounding of the threshold:
// the test has no such S.
func TestAverage(t *testing.T) {
	const gradient, square, threshold, rate = -2, 4, 2.5, 0.05
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for _, n := range lengths {
			for _, floor := range []float32{float32(math.Inf(-1)), 0} {
				for _, density := range []float32{0, 1, 100} { // no codes, some, all
					what := fmt.Sprintf("average of %d, floor %v, density %v", n, floor, density)
					p, s, q := g.floats(n), g.floats(n), g.floats(n)
					for i := range s {
						s[i] *= density
						if density == 0 {
							p[i] *= 0.1
						}
						if u := abs32(s[i]+gradient*p[i]) - threshold; abs32(u) < 0.01 {
							s[i], p[i] = 0, 0
						}
						if q[i] *= q[i]; i%7 == 0 {
							q[i], p[i] = 0, 0 // S may be large, and Q zero
						}
					}
					wantS, wantQ := append([]float32(nil), s...), append([]float32(nil), q...)
					wantIndex, wantValue := make([]int32, n), make([]float32, n)
					want := averageGeneric(wantIndex, wantValue, p, wantS, wantQ, 1000, gradient, square, threshold, rate, floor)

					value, index := g.floats(n+Width), make([]int32, n+Width)
					got := k.average(index, value, p, s, q, 1000, gradient, square, threshold, rate, floor)
					nearFloats(t, what+": S", s, wantS, 4, 400)
					nearFloats(t, what+": Q", q, wantQ, 4, 64)
					if got != want {
						t.Errorf("%s: %d codes, want %d", what, got, want)
						continue
					}
					for i := range want {
						if index[i] != wantIndex[i] {
							t.Errorf("%s: code %d is of column %d, want %d", what, i, index[i], wantIndex[i])
							break
						}
						nearFloats(t, what+": code", value[i:i+1], wantValue[i:i+1], 400, math.Abs(float64(wantValue[i])))
					}
					g.check(what)
				}
			}
		}
	})
}

// S and √Q in float16 are those of the twin but where they are rounded after a
// calculation that differs in its last bits: then they are neighbours. Codes are
// of numbers not yet rounded.
func TestAverageHalf(t *testing.T) {
	const gradient, square, threshold, rate = -2, 4, 2.5, 0.05
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		rounded := 0 // numbers that are not the twin's
		for _, n := range lengths {
			for _, floor := range []float32{float32(math.Inf(-1)), 0} {
				for _, density := range []float32{0, 1, 100} {
					what := fmt.Sprintf("average of %d, floor %v, density %v", n, floor, density)
					p, s, q := g.floats(n), make([]float32, n), make([]float32, n)
					for i := range s {
						s[i], q[i] = density*float32(g.rng.NormFloat64()), float32(min(math.Exp(5*g.rng.NormFloat64()), 1e4))
						if density == 0 {
							p[i] *= float32(math.Exp(-10 * g.rng.Float64())) // down to where squares are subnormal
						}
						if u := abs32(Float16FromBits(Float16Bits(s[i]))+gradient*p[i]) - threshold; abs32(u) < 0.01 {
							s[i], p[i] = 0, 0
						}
						if i%7 == 0 {
							q[i], p[i] = 0, 0
						}
					}
					gotS, gotQ, wantS, wantQ := g.halves(s), g.halves(q), g.halves(s), g.halves(q)
					wantIndex, wantValue := make([]int32, n), make([]float32, n)
					want := averageHalfGeneric(wantIndex, wantValue, p, wantS, wantQ, 1000, gradient, square, threshold, rate, floor)
					value, index := g.floats(n+Width), make([]int32, n+Width)
					got := k.averageHalf(index, value, p, gotS, gotQ, 1000, gradient, square, threshold, rate, floor)
					for i := range n {
						if d := int(gotS[i]) - int(wantS[i]); d < -1 || d > 1 {
							t.Errorf("%s: S %d is %#x, want %#x", what, i, gotS[i], wantS[i])
						} else if d != 0 {
							rounded++
						}
						if d := int(gotQ[i]) - int(wantQ[i]); d < -1 || d > 1 {
							t.Errorf("%s: √Q %d is %#x, want %#x", what, i, gotQ[i], wantQ[i])
						} else if d != 0 {
							rounded++
						}
					}
					if got != want || !slices.Equal(index[:got], wantIndex[:want]) {
						t.Errorf("%s: codes of columns %d, want %d", what, index[:got], wantIndex[:want])
						continue
					}
					for i := range want {
						nearFloats(t, what+": code", value[i:i+1], wantValue[i:i+1], 400, math.Abs(float64(wantValue[i])))
					}
					g.check(what)
				}
			}
		}
		// A float32 sum is within an ulp of the twin's: it is rounded otherwise once in 2¹³/2 times.
		if rounded > 20 {
			t.Errorf("%d numbers are rounded otherwise than their twins", rounded)
		}
	})
}

// Tiny gradients: codes stay as small as float32's, for √Q does not vanish where
// S does not.
func TestAverageHalfOfTinyGradients(t *testing.T) {
	const rate, epochs = 0.05, 50
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for e := -60; e <= 4; e++ {
			p := make([]float32, 2*Width)
			for i := range p {
				p[i] = float32(math.Ldexp(1+float64(i)/float64(len(p)), e))
			}
			s, q := make([]uint16, len(p)), make([]uint16, len(p))
			index, value := make([]int32, len(p)+Width), make([]float32, len(p)+Width)
			for range epochs {
				n := k.averageHalf(index, value, p, s, q, 0, 1, 1, 0, rate, float32(math.Inf(-1)))
				for i := range s {
					if s[i] != 0 && q[i] == 0 {
						t.Fatalf("gradient %v: S is %#x where √Q is 0", p[i], s[i])
					}
				}
				for _, a := range value[:n] {
					if !(abs32(a) <= rate*epochs) { // in float32 it is at most rate·√epochs
						t.Fatalf("gradients from %v: code %v", p[0], a)
					}
				}
			}
		}
	})
}

// S or √Q beyond float16's range must show.
func TestAverageHalfOverflow(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, floor := range []float32{float32(math.Inf(-1)), 0} {
			for _, c := range []struct{ s, q float32 }{{1e5, 1e3}, {-1e5, 1e3}, {-1e4, 1e5}, {1e4, 1e5}, {-1e5, 1e5}} {
				for at := range 2 * Width {
					p := make([]float32, 2*Width+3)
					s, q := make([]uint16, len(p)), make([]uint16, len(p))
					s[at], q[at] = Float16Bits(c.s), Float16Bits(c.q)
					index, value := make([]int32, len(p)+Width), make([]float32, len(p)+Width)
					n := k.averageHalf(index, value, p, s, q, 0, 1, 1, 0, 0.05, floor)
					if n != 1 || index[0] != int32(at) || value[0] == value[0] {
						t.Fatalf("S %v, Q %v², floor %v: codes %v of columns %d", c.s, c.q, floor, value[:n], index[:n])
					}
				}
			}
		}
	})
}

// The product of every level adds n terms in order, so that it is near a sum in
// float64 by n roundings at most.
func TestProduct(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for _, n := range []int{1, 2, 5, 13, 300} {
			for _, transposed := range []bool{false, true} {
				for _, prefetched := range []int{0, 1, k.rows} {
					what := fmt.Sprintf("product of %d terms, transposed %v", n, transposed)
					dstRow, aRow, aColumn, bRow := k.columns+3, n+2, 1, k.columns+5
					if transposed {
						aRow, aColumn = 1, k.rows+3
					}
					dst := g.floats((k.rows-1)*dstRow + k.columns)
					a := g.floats((k.rows-1)*aRow + (n-1)*aColumn + 1)
					b := g.floats((n-1)*bRow + k.columns)
					s := (*byte)(unsafe.Pointer(&g.floats(1)[0])) // prefetching it is no reading
					want := append([]float32(nil), dst...)
					for i := range k.rows {
						for j := range k.columns {
							sum := float64(dst[i*dstRow+j])
							for l := range n {
								sum += float64(a[i*aRow+l*aColumn]) * float64(b[l*bRow+j])
							}
							want[i*dstRow+j] = float32(sum)
						}
					}
					k.product(&dst[0], dstRow, &a[0], aRow, aColumn, &b[0], bRow, n, s, s, 4, prefetched, max(1, n/k.rows))
					nearFloats(t, what, dst, want, float64(n+2), 10+3*math.Sqrt(float64(n)))
					g.check(what)
				}
			}
		}
	})
}

// Products of codes, at all widths that have code of their own, for codes that
// end before, at and after a block's end.
func TestSparseProducts(t *testing.T) {
	const rows, first, end = 40, 5, 30
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for dim := Width; dim <= 25*Width; dim += Width {
			for _, index := range [][]int32{{}, {first}, {end - 1}, {end}, {first, 7, 8, end - 1, end, 39}, {first, 6, 7, 9, 10, 20, 21, 22, 23}} {
				what := fmt.Sprintf("codes %v × %d", index, dim)
				value, d := g.floats(len(index)), g.floats(rows*dim)
				decoded, wantDecoded := g.floats(dim), make([]float32, dim)
				from := dim / Width / 3 * Width // it is for parts of rows
				want := 0
				for j := range dim {
					sum := float64(decoded[j])
					want = 0
					for i, row := range index {
						if row >= end {
							break
						}
						sum += float64(value[i]) * float64(d[int(row)*dim+j])
						want++
					}
					wantDecoded[j] = float32(sum)
				}
				if got := k.Decode(decoded[from:], index, value, d[from:], dim, end); got != want {
					t.Errorf("%s: decode stops at %d, want %d", what, got, want)
				}
				// At most ten terms of at most 16.
				nearFloats(t, what+": decode", decoded[from:], wantDecoded[from:], 10, 16)
				g.check(what)
			}
		}
	})
}

// A NaN shows at every level, or divergence would go unseen.
func TestNaNStays(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for n := 1; n < 40; n++ {
			for at := range n {
				x := make([]float32, n)
				x[at] = float32(math.NaN())
				dst := make([]float32, n)
				k.Relu(dst, x)
				for i := range n {
					if isNaN := dst[i] != dst[i]; isNaN != (i == at) {
						t.Fatalf("relu of %v is %v", x, dst)
					}
				}
			}
		}
		for width := Width; width <= 25*Width; width += Width {
			for at := range width {
				zeros := func() []float32 { return make([]float32, width) }
				h, p, d, r := zeros(), zeros(), zeros(), zeros()
				r[at] = float32(math.NaN())
				k.MoveAtom(h, p, d, zeros(), zeros(), []int32{0}, []float32{1}, r, width, 1, 1, 1, 1, 1, 1, 1)
				for i := range width {
					if h, d := h[i] != h[i], d[i] != d[i]; h != (i == at) || d != (i == at) {
						t.Fatalf("H is NaN: %v, D is NaN: %v, for a NaN %d further on", h, d, at-i)
					}
				}
			}
		}
	})
}

func TestFISTAKernels(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for _, n := range lengths {
			for _, floor := range []float32{float32(math.Inf(-1)), 0} {
				for _, threshold := range []float32{0, 1, 100} { // all codes, some, none
					what := fmt.Sprintf("fista of %d, floor %v, threshold %v", n, floor, threshold)
					p, b, a := g.floats(n), g.floats(n), g.floats(n)
					for i := range p {
						if i%4 == 0 {
							p[i], b[i], a[i] = 0, 0, 0
						}
						z := b[i] + 0.6*(b[i]-a[i])
						if abs32(abs32(z+0.3*p[i])-threshold) < 0.01 { // in doubt
							p[i], b[i], a[i] = 0, 0, 0
						}
					}
					wantA, wantIndex, wantValue := slices.Clone(a), make([]int32, n), make([]float32, n)
					want, wantAgainst := fistaGeneric(wantIndex, wantValue, p, b, wantA, 1000, 0.6, 0.3, threshold, floor)

					value, index := g.floats(n+Width), make([]int32, n+Width)
					got, against := k.FISTA(index, value, p, b, a, 1000, 0.6, 0.3, threshold, floor)
					nearFloats(t, what+": a", a, wantA, 4, 100)
					if got != want || !slices.Equal(index[:got], wantIndex[:want]) {
						t.Errorf("%s: %d codes, want %d, or others", what, got, want)
						continue
					}
					nearFloats(t, what+": codes", value[:got], wantValue[:want], 4, 100)
					// n terms of at most 100.
					nearFloats(t, what+": against", []float32{against}, []float32{wantAgainst}, float64(n+4), 100)
					g.check(what)
				}
			}
		}
		for n := 0; n <= 5*Width; n += Width {
			c, row := make([]float64, n), g.floats(n)
			k.Axpy(c, 0.5, row)
			k.Axpy(c, -2, row)
			for j, x := range row {
				if want := -1.5 * float64(x); math.Abs(c[j]-want) > 1e-15*math.Abs(want) {
					t.Errorf("axpy of %d: element %d is %v, want %v", n, j, c[j], want)
				}
			}
		}
		for dim := Width; dim <= 25*Width; dim += Width {
			const rows, end = 40, 30
			for _, index := range [][]int32{{}, {5}, {end}, {5, 7, 8, end - 1, end, 39}} {
				what := fmt.Sprintf("dots of %v × %d", index, dim)
				r, d, p := g.floats(dim), g.floats(rows*dim), g.floats(len(index))
				want := slices.Clone(p)
				n := 0
				for ; n < len(index) && index[n] < end; n++ {
					var sum float64
					for j, x := range r {
						sum += float64(x) * float64(d[int(index[n])*dim+j])
					}
					want[n] = float32(sum)
				}
				if got := k.Dots(p, index, r, d, dim, end); got != n {
					t.Errorf("%s: stops at %d, want %d", what, got, n)
				}
				// Sums of dim/16 terms or more, each near 1.
				nearFloats(t, what, p, want, float64(dim), 10)
				g.check(what)
			}
		}
	})
}
