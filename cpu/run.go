package cpu

import (
	"fmt"
	"math"

	"overcomplete/internal/parallel"
	"overcomplete/internal/program"
	"overcomplete/internal/simd"
)

const (
	// blockBytes is the size of a block of D, or of the residuals, in a product. Such a block stays in a
	// core's level-2 cache beside the rows of a tile.
	blockBytes = 256 << 10

	// maxRows and maxAtoms limit a unit of work. D is read from the level-3 cache once per maxRows rows. If maxRows
	// were 32, decoding would spend half of its time on these reads.
	maxRows  = 8 * simd.TileRows
	maxAtoms = 64

	// partBytes is the size of a part of D. A part is updated and then multiplied while it is in the level-2 cache.
	// There are at least minParts parts, enough for eight workers. There are at most maxParts parts, because each
	// part stores a product of its own.
	partBytes = 512 << 10
	minParts  = 8
	maxParts  = 64

	// batchBytes is the maximum size of a batch's residuals for an update in parts. The product of each part is as
	// large as the residuals, and must be small beside D.
	batchBytes = 256 << 10

	// residualBytes is the size of the columns of the residuals that an update reads at a time. The columns must fit
	// in cache, because sparse codes read the rows in no particular order.
	residualBytes = 1 << 20
)

// executable is a program with the kernels that run it.
type executable struct {
	*program.Program
	kernels *simd.Kernels
}

// frame holds the values that a program keeps between steps, for one batch. Its vectors may alias a trainer's
// memory.
type frame struct {
	rows, atoms, dim int
	epoch            int
	vectors          []simd.Matrix // matrices with a row per row of X or per atom; products are in the lanes
	numbers          []float64
	stored           [][]float64   // a number per row or per atom, to be totalled
	codes            codes         // A
	sums             simd.State    // S and Q
	random           simd.Matrix   // initial codes
	packed           simd.Panels   // atoms packed for correlate steps
	borrowed         bool          // packed belongs to another frame and is up to date
	parts            []simd.Matrix // parts whose sum is the product of the next decode step; nil if not computed
	partsBuffer      []simd.Matrix
	next             *frame // the next batch, nil if there is none
}

func (f *frame) length(a program.Axis) int {
	if a == program.Rows {
		return f.rows
	}
	return f.atoms
}

// lane is the state of a worker in a step: its current row and its scratch memory.
type lane struct {
	tile frame // for programs that a worker runs on one tile

	row     int           // current row or atom
	first   int           // first row of the products
	vectors []simd.Matrix // the frame's vectors, the lane's products of the rows from first on, and scratch rows
	numbers []float64     // numbers of the current row

	products [program.SquaresProduct + 1]simd.Matrix // memory of the products that the field vectors refers to
	scratch  simd.Matrix
	next     []int
	column   columns
	sums     []float32      // scratch memory for correlate
	zeros    []float32      // initial products of sparse codes
	squares  [2]simd.Matrix // squared codes and squared residuals
}

// vector returns the current row of one of the program's vectors.
func (l *lane) vector(i int) []float32 {
	if program.DecodeProduct <= i && i <= program.SquaresProduct {
		return l.vectors[i].Row(l.row - l.first)
	}
	return l.vectors[i].Row(l.row)
}

// prepare sets the lane's vectors for a step on rows that begin at row first. It clears the given products.
func (x *executable) prepare(l *lane, f *frame, first, rows int, products ...int) {
	l.first = first
	l.vectors, l.numbers = append(l.vectors[:0], f.vectors...), append(l.numbers[:0], f.numbers...)
	l.scratch.Resize(len(l.vectors), f.dim)
	for i, v := range x.Vectors {
		if v.Rows == program.One {
			l.vectors[i] = simd.Matrix{Data: l.scratch.Row(i), Width: f.dim} // pitch 0: all rows are the same
		}
	}
	for _, i := range products {
		l.products[i].Zero(rows, f.dim)
		l.vectors[i] = l.products[i]
	}
}

func zeroed[T any](s []T, n int) []T {
	s = simd.Sized(s, n)
	clear(s)
	return s
}

// run executes the program on the frame's batch, with the rows split between lanes.
func (x *executable) run(f *frame, lanes []*lane) {
	for _, s := range x.Steps {
		x.step(s, f, lanes)
	}
}

func (x *executable) step(s program.Step, f *frame, lanes []*lane) {
	// A lane reads D once per rowsAtOnce rows.
	rowsAtOnce := min(maxRows, (f.rows+len(lanes)-1)/len(lanes))
	sweep := func(rows, atOnce int, step func(l *lane, lo, hi int)) {
		parallel.With(lanes, (rows+atOnce-1)/atOnce, func(l *lane, i int) { step(l, i*atOnce, min((i+1)*atOnce, rows)) })
	}
	switch s := s.(type) {
	case *program.Decode:
		sweep(f.rows, rowsAtOnce, func(l *lane, lo, hi int) { x.decode(l, f, s, lo, hi) })
		f.parts = nil
		x.finish(f, &s.Body)
	case *program.Accumulate:
		sweep(f.atoms, max(maxAtoms, f.atoms/(4*len(lanes))), func(l *lane, lo, hi int) { x.accumulate(l, f, s, lo, hi) })
		x.finish(f, &s.Body)
	case *program.Correlate:
		f.codes.reserve(f.rows, f.atoms+simd.Width)
		if !f.borrowed {
			pack(&f.packed, x.kernels, f.vectors[s.Atoms], f.atoms, lanes)
		}
		sweep(f.rows, rowsAtOnce, func(l *lane, lo, hi int) { x.correlate(l, f, s, lo, hi) })
		f.codes.densify(f.rows, f.atoms, lanes)
	case *program.Elementwise:
		sweep(f.atoms, maxAtoms, func(l *lane, lo, hi int) {
			x.prepare(l, f, lo, hi-lo)
			x.body(l, f, &s.Body, lo, hi)
		})
		x.finish(f, &s.Body)
	case *program.Update:
		x.update(s, f, lanes)
	default:
		panic(fmt.Sprintf("cpu: no kernels for a %T", s))
	}
}

