package cpu

import (
	"math"
	"sync"
	"sync/atomic"

	"overcomplete/cpu/simd"
	"overcomplete/graph"
)

const (
	// blockBytes is how much of D, or of the residuals, a product takes at a time:
	// that stays in a core's level-2 cache beside a tile's rows.
	blockBytes = 256 << 10

	// mostWords and mostAtoms are how many of them a worker takes at a time. D is
	// read from level 3 once for every mostWords words: with 32 of them, decoding
	// spends half of its time on that.
	mostWords = 8 * simd.TileRows
	mostAtoms = 64

	// partBytes is how much of D a part of the update moves, and multiplies while
	// it is in level 2. There are at least leastParts parts, so that as many workers
	// share them out, and at most mostParts: each holds a product of its own.
	partBytes  = 512 << 10
	leastParts = 8
	mostParts  = 64

	// batchBytes is how large a batch's residuals may be for the update to be made
	// in parts: the parts' products, each as large, are then little beside D.
	batchBytes = 256 << 10

	// residualBytes is how much of the residuals an update has in hand at a time:
	// it stays in cache, since sparse codes use their rows in no order.
	residualBytes = 1 << 20
)

// frame holds the values of a program on one batch that outlast a step. It
// belongs to that program: its places may stand for a backend's memory.
type frame struct {
	words, atoms, dim int
	epoch             int
	matrices          []simd.Matrix
	sums              simd.State // S and Q
	codes             []*codes
	numbers           []float64
	rowTotals         [][]float64
	random            simd.Matrix // codes before the first epoch
	packed            simd.Panels
	lent              bool          // packed is another frame's, whose owner keeps it up to date
	parts             []simd.Matrix // sum to the product of the coming decode step; nil if that is to make it
	partsRoom         []simd.Matrix // for them
	factors           [6]float32    // of an update
	next              *frame        // of the batch that follows, nil if there is none
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

	frame *frame
	row   int // word or atom

	first    int           // row that the products start with
	products []simd.Matrix // of the rows from first on
	scratch  []simd.Matrix // where they are
	temps    simd.Matrix
	numbers  []float64
	next     []int
	column   columns
	sums     []float32      // of correlate
	zeros    []float32      // no product yet
	squares  [2]simd.Matrix // of dense codes and of residuals
}

func (l *lane) productRow(i int) []float32 {
	return l.products[i].Row(l.row - l.first)
}

func (l *lane) temp(i int) []float32 { return l.temps.Row(i) }

// prepare gives the lane scratch for rows of a step, zeroing the products.
func (l *lane) prepare(s *step, f *frame, first, rows, width int) {
	l.frame, l.first = f, first
	for len(l.scratch) < len(s.product) {
		l.scratch = append(l.scratch, simd.Matrix{})
	}
	l.products = l.products[:0]
	for i := range s.product {
		p := &l.scratch[i]
		p.Zero(rows, width)
		l.products = append(l.products, *p)
	}
	l.temps.Width, l.temps.Pitch = width, simd.Pitch(width)
	l.temps.Data = simd.Sized(l.temps.Data, s.temps*l.temps.Pitch)
	l.numbers = simd.Sized(l.numbers, s.numbers)
}

func zeroed[T any](s []T, n int) []T {
	s = simd.Sized(s, n)
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
	if s.update != nil {
		s.update.run(f, lanes)
		return
	}
	unit := mostAtoms
	switch {
	case s.shape[0] == graph.Words: // the more words a lane has in hand, the less often it reads D
		unit = min(mostWords, (f.words+len(lanes)-1)/len(lanes))
	case s.kind == graph.Accumulate:
		unit = max(mostAtoms, f.atoms/(4*len(lanes)))
	}
	if a := s.average; a != nil {
		f.codes[a.codes].reserve(f.words, f.atoms+simd.Width)
		if !f.lent {
			pack(&f.packed, s.kernels, f.matrices[a.atoms], f.atoms, lanes)
		}
	}
	rows := f.rows(s.shape[0])
	parallel(lanes, (rows+unit-1)/unit, func(l *lane, i int) {
		s.sweep(l, f, i*unit, min((i+1)*unit, rows))
	})
	f.parts = nil
	if a := s.average; a != nil {
		f.codes[a.codes].spread(f.words, f.atoms, lanes)
	}
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
		if f.parts == nil {
			f.codes[p.left].decode(s.kernels, l.products[i], f.matrices[p.right], lo, hi, 0, f.atoms, &l.next)
			continue
		}
		for row := lo; row < hi; row++ {
			sum := l.products[i].Row(row - lo)
			for _, part := range f.parts {
				s.kernels.Combine(sum, 1, sum, 1, part.Row(row))
			}
		}
	}
	s.runBody(l, lo, hi)
}

