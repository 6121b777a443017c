package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The tolerance is five roundings: two operations, two for AVX-512's reciprocal square root, and one to spare.
func TestElementwise(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for _, n := range lengths {
			for name, c := range map[string]struct {
				kernel func(dst, a, b []float32)
				want   func(a, b float64) []float64 // terms
			}{
				"combine":  {func(dst, a, b []float32) { k.Combine(dst, 0.75, a, -1.25, b) }, func(a, b float64) []float64 { return []float64{0.75 * a, -1.25 * b} }},
				"addConst": {func(dst, a, _ []float32) { k.AddConst(dst, a, 0.375) }, func(a, _ float64) []float64 { return []float64{a, 0.375} }},
				"scale":    {func(dst, a, _ []float32) { k.Scale(dst, a, -0.375) }, func(a, _ float64) []float64 { return []float64{-0.375 * a} }},
				"mul":      {k.Mul, func(a, b float64) []float64 { return []float64{a * b} }},
				"relu":     {func(dst, a, _ []float32) { k.Relu(dst, a) }, func(a, _ float64) []float64 { return []float64{max(a, 0)} }},
				"divSqrt":  {k.DivSqrt, func(a, b float64) []float64 { return []float64{a / math.Sqrt(b)} }},
			} {
				what := fmt.Sprintf("%s of %d", name, n)
				dst, a, b := g.floats(n), g.floats(n), g.floats(n)
				want := make([]sum, n)
				for i := range b {
					if name == "divSqrt" {
						b[i] = float32(math.Exp(g.rng.NormFloat64() * 10))
					}
					for _, x := range c.want(wide(a[i]), wide(b[i])) {
						want[i].add(x)
					}
				}
				c.kernel(dst, a, b)
				c.kernel(a, a, b) // dst may be a
				for i, want := range want {
					if !want.near(dst[i], 5) || !want.near(a[i], 5) {
						t.Errorf("%s: element %d is %v, and %v in place, want %v", what, i, dst[i], a[i], want.value)
						break
					}
				}
				g.check(what)
			}
			a := g.floats(n)
			var want sum
			for _, x := range a {
				want.add(wide(x))
			}
			// In float64, a rounding is 2⁻⁵³.
			if got := k.Sum(a); math.Abs(got-want.value) > float64(n)*0x1p-53*want.size {
				t.Errorf("sum of %d is %v, want %v", n, got, want.value)
			}
			g.check("sum")
		}
	})
}

// The kernels process a row in parts. These widths reach the code for every size of a part.
func TestMoveAtom(t *testing.T) {
	const rows, c0, c1, c2, c3, c4, step = 40, 4, -0.01, 0.02, 0.3, -2, 0.7
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
						h[i], n[i] = 0, -1-n[i] // H stays 0, so the root is √ε
					}
					if i%10 == 0 && len(index) == 0 {
						d[i], m[i] = 0, 0
					}
				}
				oldH, oldD := slices.Clone(h), slices.Clone(d)
				k.MoveAtom(h, p, d, m, n, index, value, r[left:], dim, c0, c1, c2, c3, c4, 1e-30, step)
				for j := range width {
					var M, N, added, gradient sum
					d0 := wide(oldD[j])
					M.add(wide(m[j]))
					N.add(wide(n[j]))
					for i, row := range index {
						x := wide(value[i]) * wide(r[int(row)*dim+left+j])
						M.add(x)
						N.add(x * x)
					}
					added.value = c0*N.value + d0*(c1*M.value+c2*d0)
					added.size = N.times(c0).size + M.times(c1*d0).size + c2*d0*d0
					gradient.value = c3*d0 + c4*M.value
					gradient.size = math.Abs(c3*d0) + M.times(c4).size
					// Roundings: one per term, up to four in each product, and one in the addition to H.
					terms := float64(len(index))
					addedErr := (terms + 7) * unit * added.size
					if added.value < -addedErr {
						addedErr = 0 // max(…, 0) is exact
					}
					wantH := wide(oldH[j]) + max(added.value, 0)
					errH := addedErr + unit*wantH
					// The root halves H's relative error. The root and the division add up to five roundings.
					root := math.Sqrt(wantH + 1e-30)
					wantP := gradient.value / root
					errP := (terms+5)*unit*gradient.size/root + math.Abs(wantP)*(errH/(wantH+1e-30)/2+5*unit)
					wantD := d0 + step*wantP
					errD := step*errP + 2*unit*(math.Abs(d0)+math.Abs(step*wantP))
					if !near(h[j], wantH, errH) || !near(p[j], wantP, errP) || !near(d[j], wantD, errD) {
						t.Errorf("%s: element %d has h, p, d of %v, %v, %v, want %v, %v, %v", what, j, h[j], p[j], d[j], wantH, wantP, wantD)
						break
					}
				}
				g.check(what)
			}
		}
	})
}

