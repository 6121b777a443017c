package simd

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// integers returns n integers from −most to most between guards. One slice in seven contains only −most and most.
func integers[T int8 | int32](g *guarded, n, most int) []T {
	x := between(g, n, T(99), func(x T) bool { return x == 99 })
	extreme := g.rng.IntN(7) == 0
	for i := range x {
		if x[i] = T(g.rng.IntN(2*most+1) - most); extreme {
			x[i] = T(most * (1 - 2*g.rng.IntN(2)))
		}
	}
	return x
}

// coarse returns a dictionary with random bytes, and random scales.
func coarse(g *guarded, k *Kernels, atoms, width int) *Coarse {
	m := NewMatrix(atoms, width)
	for i := range atoms {
		for j, x := range integers[int8](g, width, byteLevels) {
			m.Row(i)[j] = float32(x)
		}
		m.Row(i)[g.rng.IntN(width)] = byteLevels
	}
	c := new(Coarse)
	c.Resize(k, 5, 3) // the next call reuses memory
	c.Resize(k, atoms, width)
	c.Measure(m, 0, atoms)
	c.Fill(k, m, 0, atoms)
	for i := range atoms {
		c.Scale[i] = float32(g.rng.Float64())
	}
	return c
}

// residuals returns rows of random bytes, without padding and offset, and with random padding and the level's offset.
func residuals(g *guarded, k *Kernels, rows, width int) (plain, bytes []int8) {
	pitch := BytePitch(width)
	bytes = make([]int8, (rows+TileRows)*pitch)
	for i := range rows {
		row := integers[int8](g, width, 64)
		plain = append(plain, row...)
		for j := range pitch {
			bytes[i*pitch+j] = int8(g.rng.IntN(129)-64) + k.offset
			if j < width {
				bytes[i*pitch+j] = row[j] + k.offset
			}
		}
	}
	return plain, bytes
}

func (c *Coarse) dot(x []int8, atom int) (sum int32) {
	for j, v := range x {
		sum += int32(v) * int32(c.bytes[atom*c.pitch+j])
	}
	return sum
}

func TestByteProducts(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		var scratch []int32
		for _, width := range []int{1, 7, 8, 9, 50, 64, 65, 300, 1000} {
			for _, atoms := range []int{1, k.byteColumns, k.byteColumns + 1, 256, 600} {
				c := coarse(g, k, atoms, width)
				for _, rows := range []int{1, k.byteRows, 2*k.byteRows + 1} {
					plain, bytes := residuals(g, k, rows, width)
					next := make([]int, rows)
					c.Correlate(k, bytes, rows, &scratch, func(i, column int, sums []int32) {
						if column != next[i] || len(sums)%Width != 0 {
							t.Fatalf("%d sums of row %d from column %d on, want column %d", len(sums), i, column, next[i])
						}
						next[i] += len(sums)
						for j, got := range sums {
							if column+j >= atoms {
								if c.Scale[column+j] != 0 {
									t.Fatalf("the padding has a scale of %v", c.Scale[column+j])
								}
							} else if want := c.dot(plain[i*width:][:width], column+j); got != want {
								t.Fatalf("%d atoms of %d: sum %d of row %d is %d, want %d", atoms, width, column+j, i, got, want)
							}
						}
					})
					for i, n := range next {
						if n < atoms {
							t.Errorf("%d atoms of %d: row %d has %d sums", atoms, width, i, n)
						}
					}
					squares := 0
					for _, x := range plain[:width] {
						squares += int(x) * int(x)
					}
					if got := k.SquaresOfBytes(bytes[:width]); got != squares {
						t.Errorf("sum of squares %d, want %d", got, squares)
					}
					for _, n := range []int{0, 4, 8, 12} {
						index, z := make([]int32, n), integers[int8](g, n, 127)
						for i := range index {
							index[i] = int32(g.rng.IntN(atoms))
						}
						p := g.floats(n)
						c.Dots(k, p, index, bytes[:c.pitch])
						for i, x := range index {
							if want := float32(c.dot(plain[:width], int(x))) * c.Scale[x]; p[i] != want {
								t.Fatalf("%d atoms of %d: product %d is %v, want %v", atoms, width, i, p[i], want)
							}
						}
						out := integers[int32](g, c.pitch, 99)
						c.Decode(k, out, index, z)
						for j, got := range out {
							var want int32
							for i, x := range index {
								want += int32(z[i]) * int32(c.bytes[int(x)*c.pitch+j])
							}
							if got != want {
								t.Fatalf("%d atoms of %d: element %d of a code of %d is %d, want %d", atoms, width, j, n, got, want)
							}
						}
						g.check("products of a list")
					}
				}
			}
		}
	})
}

