package cpu

import (
	"slices"

	"overcomplete/internal/backend"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
	"overcomplete/vectors"
)

// codes holds rows of A. A row stores the columns of its nonzeros, in increasing order, and their values. Rows of a
// batch may alias tiles.
type codes struct {
	index [][]int32
	value [][]float32

	indexBuffer []int32
	valueBuffer []float32

	dense       *simd.Matrix // the codes as a dense matrix; nil if sparse products are faster
	denseBuffer simd.Matrix
}

// denseShare is the share of nonzeros above which dense products are faster. Their time per
// element is half the time of sparse products.
const denseShare = 0.45

// densify adds a dense copy of the first rows if dense products are faster.
func (c *codes) densify(rows, atoms int, lanes []*lane) {
	c.dense = nil
	nonzeros := 0
	for _, index := range c.index[:rows] {
		nonzeros += len(index)
	}
	if float64(nonzeros) < denseShare*float64(rows*atoms) {
		return
	}
	c.denseBuffer.Resize(rows, atoms)
	c.dense = &c.denseBuffer
	parallel.With(lanes, rows, func(_ *lane, i int) {
		row := c.dense.Row(i)
		clear(row)
		for j, k := range c.index[i] {
			row[k] = c.value[i][j]
		}
	})
}

// decode adds to out the products of rows lo to hi with atoms first to last of d. It reads d in blocks that stay in
// cache for all rows. The argument next is scratch memory of the worker.
func (c *codes) decode(k *simd.Kernels, out, d simd.Matrix, lo, hi, first, last int, next *[]int) {
	size := blockRows(d.Pitch)
	if c.dense != nil {
		for block := first; block < last; block += size {
			k.Multiply(out, hi-lo, c.dense.View(lo, block), d.From(block), min(size, last-block))
		}
		return
	}
	*next = simd.Sized(*next, hi-lo)
	for i := range *next {
		(*next)[i], _ = slices.BinarySearch(c.index[lo+i], int32(first))
	}
	for block := first; block < last; block += size {
		end := int32(min(block+size, last))
		for i := range *next {
			n := &(*next)[i]
			*n += k.Decode(out.Padded(i)[:d.Pitch], c.index[lo+i][*n:], c.value[lo+i][*n:], d.Data, d.Pitch, end)
		}
	}
}

// reserve empties the first rows and gives each a capacity of n nonzeros.
func (c *codes) reserve(rows, n int) {
	c.indexBuffer, c.valueBuffer = simd.Sized(c.indexBuffer, rows*n), simd.Sized(c.valueBuffer, rows*n)
	for i := range rows {
		c.index[i] = c.indexBuffer[i*n : i*n : (i+1)*n]
		c.value[i] = c.valueBuffer[i*n : i*n : (i+1)*n]
	}
}

// scaleRow multiplies a row by factor and drops values that become zero.
func (c *codes) scaleRow(row int, factor float32) {
	if factor == 1 {
		return
	}
	for j := range c.value[row] {
		c.value[row][j] *= factor
	}
	c.dropZeros(row)
}

func (c *codes) dropZeros(row int) {
	index, value := c.index[row], c.value[row]
	kept := 0
	for j, v := range value {
		if v != 0 {
			index[kept], value[kept] = index[j], v
			kept++
		}
	}
	c.index[row], c.value[row] = index[:kept], value[:kept]
}

// store stores the first rows of c in t, in place of t's rows. The codes may alias t.
func (c *codes) store(t *vectors.CSR, rows int) {
	nonzeros := 0
	for _, index := range c.index[:rows] {
		nonzeros += len(index)
	}
	if cap(t.Index) < nonzeros || cap(t.Index) > 2*nonzeros+1024 { // codes get sparser: release memory
		t.Index, t.Value = make([]int32, 0, nonzeros), make([]float32, 0, nonzeros)
	}
	t.Rows, t.Ptr, t.Index, t.Value = 0, t.Ptr[:0], t.Index[:0], t.Value[:0]
	for i := range rows {
		t.AppendRow(c.index[i], c.value[i])
	}
}

// view sets c to the codes of the frame's rows, which start at row lo of X. The codes alias the tiles; random codes
// are drawn into f.random.
func (s *trainer) view(f *frame, c *codes, lo int, lanes []*lane) {
	k := s.atoms
	random := 0
	for i := range f.rows {
		if t := s.tiles[(lo+i)/s.tileRows]; t != nil {
			c.index[i], c.value[i] = t.Row((lo + i) % s.tileRows)
		} else {
			random++
		}
	}
	if random == 0 {
		c.densify(f.rows, k, lanes)
		return
	}
	f.random.Resize(f.rows, k)
	parallel.With(lanes, f.rows, func(_ *lane, i int) {
		if s.tiles[(lo+i)/s.tileRows] == nil {
			c.index[i], c.value[i] = s.allAtoms, f.random.Row(i)
			backend.InitialCode(c.value[i], s.problem.Hyperparameters.Seed, lo+i)
		}
	})
	c.dense = nil
	if random == f.rows {
		c.dense = &f.random
	}
}

// columns holds the nonzeros of a batch's codes for some consecutive atoms, grouped by atom. The nonzeros of the i-th
// atom are row[start[i]:end[i]] and value[start[i]:end[i]], in increasing order of rows.
type columns struct {
	start, end []int
	from       []int // from[i] is the position of row i's first nonzero of these atoms
	row        []int32
	value      []float32
}

// atom returns the rows whose codes use the i-th atom, and the atom's value in each row.
func (t *columns) atom(i int) ([]int32, []float32) {
	return t.row[t.start[i]:t.end[i]], t.value[t.start[i]:t.end[i]]
}

// transpose sets t to the nonzeros that the first rows of c have in the columns from lo to hi.
func (t *columns) transpose(c *codes, rows, lo, hi int) {
	t.start, t.end, t.from = zeroed(t.start, hi-lo), zeroed(t.end, hi-lo), simd.Sized(t.from, rows)
	for i, index := range c.index[:rows] {
		from, _ := slices.BinarySearch(index, int32(lo))
		t.from[i] = from
		for _, k := range index[from:] {
			if int(k) >= hi {
				break
			}
			t.end[int(k)-lo]++
		}
	}
	nonzeros := 0
	for k, n := range t.end {
		t.start[k], t.end[k] = nonzeros, nonzeros
		nonzeros += n
	}
	t.row, t.value = simd.Sized(t.row, nonzeros), simd.Sized(t.value, nonzeros)
	for i, index := range c.index[:rows] {
		value := c.value[i]
		for j := t.from[i]; j < len(index) && int(index[j]) < hi; j++ {
			at := &t.end[int(index[j])-lo]
			t.row[*at], t.value[*at] = int32(i), value[j]
			*at++
		}
	}
}