// dualAveraging is a test case of the kernel: inputs and expected outputs.
type dualAveraging struct {
	floor   float64
	p, s, q []float32
}

const gradient, square, threshold, rate = -2, 4, 2.5, 0.05

// after returns S, Q and the code of element j, with bounds of their rounding errors.
func (c dualAveraging) after(j int) (s, q sum, code, err float64) {
	s.add(wide(c.s[j]))
	s.add(gradient * wide(c.p[j]))
	q.add(wide(c.q[j]))
	q.add(square * wide(c.p[j]) * wide(c.p[j]))
	u := math.Abs(s.value) - threshold
	if u <= 0 {
		return s, q, 0, 0
	}
	step := rate / math.Sqrt(q.value+1e-30)
	code = max(-math.Copysign(step*u, s.value), c.floor)
	// S has two roundings, u one more, and the rest ten.
	return s, q, code, step*unit*(2*s.size+u) + 10*unit*math.Abs(code)
}

// averagingCases calls f with products, S and Q of all lengths, for which none, some or all codes are nonzero. No
// |S| is within rounding of the threshold.
func averagingCases(g *guarded, f func(what string, c dualAveraging)) {
	for _, n := range lengths {
		for _, floor := range []float64{math.Inf(-1), 0} {
			for _, density := range []float32{0, 1, 100} {
				c := dualAveraging{floor, g.normal(n), g.normal(n), g.normal(n)}
				for i := range n {
					c.s[i] *= density
					if density == 0 {
						c.p[i] *= 0.1 * float32(math.Exp(-10*g.rng.Float64()))
					}
					if math.Abs(math.Abs(wide(c.s[i])+gradient*wide(c.p[i]))-threshold) < 0.01 {
						c.s[i], c.p[i] = 0, 0
					}
					c.q[i] *= c.q[i]
					if i%7 == 0 {
						c.q[i], c.p[i] = 0, 0 // S may be large while Q is zero
					}
				}
				f(fmt.Sprintf("average of %d, floor %v, density %v", n, floor, density), c)
			}
		}
	}
}

// check compares codes with the expected codes.
func (c dualAveraging) check(t *testing.T, what string, index []int32, value []float32, column int32) {
	t.Helper()
	n := 0
	for j := range c.p {
		_, _, code, err := c.after(j)
		if code == 0 {
			continue
		}
		if n == len(index) || index[n] != column+int32(j) || !near(value[n], code, err) {
			t.Errorf("%s: codes %v of columns %v; code %d should be %v in column %d", what, value, index, n, code, column+int32(j))
			return
		}
		n++
	}
	if n != len(index) {
		t.Errorf("%s: %d codes, want %d", what, len(index), n)
	}
}

func TestAverage(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		averagingCases(g, func(what string, c dualAveraging) {
			n := len(c.p)
			p, s, q := g.floats(n), g.floats(n), g.floats(n)
			copy(p, c.p)
			copy(s, c.s)
			copy(q, c.q)
			index, value := make([]int32, n+Width), g.floats(n+Width)
			found := k.average(index, value, p, s, q, 1000, gradient, square, threshold, rate, float32(c.floor))
			for j := range n {
				if wantS, wantQ, _, _ := c.after(j); !wantS.near(s[j], 2) || !wantQ.near(q[j], 3) {
					t.Errorf("%s: S, Q of element %d are %v, %v, want %v, %v", what, j, s[j], q[j], wantS.value, wantQ.value)
					break
				}
			}
			c.check(t, what, index[:found], value[:found], 1000)
			g.check(what)
		})
	})
}

