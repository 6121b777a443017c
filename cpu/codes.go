package cpu

import "overcomplete/train"

// codes are rows of A: the columns, increasing, and values of each row's
// nonzeros. The rows of a batch may alias tiles.
type codes struct {
	index [][]int32
	value [][]float32
}

// clear empties the first rows and keeps their memory.
func (c *codes) clear(rows int) {
	for i := range rows {
		c.index[i], c.value[i] = c.index[i][:0], c.value[i][:0]
	}
}

// appendNonzeros adds the nonzeros of part, the columns from column on, to a row.
func (c *codes) appendNonzeros(row, column int, part []float32) {
	index, value := c.index[row], c.value[row]
	for j, v := range part {
		if v != 0 {
			index = append(index, int32(column+j))
			value = append(value, v)
		}
	}
	c.index[row], c.value[row] = index, value
}

// scaleRow multiplies a row and drops what becomes zero.
func (c *codes) scaleRow(row int, factor float32) {
	if factor == 1 {
		return
	}
	index, value := c.index[row], c.value[row]
	kept := 0
	for j, v := range value {
		if v *= factor; v != 0 {
			index[kept], value[kept] = index[j], v
			kept++
		}
	}
	c.index[row], c.value[row] = index[:kept], value[:kept]
}

// tile holds the codes of a few consecutive words, packed. Before the words'
// first code pass it is nil, and their codes are random and dense.
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

// pack replaces the tile's rows by the first rows of c.
func (t *tile) pack(c *codes, rows int) {
	t.end, t.index, t.value = t.end[:0], t.index[:0], t.value[:0]
	for i := range rows {
		t.index = append(t.index, c.index[i]...)
		t.value = append(t.value, c.value[i]...)
		t.end = append(t.end, len(t.value))
	}
}

// view points c at the codes of the frame's words, of which lo is the first.
// Random ones are drawn into the frame's memory.
func (s *state) view(f *frame, c *codes, lo int, lanes []*lane) {
	k := s.spec.Atoms
	random := false
	for i := range f.words {
		if t := s.tiles[(lo+i)/s.tileWords]; t != nil {
			c.index[i], c.value[i] = t.row((lo + i) % s.tileWords)
		} else {
			random = true
		}
	}
	if !random {
		return
	}
	f.random = sized(f.random, f.words*k)
	parallel(lanes, f.words, func(_ *lane, i int) {
		if s.tiles[(lo+i)/s.tileWords] == nil {
			c.index[i], c.value[i] = s.allAtoms, f.random[i*k:(i+1)*k:(i+1)*k]
			train.InitialCode(c.value[i], s.seed, lo+i)
		}
	})
}