// blockRows returns the number of rows of the given width in a block.
func blockRows(width int) int { return max(8, blockBytes/(4*width)&^3) }

func (x *executable) decode(l *lane, f *frame, s *program.Decode, lo, hi int) {
	x.prepare(l, f, lo, hi-lo, program.DecodeProduct)
	product := l.vectors[program.DecodeProduct]
	if f.parts == nil {
		f.codes.decode(x.kernels, product, f.vectors[s.Atoms], lo, hi, 0, f.atoms, &l.next)
	}
	for row := lo; row < hi; row++ {
		sum := product.Row(row - lo)
		for _, part := range f.parts {
			x.kernels.Combine(sum, 1, sum, 1, part.Row(row))
		}
	}
	x.body(l, f, &s.Body, lo, hi)
}

func (x *executable) accumulate(l *lane, f *frame, s *program.Accumulate, lo, hi int) {
	if f.codes.dense == nil {
		l.column.transpose(&f.codes, f.rows, lo, hi)
	}
	x.accumulateProducts(l, f, s, lo, hi)
	x.body(l, f, &s.Body, lo, hi)
}

// accumulateProducts computes the products of an accumulate step for the atoms from lo to hi. If the codes are
// sparse, l.column must hold the nonzeros of these atoms.
func (x *executable) accumulateProducts(l *lane, f *frame, s *program.Accumulate, lo, hi int) {
	products := []int{program.AccumulateProduct, program.SquaresProduct}
	if !s.Squares {
		products = products[:1]
	}
	x.prepare(l, f, lo, hi-lo, products...)
	r, sum, squares := f.vectors[s.Residuals], l.vectors[program.AccumulateProduct], l.vectors[program.SquaresProduct]
	codes2, r2 := &l.squares[0], &l.squares[1]
	if f.codes.dense == nil {
		product := func(out, r simd.Matrix) {
			for k := lo; k < hi; k++ {
				rows, values := l.column.atom(k - lo)
				x.kernels.Decode(out.Padded(k - lo)[:r.Pitch], rows, values, r.Data, r.Pitch, int32(f.rows))
			}
		}
		product(sum, r)
		if s.Squares {
			r2.Resize(f.rows, r.Width)
			x.squareRows(*r2, r, f.rows)
			x.kernels.Mul(l.column.value, l.column.value, l.column.value)
			product(squares, *r2)
		}
		return
	}
	for block := 0; block < f.rows; block += blockRows(r.Pitch) {
		rows := min(blockRows(r.Pitch), f.rows-block)
		codes := simd.Matrix{Data: f.codes.dense.From(block).Data[lo:], Width: hi - lo, Pitch: f.codes.dense.Pitch}
		x.kernels.Multiply(sum, hi-lo, codes.View(0, 0).Transposed(), r.From(block), rows)
		if s.Squares {
			codes2.Resize(rows, hi-lo)
			r2.Resize(rows, r.Width)
			x.squareRows(*codes2, codes, rows)
			x.squareRows(*r2, r.From(block), rows)
			x.kernels.Multiply(squares, hi-lo, codes2.View(0, 0).Transposed(), *r2, rows)
		}
	}
}

func (x *executable) squareRows(dst, m simd.Matrix, rows int) {
	for i := range rows {
		x.kernels.Mul(dst.Row(i), m.Row(i), m.Row(i))
	}
}

// correlate computes S, Q and codes of a few rows at a time, from sums in the level-1 cache.
func (x *executable) correlate(l *lane, f *frame, s *program.Correlate, lo, hi int) {
	c := &f.codes
	step := simd.Averaging{
		Gradient: float32(s.Gradient), Square: float32(s.Square), Threshold: float32(float64(f.epoch) * s.Lambda),
		Rate: float32(s.Rate), Floor: float32(math.Inf(-1)),
	}
	if s.Nonnegative {
		step.Floor = 0
	}
	x.kernels.Correlate(f.vectors[s.Residuals], lo, hi, &f.packed, &f.sums, &l.sums, func(row, atom int, sums []float32) {
		c.index[row], c.value[row] = x.kernels.Average(&f.sums, row, atom, sums, c.index[row], c.value[row], step)
	})
}

// pack fills panels with the atoms, split between lanes.
func pack[L any](p *simd.Panels, k *simd.Kernels, atoms simd.Matrix, rows int, lanes []*L) {
	p.Resize(k, rows, atoms.Width)
	parallel.With(lanes, p.Len(), func(_ *L, i int) { p.Fill(i, atoms) })
}
