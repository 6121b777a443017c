package simd

import (
	"math"
	"slices"
)

// ByteWidth is the number of bytes in the widest register. The length of a padded row of
// bytes is a multiple of ByteWidth.
const ByteWidth = 64

// BytePitch returns the length of a padded row of bytes.
func BytePitch(width int) int { return (width + ByteWidth - 1) &^ (ByteWidth - 1) }

// byteLevels is the largest magnitude of an element of [Coarse]. If four elements are
// multiplied by unsigned bytes up to 128, the sum of the products fits in 16 bits.
const byteLevels = 63

// leastTop is the smallest top_k that [Coarse] divides by, so that 63/top_k is a finite float32.
// Smaller atoms are negligible: in a dictionary with a step size, norms that matter exceed 2⁻⁶⁴.
const leastTop = 0x1p-120

// Coarse is a dictionary in 8-bit integers, for the search of package encode. With
// top_k = max_j |D_kj| and top = max_k top_k, atom k is about Share[k]·Unit times its
// integers:
//
//	Share[k] = top_k/top, Unit = top/63
//	bytes[k][j] = round(D_kj·(63/top_k)); if top_k < 2⁻¹²⁰, bytes[k][j] = Share[k] = 0
//
// Pass the Kernels of the same level to all calls. Call Resize, Measure for all atoms, Fill for all
// atoms, and then SetStep.
type Coarse struct {
	Unit  float64
	Share []float32 // indexed by atom; 0 in the padding
	Scale []float32 // indexed by atom: Share times the factor in SetStep; 0 in the padding
	Reach float32   // see SetStep

	atoms, width, columns int
	pitch                 int
	bytes                 []int8    // K×pitch
	panels                []int8    // the same bytes, in the order of b in productBytesGeneric
	start                 []int32   // indexed by atom k: −offset·Σ_j bytes[k][j]
	tops, norms           []float32 // indexed by atom k: top_k, and the norm of bytes[k]
}

// Resize allocates memory for a dictionary of atoms of the given width. It reuses c's memory
// if that is large enough.
func (c *Coarse) Resize(k *Kernels, atoms, width int) {
	c.atoms, c.width, c.pitch, c.columns = atoms, width, BytePitch(width), k.byteColumns
	padded := (atoms + correlateColumns) &^ (correlateColumns - 1)
	c.bytes = zeroed(c.bytes, atoms*c.pitch)
	c.panels = zeroed(c.panels, padded*c.terms())
	c.start = zeroed(c.start, padded)
	c.Share, c.Scale = zeroed(c.Share, padded), zeroed(c.Scale, padded)
	c.tops, c.norms = Sized(c.tops, atoms), Sized(c.norms, atoms)
}

// terms returns the number of terms of products with panels: the width, padded to a multiple of 8.
func (c *Coarse) terms() int { return (c.width + 7) &^ 7 }

// zeroed returns n zeros, in the memory of s if that is large enough.
func zeroed[T any](s []T, n int) []T {
	s = Sized(s, n)
	clear(s)
	return s
}

// Measure finds the largest magnitude of each atom from lo to hi. Row i of m is atom i.
// Goroutines may call Measure for different atoms concurrently.
func (c *Coarse) Measure(m Matrix, lo, hi int) {
	for i := lo; i < hi; i++ {
		c.tops[i] = Largest(m.Row(i))
	}
}

// Largest returns the largest magnitude of x, or NaN if x contains NaN.
func Largest(x []float32) float32 {
	var largest uint32 // bits of the largest magnitude, shifted left by 1
	for _, v := range x {
		largest = max(largest, math.Float32bits(v)<<1)
	}
	return math.Float32frombits(largest >> 1)
}

// Fill rounds the atoms from lo to hi, which are rows of m. Measure all atoms first.
// Goroutines may call Fill for different atoms concurrently.
func (c *Coarse) Fill(k *Kernels, m Matrix, lo, hi int) {
	top := slices.Max(c.tops)
	for i := lo; i < hi; i++ {
		row := c.bytes[i*c.pitch:][:c.pitch]
		clear(row)
		if c.Share[i] = 0; c.tops[i] >= leastTop {
			c.Share[i] = c.tops[i] / top
			k.Quantise(row, m.Padded(i), byteLevels/c.tops[i], 0)
			clear(row[c.width:])
		}
		panel := c.panels[i/c.columns*c.columns*c.terms()+i%c.columns*4:]
		var sum, squares int32
		for j := 0; j < c.terms(); j += 4 {
			four := (*[4]int8)(row[j:])
			*(*[4]int8)(panel[j*c.columns:]) = *four
			for _, x := range four {
				sum += int32(x)
				squares += int32(x) * int32(x)
			}
		}
		c.start[i] = -int32(k.offset) * sum
		c.norms[i] = float32(math.Sqrt(float64(squares)))
	}
}