func (s *step) accumulate(l *lane, f *frame, lo, hi int) {
	c, r := f.codes[s.product[0].left], f.matrices[s.product[0].right]
	if c.dense == nil {
		l.column.transpose(c, f.words, lo, hi)
		if s.moves != nil {
			s.moves.sparse(l, f, lo, hi)
			return
		}
	}
	l.prepare(s, f, lo, hi-lo, f.dim)
	if c.dense != nil {
		s.accumulateDense(l, f, lo, hi)
	} else {
		for k := lo; k < hi; k++ {
			words, values := l.column.of(k - lo)
			s.kernels.Decode(l.products[0].Data[(k-lo)*l.products[0].Pitch:][:r.Pitch], words, values, r.Data, r.Pitch, int32(f.words))
		}
	}
	if s.moves == nil {
		s.runBody(l, lo, hi)
		return
	}
	m, n := l.products[0], l.products[1]
	for k := lo; k < hi; k++ {
		clear(m.Padded(k - lo)[f.dim:])
		clear(n.Padded(k - lo)[f.dim:])
		s.moves.atom(f, k, 0, r.Pitch, m.Padded(k-lo), n.Padded(k-lo), nil, nil, nil)
	}
}

// accumulateDense makes those of dense codes for the atoms from lo to hi.
func (s *step) accumulateDense(l *lane, f *frame, lo, hi int) {
	c, r := f.codes[s.product[0].left].dense, f.matrices[s.product[0].right]
	for block := 0; block < f.words; block += blockRows(r.Pitch) {
		words := min(blockRows(r.Pitch), f.words-block)
		s.kernels.Multiply(l.products[0], hi-lo, c.Factor(block, lo).Transposed(), r.From(block), words)
		if !s.squares {
			continue
		}
		c2, r2 := &l.squares[0], &l.squares[1]
		c2.Resize(words, hi-lo)
		r2.Resize(words, r.Width)
		for i := range words {
			codes := c.Row(block + i)[lo:hi]
			s.kernels.Mul(c2.Row(i), codes, codes)
			s.kernels.Mul(r2.Row(i), r.Row(block+i), r.Row(block+i))
		}
		s.kernels.Multiply(l.products[1], hi-lo, c2.Factor(0, 0).Transposed(), *r2, words)
	}
}

// correlate makes S, Q and codes of a few words' sums while they are in level 1.
func (s *step) correlate(l *lane, f *frame, lo, hi int) {
	a := s.average
	c := f.codes[a.codes]
	step := simd.Averaging{
		Gradient: float32(a.Gradient), Square: float32(a.Square), Threshold: float32(float64(f.epoch) * a.Lambda),
		Rate: float32(a.Rate), Floor: float32(math.Inf(-1)),
	}
	if a.Nonnegative {
		step.Floor = 0
	}
	s.kernels.Correlate(f.matrices[a.residuals], lo, hi, &f.packed, &f.sums, &l.sums, func(word, atom int, sums []float32) {
		c.index[word], c.value[word] = s.kernels.Average(&f.sums, word, atom, sums, c.index[word], c.value[word], step)
	})
}

func (s *step) elementwise(l *lane, f *frame, lo, hi int) {
	l.prepare(s, f, lo, hi-lo, f.dim)
	s.runBody(l, lo, hi)
}

// runBody runs the body on the rows from lo to hi.
func (s *step) runBody(l *lane, lo, hi int) {
	for l.row = lo; l.row < hi; l.row++ {
		for _, f := range s.body {
			f(l)
		}
	}
}

// parallel calls f for every unit from 0 to units−1, each on one of the lanes.
func parallel[L any](lanes []*L, units int, f func(l *L, unit int)) {
	if len(lanes) == 1 || units <= 1 {
		for i := range units {
			f(lanes[0], i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	work := func(l *L) {
		for i := int(next.Add(1) - 1); i < units; i = int(next.Add(1) - 1) {
			f(l, i)
		}
	}
	for _, l := range lanes[1:min(len(lanes), units)] {
		wg.Go(func() { work(l) })
	}
	work(lanes[0])
	wg.Wait()
}

// pack fills panels with the atoms, split between lanes.
func pack[L any](p *simd.Panels, k *simd.Kernels, atoms simd.Matrix, rows int, lanes []*L) {
	p.Resize(k, rows, atoms.Width)
	parallel(lanes, p.Len(), func(_ *L, i int) { p.Fill(i, atoms) })
}
