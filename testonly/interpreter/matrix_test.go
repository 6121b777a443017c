package interpreter

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// These functions return the position of element i of a lane in a matrix, as in the figures of the PTX ISA for
// mma.m16n8k8 (.tf32), mma.m16n8k16 (.f16) and mma.m16n8k32 (.s8).

func placeA8(lane, i int) (row, column int) {
	if row = lane >> 2; i == 1 || i == 3 {
		row += 8
	}
	if column = lane % 4; i == 2 || i == 3 {
		column += 4
	}
	return row, column
}

func placeB8(lane, i int) (row, column int) { return lane%4 + 4*i, lane >> 2 }

func placeA16(lane, i int) (row, column int) {
	if row = lane >> 2; !(0 <= i && i < 2 || 4 <= i && i < 6) {
		row += 8
	}
	if column = lane%4*2 + i&1; i >= 4 {
		column += 8
	}
	return row, column
}

func placeB16(lane, i int) (row, column int) {
	if row = lane%4*2 + i&1; i >= 2 {
		row += 8
	}
	return row, lane >> 2
}

func placeA32(lane, i int) (row, column int) {
	if row = lane >> 2; !(0 <= i && i < 4 || 8 <= i && i < 12) {
		row += 8
	}
	if column = lane%4*4 + i&3; i >= 8 {
		column += 16
	}
	return row, column
}

func placeB32(lane, i int) (row, column int) {
	if row = lane%4*4 + i&3; i >= 4 {
		row += 16
	}
	return row, lane >> 2
}

func placeC(lane, i int) (row, column int) {
	if row = lane >> 2; i >= 2 {
		row += 8
	}
	return row, lane%4*2 + i&1
}

// load returns instructions that load count words per lane into registers from %r<first> on. The words of all
// lanes are adjacent, from byte `at` of in on.
func load(first, count, at int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "mul.wide.u32 %%rd6, %%r1, %d; add.s64 %%rd6, %%rd6, %%rd2;", 4*count)
	for i := range count {
		fmt.Fprintf(&s, "ld.global.u32 %%r%d, [%%rd6+%d];", first+i, at+4*i)
	}
	return s.String()
}