// The sums of long codes with extreme values would often overflow 16 bits.
func TestDecodeManyBytes(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		c := coarse(g, k, 40, 448)
		for _, most := range []int{1, 3, 20, 127} {
			index, z := make([]int32, 4000), integers[int8](g, 4000, most)
			want, out := make([]int32, c.pitch), make([]int32, c.pitch)
			for i := range index {
				index[i] = int32(g.rng.IntN(40))
				for j := range want {
					want[j] += int32(z[i]) * int32(c.bytes[int(index[i])*c.pitch+j])
				}
			}
			if c.Decode(k, out, index, z); !slices.Equal(out, want) {
				t.Errorf("values up to %d: %v, want %v", most, out, want)
			}
		}
	})
}

// An atom's bytes are its elements in units of a 63rd of its largest magnitude. The atoms differ in scale; one is
// zero, and one is below leastTop.
func TestCoarse(t *testing.T) {
	const atoms, width, s = 30, 21, 0.25
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		m := random(g, atoms, width)
		for i := range atoms {
			factor := float32(math.Pow(10, float64(i%7)-3))
			if i == 3 {
				factor = 0
			} else if i == 4 {
				factor = 1e-40
			}
			for j := range m.Row(i) {
				m.Row(i)[j] *= factor
			}
		}
		c := new(Coarse)
		c.Resize(k, atoms, width)
		c.Measure(m, 0, atoms)
		c.Fill(k, m, 0, 7)
		c.Fill(k, m, 7, atoms)
		c.SetStep(s)
		var reach float64
		for i := range atoms {
			var squares float64
			size := float64(c.Share[i]) * c.Unit
			for j, x := range m.Row(i) {
				got := c.bytes[i*c.pitch+j]
				squares += float64(got) * float64(got)
				if i == 3 || i == 4 {
					if got != 0 || size != 0 {
						t.Fatalf("atom %d has byte %d of %v", i, got, size)
					}
				} else if math.Abs(float64(got)*size-float64(x)) > 0.50001*size {
					t.Fatalf("byte %d of atom %d is %d of %v, for %v", j, i, got, size, x)
				}
			}
			want := 2 * s * c.Unit * size
			if math.Abs(float64(c.Scale[i])-want) > 1e-7*want {
				t.Errorf("scale of atom %d is %v, want %v", i, c.Scale[i], want)
			}
			reach = max(reach, want*float64(c.Share[i])*math.Sqrt(squares))
		}
		if math.Abs(float64(c.Reach)-reach) > 1e-6*reach {
			t.Errorf("reach %v, want %v", c.Reach, reach)
		}
	})
}

func TestQuantise(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for n := 0; n < 20*Width; n += Width {
			x := g.floats(n)
			for i := range x {
				if x[i] = float32(g.rng.Float64()*128 - 64); i%3 == 0 {
					x[i] = float32(g.rng.IntN(129)-64) + 0.5*float32(g.rng.IntN(2)) // halves: ties of rounding
				}
				x[i] = min(x[i], 64) / 4
			}
			for _, offset := range []int8{0, 64} {
				dst := integers[int8](g, n, 9)
				k.Quantise(dst, x, 4, offset)
				for i := range x {
					if want := int8(int(math.RoundToEven(float64(4*x[i]))) + int(offset)); dst[i] != want {
						t.Fatalf("%v is rounded to %d, want %d", 4*x[i], dst[i], want)
					}
				}
			}
			g.check("quantise")
		}
	})
}