// SetStep sets Unit, Scale and Reach for FISTA's step size s. Reach is the largest effect of a residual of norm 1:
//
//	Scale[k] = 2·s·Unit²·Share[k]
//	Reach = max_k Scale[k]·Share[k]·‖bytes[k]‖
func (c *Coarse) SetStep(s float64) {
	c.Unit = float64(slices.Max(c.tops)) / byteLevels
	factor := 2 * s * c.Unit * c.Unit
	c.Reach = 0
	for i, v := range c.Share {
		c.Scale[i] = float32(factor * float64(v))
	}
	for i, norm := range c.norms {
		c.Reach = max(c.Reach, c.Scale[i]*c.Share[i]*norm)
	}
}

// Dots multiplies a residual in bytes with the atoms of a list and with their Scale; see
// dotsBytesGeneric. len(r) is [BytePitch] of the width, and len(index) a multiple of 4.
func (c *Coarse) Dots(k *Kernels, p []float32, index []int32, r []int8) {
	k.dotsBytes(p, index, r, c.bytes, c.start, c.Scale)
}

// Decode multiplies a sparse code in bytes with the atoms' bytes; see decodeBytesGeneric.
// len(out) is [BytePitch] of the width, and len(index) a multiple of 4.
func (c *Coarse) Decode(k *Kernels, out []int32, index []int32, z []int8) {
	k.decodeBytes(out, index, z, c.bytes)
}

// QuantiseRow rounds a row to the bytes that Dots and Correlate expect; see quantiseGeneric.
func (k *Kernels) QuantiseRow(dst []int8, x []float32, scale float32) {
	k.Quantise(dst, x, scale, k.offset)
}

// SquaresOfBytes returns Σ round(scale·x)² for a row of bytes that QuantiseRow stored.
func (k *Kernels) SquaresOfBytes(row []int8) (sum int) {
	for _, x := range row {
		y := int(x - k.offset) // the difference wraps around in 8 bits
		sum += y * y
	}
	return sum
}

// Correlate multiplies the rows of x with all atoms. It calls each(i, column, sums), where
// sums[j] is the product of row i with atom column+j. The columns of a row come in increasing
// order. The sums are padded to a multiple of [Width]; Scale is zero in the padding. A block
// of columns stays in the level-2 cache while all rows use it. A row's length is [BytePitch] of
// the width, and x has memory for [TileRows] more rows. Correlate grows the caller's scratch
// memory if necessary.
func (c *Coarse) Correlate(k *Kernels, x []int8, rows int, scratch *[]int32, each func(i, column int, sums []int32)) {
	*scratch = Sized(*scratch, k.byteRows*correlateColumns)
	sums := *scratch
	for block := 0; block < c.atoms; block += correlateColumns {
		columns := (min(correlateColumns, c.atoms-block) + Width - 1) &^ (Width - 1)
		for first := 0; first < rows; first += k.byteRows {
			for j := 0; j < columns; j += k.byteColumns {
				k.productBytes(&sums[j], correlateColumns, &x[first*c.pitch], c.pitch,
					&c.panels[(block+j)*c.terms()], &c.start[block+j], c.terms()/4)
			}
			for i := first; i < min(first+k.byteRows, rows); i++ {
				each(i, block, sums[(i-first)*correlateColumns:][:columns])
			}
		}
	}
}

// PeakBytes multiplies and adds n groups of four 8-bit integers in each register of a tile,
// without loads, and returns the number of operations. n is even. The speed of PeakBytes bounds
// the speed of Correlate.
func (k *Kernels) PeakBytes(n int) (operations float64) {
	k.peakBytes(n)
	return 4 * float64(n) * float64(k.byteRows*k.byteColumns)
}
