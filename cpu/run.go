package cpu

import (
	"sync"
	"sync/atomic"

	"overcomplete/graph"
)

const (
	// blockBytes is how much of D, or of the residuals, is gone through at a
	// time: it stays in a core's level-2 cache beside a tile of rows.
	blockBytes = 256 << 10

	mostWords = 64 // that a lane takes at a time: a tile
	mostAtoms = 32 // likewise
)

// matrix is row-major.
type matrix struct {
	data  []float32
	width int
}

func (m matrix) row(i int) []float32 { return m.data[i*m.width : (i+1)*m.width] }

// frame holds the values of a program on one batch that outlast a step. It
// belongs to that program: its places may stand for a backend's memory.
type frame struct {
	words, atoms, dim int
	matrices          []matrix
	codes             []*codes
	numbers           []float64
	rowTotals         [][]float64
	columns           columns
	random            []float32 // codes before the first epoch
}

func (f *frame) rows(a graph.Axis) int {
	if a == graph.Words {
		return f.words
	}
	return f.atoms
}

// lane is a worker's place in a step: the row it is at and its scratch.
type lane struct {
	tile frame // of the program that the worker runs on tiles of its own

	frame  *frame
	row    int // word or atom
	lo, hi int // columns

	first    int // row that the products start with
	products [][]float32
	stride   int
	temps    []float32
	numbers  []float64
	next     []int
}

func (l *lane) productRow(i int) []float32 {
	at := (l.row - l.first) * l.stride
	return l.products[i][at : at+l.hi-l.lo]
}

func (l *lane) temp(i int) []float32 { return l.temps[i*l.stride:][:l.hi-l.lo] }

// prepare gives the lane scratch for rows of a step, zeroing the products.
func (l *lane) prepare(s *step, f *frame, first, rows, stride int) {
	l.frame, l.first, l.stride = f, first, stride
	for len(l.products) < len(s.product) {
		l.products = append(l.products, nil)
	}
	for i := range s.product {
		l.products[i] = zeroed(l.products[i], rows*stride)
	}
	l.temps = sized(l.temps, s.temps*stride)
	l.numbers = sized(l.numbers, s.numbers)
	l.next = zeroed(l.next, rows)
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func zeroed[T any](s []T, n int) []T {
	s = sized(s, n)
	clear(s)
	return s
}

// run executes the program on the frame's batch, its rows split between lanes.
func (x *executable) run(f *frame, lanes []*lane) {
	for _, s := range x.steps {
		s.run(f, lanes)
	}
}

func (s *step) run(f *frame, lanes []*lane) {
	unit := mostAtoms
	if s.shape[0] == graph.Words {
		unit = mostWords
		if len(lanes) > 1 { // a few units for each, of rows enough to use a block of D well
			unit = min(mostWords, max(4, f.words/(4*len(lanes))))
		}
	}
	if s.kind == graph.Accumulate {
		f.columns.transpose(f.codes[s.product[0].left], f.words, f.atoms)
	}
	for _, at := range s.produced {
		f.codes[at].clear(f.words)
	}
	rows := f.rows(s.shape[0])
	parallel(lanes, (rows+unit-1)/unit, func(l *lane, i int) {
		s.sweep(l, f, i*unit, min((i+1)*unit, rows))
	})
	lanes[0].frame = f
	for _, total := range s.totals {
		total(lanes[0])
	}
	for _, scalar := range s.scalars {
		scalar(lanes[0])
	}
}

// sweep runs the step on the rows from lo to hi.
func (s *step) sweep(l *lane, f *frame, lo, hi int) {
	switch s.kind {
	case graph.Decode:
		s.decode(l, f, lo, hi)
	case graph.Accumulate:
		s.accumulate(l, f, lo, hi)
	case graph.Correlate:
		s.correlate(l, f, lo, hi)
	case graph.Elementwise:
		s.elementwise(l, f, lo, hi)
	}
}

// blockRows is how many rows of the given width make a block.
func blockRows(width int) int { return max(8, blockBytes/(4*width)&^3) }

func (s *step) decode(l *lane, f *frame, lo, hi int) {
	l.prepare(s, f, lo, hi-lo, f.dim)
	for i, p := range s.product {
		c, d := f.codes[p.left], f.matrices[p.right]
		rows := &codes{c.index[lo:hi], c.value[lo:hi]}
		clear(l.next)
		for block := 0; block < f.atoms; block += blockRows(f.dim) {
			end := min(block+blockRows(f.dim), f.atoms)
			decode(l.products[i], f.dim, rows, hi-lo, d.data, int32(end), l.next)
		}
	}
	s.runBody(l, lo, hi, 0, f.dim)
}

func (s *step) accumulate(l *lane, f *frame, lo, hi int) {
	l.prepare(s, f, lo, hi-lo, f.dim)
	t, r := &f.columns, f.matrices[s.product[0].right]
	for block := 0; block < f.words; block += blockRows(f.dim) {
		end := int32(min(block+blockRows(f.dim), f.words))
		for k := lo; k < hi; k++ {
			words, values := t.word[t.start[k]:t.start[k+1]], t.value[t.start[k]:t.start[k+1]]
			m := l.products[0][(k-lo)*f.dim:][:f.dim]
			var n []float32
			if s.squares {
				n = l.products[1][(k-lo)*f.dim:][:f.dim]
			}
			l.next[k-lo] = accumulate(m, n, words, values, r.data, end, l.next[k-lo])
		}
	}
	s.runBody(l, lo, hi, 0, f.dim)
}

func (s *step) correlate(l *lane, f *frame, lo, hi int) {
	block := blockRows(f.dim)
	l.prepare(s, f, lo, hi-lo, block)
	r, d := f.matrices[s.product[0].left], f.matrices[s.product[0].right]
	for k := 0; k < f.atoms; k += block {
		end := min(k+block, f.atoms)
		correlate(l.products[0], block, r.data[lo*f.dim:], d.data[k*f.dim:], hi-lo, end-k, f.dim)
		s.runBody(l, lo, hi, k, end)
	}
}

func (s *step) elementwise(l *lane, f *frame, lo, hi int) {
	width := f.dim
	if s.shape[1] == graph.Atoms {
		width = f.atoms
	}
	l.prepare(s, f, lo, hi-lo, width)
	s.runBody(l, lo, hi, 0, width)
}

// runBody runs the body on the columns from left to right of the rows from lo
// to hi.
func (s *step) runBody(l *lane, lo, hi, left, right int) {
	l.lo, l.hi = left, right
	for l.row = lo; l.row < hi; l.row++ {
		for _, f := range s.body {
			f(l)
		}
	}
}

// parallel calls f for every unit from 0 to units−1, each on one of the lanes.
func parallel(lanes []*lane, units int, f func(l *lane, unit int)) {
	if len(lanes) == 1 || units <= 1 {
		for i := range units {
			f(lanes[0], i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, l := range lanes[:min(len(lanes), units)] {
		wg.Go(func() {
			for i := int(next.Add(1) - 1); i < units; i = int(next.Add(1) - 1) {
				f(l, i)
			}
		})
	}
	wg.Wait()
}