func TestResidual(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for n := 0; n < 20*Width; n += Width {
			r, y, o := g.floats(n), g.floats(n), integers[int32](g, n, 1<<26)
			got := k.Residual(r, y, o, 0x1p-20)
			var want float32
			for j := range r {
				x := y[j] - float32(o[j])*0x1p-20
				if want = max(want, x, -x); r[j] != x {
					t.Fatalf("element %d is %v, want %v", j, r[j], x)
				}
			}
			if got != want {
				t.Errorf("the largest is %v, want %v", got, want)
			}
			g.check("residual")
		}
	})
}

func TestCandidates(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for n := 0; n <= 256; n += Width {
			for _, limit := range []float32{0, 1, 50, float32(math.Inf(1))} {
				for _, floor := range []float32{0, float32(math.Inf(-1))} {
					sums, scale, members := integers[int32](g, n, 1000), g.floats(n), make([]byte, n/8)
					for i := range scale {
						scale[i] = scale[i] * scale[i] / 20
					}
					for i := range members {
						members[i] = byte(g.rng.Uint64() & g.rng.Uint64())
					}
					type result struct {
						n     int
						index []int32
						p     []float32
					}
					var results []result
					for _, k := range []*Kernels{k, &generic} {
						index, p := integers[int32](g, n+Width, 9), g.floats(n+Width)
						found := k.Candidates(index, p, sums, scale, members, 512, limit, floor)
						results = append(results, result{found, index[:found], slices.Clone(p[:found])})
						g.check("candidates")
					}
					if fmt.Sprint(results[0]) != fmt.Sprint(results[1]) {
						t.Fatalf("limit %v, floor %v: %v, want %v", limit, floor, results[0], results[1])
					}
					if limit == 0 && n > 0 && results[0].n == 0 || limit > 1e9 && results[0].n > 0 {
						t.Fatalf("limit %v: %d candidates", limit, results[0].n)
					}
				}
			}
		}
	})
}

func TestAdvance(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for n := 0; n <= 10*Width; n += Width {
			for _, floor := range []float32{0, float32(math.Inf(-1))} {
				for _, threshold := range []float32{0, 0.5, 100} {
					for _, scale := range []float32{0, 0.25, 16, 1024} {
						p, z, b, v := g.normal(n), g.normal(n), g.normal(n), g.normal(n)
						index := integers[int32](g, n, 1000)
						for i := range b {
							if i%3 == 0 {
								b[i] = 0
							}
							if v[i] = max(v[i], -v[i]); i%7 == 0 {
								p[i], z[i], b[i] = 0, 0, 0
							}
						}
						for _, enter := range []uint32{0, math.MaxUint32} {
							var results []string
							for _, k := range []*Kernels{k, &generic} {
								lists := [4][]float32{g.floats(n), g.floats(n), g.floats(n), g.floats(n)}
								for i, x := range [][]float32{p, z, b, v} {
									copy(lists[i], x)
								}
								active, bytes := integers[int32](g, n+Width, 9), integers[int8](g, n+Width, 9)
								found, largest := k.Advance(active, bytes, index, lists[0], lists[1], lists[2], lists[3], 0.5, threshold, floor, 0.625, scale, enter)
								for i := range n { // −0 becomes 0, because the sign of a zero is undefined
									lists[1][i] += 0
									lists[2][i] += 0
								}
								results = append(results, fmt.Sprint(found, largest, active[:found], bytes[:found], lists))
								g.check("advance")
							}
							if results[0] != results[1] {
								t.Fatalf("%d atoms, floor %v, threshold %v, scale %v, enter %d: %s, want %s", n, floor, threshold, scale, enter, results[0], results[1])
							}
						}
					}
				}
			}
		}
	})
}