// Average calls the kernel for the row's part of the state, and appends the codes to the row.
func TestAverageOfState(t *testing.T) {
	const rows, columns, row, column = 3, 50, 1, 16
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		numbers := Averaging{Gradient: gradient, Square: square, Rate: rate, Floor: float32(math.Inf(-1))}
		p := g.floats(columns - column)
		s := &State{Columns: columns, S: make([]float32, rows*columns), Q: make([]float32, rows*columns)}
		index, value := append(make([]int32, 0, 1+columns+Width), 7), append(make([]float32, 0, 1+columns+Width), 0.5)
		part := s.Rows(1, 3)
		index, value = k.Average(&part, row-1, column, p, index, value, numbers)
		if len(index) != 1+len(p) || len(value) != 1+len(p) || index[0] != 7 || index[1] != column || value[0] != 0.5 {
			t.Errorf("codes %v of columns %v", value, index)
		}
		for i := range rows * columns {
			if want := i >= row*columns+column && i < (row+1)*columns; (s.S[i] != 0) != want {
				t.Errorf("S of row %d, column %d changed: %v", i/columns, i%columns, !want)
			}
		}
	})
}

// The test covers all widths that have code of their own, and codes that end before, at and after the end of a block.
func TestSparseProducts(t *testing.T) {
	const rows, end = 40, 30
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for dim := Width; dim <= 25*Width; dim += Width {
			for _, index := range [][]int32{{}, {5}, {end - 1}, {end}, {5, 7, 8, end}, {5, 7, 8, end - 1, end, 39}, {5, 6, 7, 9, 10, 20, 21, 22, 23}} {
				what := fmt.Sprintf("codes %v × %d", index, dim)
				before, _ := slices.BinarySearch(index, end)
				value, d := g.floats(len(index)), g.floats(rows*dim)
				decoded, left := g.floats(dim), dim/Width/3*Width // a product may start within a row
				old := slices.Clone(decoded)
				if got := k.Decode(decoded[left:], index, value, d[left:], dim, end); got != before {
					t.Errorf("%s: decode stops at %d, want %d", what, got, before)
				}
				for j := left; j < dim; j++ {
					var want sum
					want.add(wide(old[j]))
					for i, row := range index[:before] {
						want.add(wide(value[i]) * wide(d[int(row)*dim+j]))
					}
					if !want.near(decoded[j], before+2) {
						t.Errorf("%s: decode has %v at %d, want %v", what, decoded[j], j, want.value)
						break
					}
				}
				r, p := g.floats(dim), g.floats(len(index))
				old = slices.Clone(p)
				if got := k.Dots(p, index, r, d, dim, end); got != before {
					t.Errorf("%s: dots stops at %d, want %d", what, got, before)
				}
				for i, row := range index[:before] {
					if want := dot(dim, r, 1, d[int(row)*dim:], 1); !want.near(p[i], dim+1) {
						t.Errorf("%s: product %d is %v, want %v", what, i, p[i], want.value)
					}
				}
				if !slices.Equal(p[before:], old[before:]) {
					t.Errorf("%s: dots wrote beyond where it stops", what)
				}
				g.check(what)
			}
		}
	})
}

// In float64, two multiplications with additions have at most four roundings of 2⁻⁵³.
func TestAxpy(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for n := 0; n <= 5*Width; n += Width {
			c, row := make([]float64, n), g.floats(n)
			k.Axpy(c, 0.3, row)
			k.Axpy(c, -1.7, row)
			for j, x := range row {
				var want sum
				want.add(0.3 * wide(x))
				want.add(-1.7 * wide(x))
				if math.Abs(c[j]-want.value) > 4*0x1p-53*want.size {
					t.Errorf("axpy of %d: element %d is %v, want %v", n, j, c[j], want.value)
				}
			}
			g.check("axpy")
		}
	})
}

// Every level propagates a NaN; otherwise divergence would not be detected.
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

// All levels but plain Go add numbers of any sizes in the same order.
func TestSumBits(t *testing.T) {
	var want []float64
	for _, k := range Levels()[1:] {
		rng := rand.New(rand.NewPCG(1, 2))
		var got []float64
		for n := range 400 {
			a := make([]float32, n)
			for i := range a {
				a[i] = float32(math.Exp(4 * rng.NormFloat64()))
			}
			got = append(got, k.Sum(a))
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s adds in another order than %s", k.Name, Levels()[1].Name)
		}
	}
}
