package simd

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"
)

// dot returns Σ x[i·stride]·y[i·step] over n terms.
func dot(n int, x []float32, stride int, y []float32, step int) (s sum) {
	for i := range n {
		s.add(wide(x[i*stride]) * wide(y[i*step]))
	}
	return s
}

// The test covers the tile of every level, with and without prefetching.
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
					s := (*byte)(unsafe.Pointer(&g.floats(1)[0])) // prefetching doesn't read it
					old := slices.Clone(dst)
					k.product(&dst[0], dstRow, &a[0], aRow, aColumn, &b[0], bRow, n, s, s, 4, prefetched, max(1, n/k.rows))
					for i := range k.rows {
						for j := range k.columns {
							want := dot(n, a[i*aRow:], aColumn, b[j:], bRow)
							at := i*dstRow + j
							if want.add(wide(old[at])); !want.near(dst[at], n+2) {
								t.Fatalf("%s: element %d, %d is %v, want %v", what, i, j, dst[at], want.value)
							}
							old[at] = dst[at]
						}
					}
					if !slices.Equal(dst, old) {
						t.Errorf("%s: wrote between rows", what)
					}
					g.check(what)
				}
			}
		}
	})
}

func random(g *guarded, rows, width int) Matrix {
	m := NewMatrix(rows, width)
	for i := range m.Data {
		m.Data[i] = float32(g.rng.NormFloat64()) // also in the padding, which must not affect results
	}
	return m
}

// The test covers shapes smaller and larger than a tile, parts of matrices, and their transposes.
func TestMultiply(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		for _, rows := range []int{1, k.rows, k.rows + 1, 3*k.rows - 1} {
			for _, columns := range []int{1, k.columns - 1, k.columns, 2*k.columns + 5} {
				for _, terms := range []int{1, 7, 40} {
					b := random(g, terms+3, columns)
					plain, transposed := random(g, rows+2, terms+4), random(g, terms+2, rows+4)
					for _, a := range []struct {
						View
						term func(i, l int) float32
					}{
						{plain.View(2, 4), func(i, l int) float32 { return plain.Row(2 + i)[4+l] }},
						{transposed.View(2, 4).Transposed(), func(i, l int) float32 { return transposed.Row(2 + l)[4+i] }},
					} {
						var out Matrix
						out.Zero(rows, columns)
						out.Row(0)[0] = 5
						k.Multiply(out, rows, a.View, b.From(3), terms)
						for i := range rows {
							for j := range columns {
								var want sum
								if i == 0 && j == 0 {
									want.add(5)
								}
								for l := range terms {
									want.add(wide(a.term(i, l)) * wide(b.Row(3 + l)[j]))
								}
								if got := out.Row(i)[j]; !want.near(got, terms+2) {
									t.Fatalf("%d × %d, %d terms: element %d, %d is %v, want %v", rows, columns, terms, i, j, got, want.value)
								}
							}
						}
					}
				}
			}
		}
	})
}

// Each sum of a row comes once, in increasing order of columns, with and without prefetching.
func TestCorrelate(t *testing.T) {
	const width, lo = 50, 2
	eachLevel(t, func(t *testing.T, k *Kernels) {
		g := newGuarded(t)
		var room []float32
		var p Panels
		for _, rows := range []int{1, k.rows, 2*k.rows + 1} {
			for _, columns := range []int{1, k.columns + 1, 256, 600} {
				hi := lo + rows
				x, d := random(g, hi, width), random(g, columns, width)
				p.Resize(k, columns, width)
				for i := range p.Len() {
					p.Fill(i, d)
				}
				n := hi * columns
				for _, ahead := range []*State{nil, {Columns: columns, S: make([]float32, n), Q: make([]float32, n)}} {
					next := make([]int, hi)
					k.Correlate(x, lo, hi, &p, ahead, &room, func(i, column int, sums []float32) {
						if i < lo || column != next[i] {
							t.Fatalf("sums of row %d from column %d on, want row %d or more and column %d", i, column, lo, next[i])
						}
						next[i] += len(sums)
						for j, got := range sums {
							if want := dot(width, x.Row(i), 1, d.Row(column+j), 1); !want.near(got, width+1) {
								t.Fatalf("%d × %d: element %d, %d is %v, want %v", rows, columns, i, column+j, got, want.value)
							}
						}
					})
					for i, n := range next {
						if want := columns; i >= lo && n != want {
							t.Errorf("%d × %d: row %d has %d sums", rows, columns, i, n)
						}
					}
				}
			}
		}
	})
}