func TestProducts(t *testing.T) {
	for _, test := range []struct {
		name           string
		depth          int
		placeA, placeB func(lane, i int) (row, column int)
	}{
		{"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, placeA8, placeB8},
		{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, placeA16, placeB16},
		{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, placeA16, placeB16},
		{"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 32, placeA32, placeB32},
	} {
		integers := test.depth == 32
		// Small numbers that are exact in all formats and differ from their neighbours.
		a := func(row, k int) float32 { return float32((row*7+k*k)%251)/8 - 5 }
		b := func(k, column int) float32 { return float32(column*5-k*3)/4 + 1 }
		c := func(row, column int) float32 { return float32(row - 9*column) }
		if integers {
			a = func(row, k int) float32 { return float32((row*7+k*k)%251 - 125) }
			b = func(k, column int) float32 { return float32(column*5 - k*3 + 1) }
		}
		element := func(words []uint32, i int, x float32) {
			switch {
			case integers:
				words[i/4] |= uint32(uint8(int8(x))) << (8 * (i % 4))
			case test.depth == 8:
				words[i] = math.Float32bits(x)
			case strings.Contains(test.name, ".bf16"):
				words[i/2] |= math.Float32bits(x) >> 16 << (16 * (i % 2))
			default:
				words[i/2] |= uint32(toHalf(x)) << (16 * (i % 2))
			}
		}
		var as [32][4]uint32
		var bs [32][2]uint32
		var cs [32][4]float32
		for lane := range 32 {
			for i := range 4 * test.depth / 8 {
				element(as[lane][:], i, a(test.placeA(lane, i)))
			}
			for i := range 2 * test.depth / 8 {
				element(bs[lane][:], i, b(test.placeB(lane, i)))
			}
			for i := range 4 {
				if cs[lane][i] = c(placeC(lane, i)); integers {
					cs[lane][i] = math.Float32frombits(uint32(int32(cs[lane][i])))
				}
			}
		}
		m := newMemories(t, 1)
		m.in = m.Alloc("fragments", 512+256+512)
		if err := m.Write(m.in, append(append(encode(as), encode(bs)...), encode(cs)...)); err != nil {
			t.Fatal(err)
		}
		k := program(t, load(10, 4, 0)+load(14, 2, 512)+load(16, 4, 768)+`
			mov.b32 %f1, %r16; mov.b32 %f2, %r17; mov.b32 %f3, %r18; mov.b32 %f4, %r19;
			`+test.name+` {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f1, %f2, %f3, %f4};
			mul.wide.u32 %rd6, %r1, 16; add.s64 %rd6, %rd6, %rd1; st.global.v4.f32 [%rd6], {%f1, %f2, %f3, %f4};`)
		if err := m.launch(k, 1, 32); err != nil {
			t.Fatal(err)
		}
		for lane, got := range results[[4]float32](t, m, 32) {
			for i := range got {
				row, column := placeC(lane, i)
				want := c(row, column)
				for k := range test.depth {
					want += a(row, k) * b(k, column)
				}
				if integers {
					got[i] = float32(int32(math.Float32bits(got[i])))
				}
				if got[i] != want {
					t.Fatalf("%s: element %d, %d is %v, want %v", test.name, row, column, got[i], want)
				}
			}
		}
	}
}

// Sums are truncated, even if rounding to nearest would round away from zero.
func TestTruncation(t *testing.T) {
	for x, want := range map[float64]float32{
		1 + 0x1.8p-24: 1, -1 - 0x1.8p-24: -1, 1 + 0x1p-23: 1 + 0x1p-23, 0: 0,
		0x1p-149: 0x1p-149, 0x1.8p-149: 0x1p-149, math.Inf(1): float32(math.Inf(1)), math.MaxFloat64: float32(math.Inf(1)),
	} {
		if got := truncate(x); got != want {
			t.Errorf("%v is truncated to %v, want %v", x, got, want)
		}
	}
	if x := truncate(math.NaN()); x == x {
		t.Errorf("NaN is truncated to %v", x)
	}
}

func TestLoadMatrices(t *testing.T) {
	// Element e of row r of matrix j is 100j + 10r + e. Rows lie 48 bytes apart, the last
	// one first.
	const pitch, rows = 48, 32
	shared := make([]uint16, pitch/2*rows)
	for i := range rows {
		for e := range 8 {
			shared[(rows-1-i)*pitch/2+e] = uint16(i/8*100 + i%8*10 + e)
		}
	}
	for count, registers := range map[int]string{1: "{%r10}", 2: "{%r10, %r11}", 4: "{%r10, %r11, %r12, %r13}"} {
		for _, transposed := range []string{"", ".trans"} {
			m := newMemories(t, 1)
			m.in = m.Alloc("shared", 2*len(shared))
			if err := m.Write(m.in, encode(shared)); err != nil {
				t.Fatal(err)
			}
			copies := "add.s64 %rd6, %rd2, %rd3;"
			for at := 0; at < 2*len(shared); at += 128 {
				copies += fmt.Sprintf("ld.global.u32 %%r3, [%%rd6+%d]; st.shared.u32 [%%rd4+%d], %%r3;", at, at)
			}
			stores := ""
			for j := range count {
				stores += fmt.Sprintf("st.global.u32 [%%rd6+%d], %%r%d;", 4*j, 10+j)
			}
			// The addresses of other lanes are invalid, because they must not be read.
			k := program(t, copies+fmt.Sprintf(`
				bar.sync 0;
				mov.u64 %%rd7, shared; cvt.u32.u64 %%r5, %%rd7;
				mov.u32 %%r4, 31; sub.s32 %%r4, %%r4, %%r1; mad.lo.s32 %%r5, %%r4, %d, %%r5;
				setp.lt.u32 %%p1, %%r1, %d; selp.b32 %%r5, %%r5, 3, %%p1;
				ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s, [%%r5];
				mul.wide.u32 %%rd6, %%r1, %d; add.s64 %%rd6, %%rd6, %%rd1;`, pitch, 8*count, count, transposed, registers, 4*count)+stores)
			if err := m.launch(k, 1, 32); err != nil {
				t.Fatal(err)
			}
			got := results[uint16](t, m, 32*2*count)
			for lane := range 32 {
				for j := range count {
					for half := range 2 {
						row, e := lane/4, lane%4*2+half
						if transposed != "" {
							row, e = e, row
						}
						if got, want := got[lane*2*count+2*j+half], uint16(100*j+10*row+e); got != want {
							t.Fatalf("x%d%s: lane %d has %d of matrix %d, want %d", count, transposed, lane, got, j, want)
						}
					}
				}
			}
		}
	}
}
