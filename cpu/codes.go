package cpu

import (
	"slices"

	"overcomplete/internal/backend"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
)

// codes are rows of A: increasing columns and values of the nonzeros. Rows of a batch may share memory with
// tiles.
type codes struct {
	index [][]int32
	value [][]float32

	indexRoom []int32
	valueRoom []float32

	dense     *simd.Matrix // the same as a matrix, where products with that are faster, else nil
	denseRoom simd.Matrix
}

// denseShare is the share of nonzeros above which dense products are faster: they take half the time per
// code of sparse ones per nonzero.
const denseShare = 0.45

// spread also stores the first rows as a matrix if products with that are faster.
func (c *codes) spread(rows, atoms int, lanes []*lane) {
	c.dense = nil
	nonzeros := 0
	for _, index := range c.index[:rows] {
		nonzeros += len(index)
	}
	if float64(nonzeros) < denseShare*float64(rows*atoms) {
		return
	}
	c.denseRoom.Resize(rows, atoms)
	c.dense = &c.denseRoom
	parallel.With(lanes, rows, func(_ *lane, i int) {
		row := c.dense.Row(i)
		clear(row)
		for j, k := range c.index[i] {
			row[k] = c.value[i][j]
		}
	})
}

// decode adds to out the products of the rows from lo to hi with the atoms of d from first to last, in
// blocks that stay in cache for all rows. next is scratch memory of the worker.
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

// reserve empties the first rows and gives each room for most nonzeros.
func (c *codes) reserve(rows, most int) {
	c.indexRoom, c.valueRoom = simd.Sized(c.indexRoom, rows*most), simd.Sized(c.valueRoom, rows*most)
	for i := range rows {
		c.index[i] = c.indexRoom[i*most : i*most : (i+1)*most]
		c.value[i] = c.valueRoom[i*most : i*most : (i+1)*most]
	}
}

// scaleRow multiplies a row and drops values that become zero.
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

// tile holds the packed codes of a few consecutive words. It is nil before their first code pass: their
// codes are random and dense.
type tile struct {
	end   []int // where each row ends
	index []int32
	value []float32
}

// row returns the nonzeros of a row. They alias the tile.
func (t *tile) row(i int) ([]int32, []float32) {
	lo := 0
	if i > 0 {
		lo = t.end[i-1]
	}
	hi := t.end[i]
	return t.index[lo:hi:hi], t.value[lo:hi:hi]
}

// pack stores the first rows of c in the tile.
func (t *tile) pack(c *codes, rows int) {
	nonzeros := 0
	for _, index := range c.index[:rows] {
		nonzeros += len(index)
	}
	if cap(t.index) < nonzeros || cap(t.index) > 2*nonzeros+1024 { // as codes get sparser, give memory back
		t.index, t.value = make([]int32, 0, nonzeros), make([]float32, 0, nonzeros)
	}
	t.end, t.index, t.value = t.end[:0], t.index[:0], t.value[:0]
	for i := range rows {
		t.index = append(t.index, c.index[i]...)
		t.value = append(t.value, c.value[i]...)
		t.end = append(t.end, len(t.value))
	}
}

// view sets c to the codes of the frame's words, which start at lo, without copies. Random codes are drawn
// into the frame's memory.
func (s *state) view(f *frame, c *codes, lo int, lanes []*lane) {
	k := s.atoms
	random := 0
	for i := range f.words {
		if t := s.tiles[(lo+i)/s.tileWords]; t != nil {
			c.index[i], c.value[i] = t.row((lo + i) % s.tileWords)
		} else {
			random++
		}
	}
	if random == 0 {
		c.spread(f.words, k, lanes)
		return
	}
	f.random.Resize(f.words, k)
	parallel.With(lanes, f.words, func(_ *lane, i int) {
		if s.tiles[(lo+i)/s.tileWords] == nil {
			c.index[i], c.value[i] = s.allAtoms, f.random.Row(i)
			backend.InitialCode(c.value[i], s.problem.Hyperparameters.Seed, lo+i)
		}
	})
	c.dense = nil
	if random == f.words {
		c.dense = &f.random
	}
}

// columns are the codes of a batch by atom, for some consecutive atoms: word and value of the i-th from
// start[i] to end[i], by increasing word.
type columns struct {
	start, end []int
	from       []int // where each word's nonzeros of these atoms start
	word       []int32
	value      []float32
}

func (t *columns) of(i int) ([]int32, []float32) {
	return t.word[t.start[i]:t.end[i]], t.value[t.start[i]:t.end[i]]
}

// transpose sets t to the columns from lo to hi of the first rows of c.
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
	t.word, t.value = simd.Sized(t.word, nonzeros), simd.Sized(t.value, nonzeros)
	for i, index := range c.index[:rows] {
		value := c.value[i]
		for j := t.from[i]; j < len(index) && int(index[j]) < hi; j++ {
			at := &t.end[int(index[j])-lo]
			t.word[*at], t.value[*at] = int32(i), value[j]
			*at++
		}
	}
}
