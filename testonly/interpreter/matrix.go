package interpreter

import (
	"encoding/binary"
	"math"
	"strconv"
)

// A lane holds these elements of a product, with g = lane / 4 and t = lane % 4 (PTX ISA, "Matrix Fragments for
// mma.m16n8k8", "mma.m16n8k16" and "mma.m16n8k32"). The layout of bfloat16 is float16's.
//
//	C, D            columns 2t and 2t+1 of row g, then of row g+8
//	A of TF32       column t of rows g and g+8, then column t+4
//	B of TF32       rows t and t+4 of column g
//	A of float16    columns 2t and 2t+1 of rows g and g+8, then 2t+8 and 2t+9
//	B of float16    rows 2t and 2t+1 of column g, then 2t+8 and 2t+9
//	A of bytes      columns 4t to 4t+3 of rows g and g+8, then 4t+16 to 4t+19
//	B of bytes      rows 4t to 4t+3 of column g, then 4t+16 to 4t+19

// factors are the factors of a product, of depth up to 16.
type factors struct {
	a [16][16]float64
	b [16][8]float64
}

// multiplyTF32 adds a product of 16×8 and 8×8 to C.
func multiplyTF32(w *warp, in *instruction, _ uint32) {
	var f factors
	number := func(register, i int) float64 {
		at := *lane[uint32](&w.registers[register], i)
		if x := math.Float32frombits(at); at%(1<<13) == 0 || x != x {
			return float64(x)
		}
		w.fail(i, "has the factor %#x, more bits than TF32 has", at)
		return 0
	}
	for i := range lanes {
		g, t := i/4, i%4
		for j, r := range in.args[4:8] {
			f.a[g+j%2*8][t+j/2*4] = number(r, i)
		}
		for j, r := range in.args[8:10] {
			f.b[t+j*4][g] = number(r, i)
		}
	}
	w.multiply(in, &f, 8)
}

// multiply16 adds a product of 16×16 and 16×8, of 16-bit factors, to C.
func multiply16(widen func(uint16) float32) func(w *warp, in *instruction, _ uint32) {
	return func(w *warp, in *instruction, _ uint32) {
		var f factors
		for i := range lanes {
			g, t := i/4, i%4
			for half := range 2 {
				number := func(register int) float64 {
					return float64(widen(uint16(w.registers[register][i] >> (16 * half))))
				}
				for j, r := range in.args[4:8] {
					f.a[g+j%2*8][2*t+half+j/2*8] = number(r)
				}
				for j, r := range in.args[8:10] {
					f.b[2*t+half+j*8][g] = number(r)
				}
			}
		}
		w.multiply(in, &f, 16)
	}
}

// multiply adds the product of factors. In float64 products are exact, and sums are rounded to 53 bits.
func (w *warp) multiply(in *instruction, f *factors, depth int) {
	var sums [16][8]float64
	at := func(i, j int) *float64 { return &sums[i/4+j/2*8][i%4*2+j%2] }
	for j, r := range in.args[10:14] {
		for i := range lanes {
			*at(i, j) = float64(*lane[float32](&w.registers[r], i))
		}
	}
	for i := range sums {
		sum := &sums[i]
		for k, x := range f.a[i][:depth] {
			for j, y := range f.b[k] {
				sum[j] += x * y
			}
		}
	}
	for j, r := range in.args[:4] {
		for i := range lanes {
			w.registers[r][i] = wide(truncate(*at(i, j)))
		}
	}
}

// multiply8 adds a product of 16×32 and 32×8, of signed bytes, to C. Sums are exact.
func multiply8(w *warp, in *instruction, _ uint32) {
	var a [16][32]int32
	var b [8][32]int32
	for i := range lanes {
		g, t := i/4, i%4
		for k := range 4 {
			element := func(register int) int32 { return int32(int8(w.registers[register][i] >> (8 * k))) }
			for j, r := range in.args[4:8] {
				a[g+j%2*8][4*t+k+j/2*16] = element(r)
			}
			for j, r := range in.args[8:10] {
				b[g][4*t+k+j*16] = element(r)
			}
		}
	}
	for j := range 4 {
		var sums register
		for i := range lanes {
			sum := *lane[int32](&w.registers[in.args[10+j]], i)
			row, column := &a[i/4+j/2*8], &b[i%4*2+j%2]
			for k, x := range row {
				sum += x * column[k]
			}
			sums[i] = wide(sum)
		}
		w.registers[in.args[j]] = sums
	}
}

func truncate(x float64) float32 {
	y := float32(x)
	if size := math.Abs(float64(y)); size > math.Abs(x) && !math.IsInf(size, 1) {
		y = math.Float32frombits(math.Float32bits(y) - 1)
	}
	return y
}

// loadMatrices reads 8×8 matrices of 16-bit elements. Lanes 8j to 8j+7 pass the addresses of the rows of matrix j.
// A lane receives columns 2t and 2t+1 of row g of each matrix; if transposed, rows 2t and 2t+1 of column g.
func loadMatrices(count int, transposed bool) operation {
	return operation{operands: "R" + strconv.Itoa(count) + " A", together: true, run: func(w *warp, in *instruction, _ uint32) {
		shared := &w.block.shared
		var values [4]register
		for j := range count {
			var rows [8]int
			for r := range rows {
				_, rows[r] = w.place(8*j+r, spaceShared, w.address(in.args[count], in.offsets[0], 8*j+r), 16)
			}
			for i := range lanes {
				g, t := i/4, i%4
				for half := range 2 {
					at := rows[g] + 2*(2*t+half)
					if transposed {
						at = rows[2*t+half] + 2*g
					}
					w.mayRead(i, shared, at, 2)
					values[j][i] |= uint64(binary.LittleEndian.Uint16(shared.data[at:])) << (16 * half)
				}
			}
		}
		for j := range count {
			w.registers[in.args[j]] = values[j]
		}
	}}
}
