package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// eachLevel runs a test for every level that this processor has, forced.
func eachLevel(t *testing.T, f func(t *testing.T, k *kernels)) {
	for _, k := range append([]*kernels{&generic}, processorLevels()...) {
		t.Run(k.name, func(t *testing.T) {
			t.Setenv(levelVariable, k.name)
			f(t, k)
		})
	}
}

func TestLevel(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		name, why, err := Level()
		if name != k.name || !strings.Contains(why, levelVariable) || err != nil {
			t.Errorf("level %q, %q, error %v", name, why, err)
		}
	})
	t.Setenv(levelVariable, "")
	best := append([]*kernels{&generic}, processorLevels()...)
	if name, why, err := Level(); name != best[len(best)-1].name || why == "" || err != nil {
		t.Errorf("level %q, %q, error %v", name, why, err)
	}
	t.Setenv(levelVariable, "mmx")
	want := `OVERCOMPLETE_CPU is "mmx", and this processor has generic`
	for _, err := range []error{
		func() error { _, _, err := Level(); return err }(),
		func() error { _, err := New(small, make([]float32, 4), Options{}); return err }(),
		func() error { _, err := NewAuthors(small, make([]float32, 4), Options{}); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// guarded memory has NaNs around every slice, to show reads beyond it in the
// result and writes beyond it in themselves. Slices start at odd places.
type guarded struct {
	t      *testing.T
	rng    *rand.Rand
	blocks [][]float32
	sizes  []int
}

const guards = 40 // more than two of the widest registers

var guard = math.Float32frombits(0x7fc00123)

func newGuarded(t *testing.T) *guarded {
	return &guarded{t: t, rng: rand.New(rand.NewPCG(1, 2))}
}

// floats returns n random numbers between guards.
func (g *guarded) floats(n int) []float32 {
	at := guards + g.rng.IntN(16)
	block := make([]float32, at+n+guards)
	for i := range block {
		block[i] = guard
	}
	x := block[at : at+n : at+n]
	for i := range x {
		x[i] = float32(g.rng.NormFloat64())
	}
	g.blocks, g.sizes = append(g.blocks, block, block), append(g.sizes, at, at+n)
	return x
}

// check fails if something was written between slices.
func (g *guarded) check(what string) {
	g.t.Helper()
	for i := 0; i < len(g.blocks); i += 2 {
		for j, x := range g.blocks[i] {
			if (j < g.sizes[i] || j >= g.sizes[i+1]) && math.Float32bits(x) != math.Float32bits(guard) {
				g.t.Errorf("%s: wrote %v at %d of slice %d", what, x, j-g.sizes[i], i/2)
				return
			}
		}
	}
	g.blocks, g.sizes = nil, nil
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
	eachLevel(t, func(t *testing.T, k *kernels) {
		g := newGuarded(t)
		for _, n := range lengths {
			for _, c := range []struct {
				name           string
				kernel, scalar func(dst, a, b []float32)
			}{
				{"combine", func(dst, a, b []float32) { k.combine(dst, 0.7, a, -1.3, b) }, func(dst, a, b []float32) { combineGeneric(dst, 0.7, a, -1.3, b) }},
				{"addConst", func(dst, a, _ []float32) { k.addConst(dst, a, 0.3) }, func(dst, a, _ []float32) { addConstGeneric(dst, a, 0.3) }},
				{"scale", func(dst, a, _ []float32) { k.scale(dst, a, -0.3) }, func(dst, a, _ []float32) { scaleGeneric(dst, a, -0.3) }},
				{"mul", k.mul, mulGeneric},
				{"relu", func(dst, a, _ []float32) { k.relu(dst, a) }, func(dst, a, _ []float32) { reluGeneric(dst, a) }},
				{"divSqrt", k.divSqrt, divSqrtGeneric},
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
			if got, want := k.sum(a), sumGeneric(a); math.Abs(got-want) > 1e-12*float64(n) {
				t.Errorf("sum of %d is %v, want %v", n, got, want)
			}
			g.check("sum")
		}
	})
}

func TestAdaGrad(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		g := newGuarded(t)
		for _, n := range lengths {
			what := fmt.Sprintf("adagrad of %d", n)
			h, p, d, m, s := g.floats(n), g.floats(n), g.floats(n), g.floats(n), g.floats(n)
			for i := range h {
				h[i] *= h[i]
				if i%5 == 0 {
					h[i], s[i] = 0, -abs32(s[i]) // nothing is added to 0: only ε is under the root
				}
				if i%10 == 0 {
					d[i], m[i] = 0, 0
				}
			}
			wantH, wantP := append([]float32(nil), h...), make([]float32, n)
			adagradGeneric(wantH, wantP, d, m, s, 4, -0.01, 0.02, 0.3, -2, 1e-30)
			k.adagrad(h, p, d, m, s, 4, -0.01, 0.02, 0.3, -2, 1e-30)
			nearFloats(t, what+": h", h, wantH, 5, 16)
			for i := range p {
				nearFloats(t, what+": p", p[i:i+1], wantP[i:i+1], 100, max(1, math.Abs(float64(wantP[i]))))
			}
			g.check(what)
		}
	})
}

func abs32(x float32) float32 { return float32(math.Abs(float64(x))) }

// A code is near its twin's but where S is within rounding of the threshold:
// the test has no such S.
func TestAverage(t *testing.T) {
	const gradient, square, threshold, rate = -2, 4, 2.5, 0.05
	eachLevel(t, func(t *testing.T, k *kernels) {
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

					value, index := g.floats(n+vectorFloats), make([]int32, n+vectorFloats)
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

// The product of every level adds n terms in order, so that it is near a sum in
// float64 by n roundings at most.
func TestProduct(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
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
					s := g.floats(1) // prefetching it is no reading
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
					k.product(&dst[0], dstRow, &a[0], aRow, aColumn, &b[0], bRow, n, &s[0], &s[0], 1, prefetched, max(1, n/k.rows))
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
	eachLevel(t, func(t *testing.T, k *kernels) {
		g := newGuarded(t)
		for dim := vectorFloats; dim <= 25*vectorFloats; dim += vectorFloats {
			for _, index := range [][]int32{{}, {first}, {end - 1}, {end}, {first, 7, 8, end - 1, end, 39}, {first, 6, 7, 9, 10, 20, 21, 22, 23}} {
				what := fmt.Sprintf("codes %v × %d", index, dim)
				value, d := g.floats(len(index)), g.floats(rows*dim)
				m, n, decoded := g.floats(dim), g.floats(dim), g.floats(dim)
				wantM, wantN, wantDecoded := make([]float32, dim), make([]float32, dim), make([]float32, dim)
				from := dim / vectorFloats / 3 * vectorFloats // decode is for parts of rows
				want := 0
				for j := range dim {
					sumM, sumN, sum := float64(m[j]), float64(n[j]), float64(decoded[j])
					want = 0
					for i, row := range index {
						if row >= end {
							break
						}
						p := float64(value[i]) * float64(d[int(row)*dim+j])
						sumM, sumN, sum = sumM+p, sumN+p*p, sum+p
						want++
					}
					wantM[j], wantN[j], wantDecoded[j] = float32(sumM), float32(sumN), float32(sum)
				}
				if got := k.decode(decoded[from:], index, value, d[from:], dim, end); got != want {
					t.Errorf("%s: decode stops at %d, want %d", what, got, want)
				}
				if got := k.accumulate(m, n, index, value, d, end); got != want {
					t.Errorf("%s: accumulate stops at %d, want %d", what, got, want)
				}
				// At most ten terms of at most 16, their squares of 256.
				nearFloats(t, what+": decode", decoded[from:], wantDecoded[from:], 10, 16)
				nearFloats(t, what+": m", m, wantM, 10, 16)
				nearFloats(t, what+": n", n, wantN, 10, 256)
				g.check(what)
			}
		}
	})
}

// A NaN shows at every level, or divergence would go unseen.
func TestNaNStays(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		for n := 1; n < 40; n++ {
			for at := range n {
				x := make([]float32, n)
				x[at] = float32(math.NaN())
				dst := make([]float32, n)
				k.relu(dst, x)
				zeros := func() []float32 { return make([]float32, n) }
				h, p := zeros(), zeros()
				k.adagrad(h, p, zeros(), zeros(), x, 1, 1, 1, 1, 1, 1)
				for i := range n {
					if isNaN := dst[i] != dst[i]; isNaN != (i == at) {
						t.Fatalf("relu of %v is %v", x, dst)
					}
					if isNaN := h[i] != h[i]; isNaN != (i == at) {
						t.Fatalf("H is %v for N %v", h, x)
					}
				}
			}
		}
	})
}
