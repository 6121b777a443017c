package simd

import "unsafe"

// The product kernel makes a tile of rows × columns sums, which it keeps in registers.
// Each level has tiles of its own size, that only this file knows.

const (
	// edge is how far tiles may reach beyond the rows and columns of a product: no
	// tile has more of either.
	edge = 32

	// TileRows is a multiple of the rows of every level's tiles. Work is best split
	// by multiples of it.
	TileRows = 24

	// correlateColumns is how many sums of a row Correlate makes before it hands
	// them on: those of a tile's rows stay in level 1. It is a multiple of the
	// columns of every level's tiles.
	correlateColumns = 256
)

// View is a part of a matrix, or of a transpose of one, as the left side of a product: its
// element in row i and column l, the l-th term of that row, is data[i·row+l·term].
type View struct {
	data      []float32
	row, term int
}

// View returns the part of m that starts with element (i, j).
func (m Matrix) View(i, j int) View { return View{m.Data[i*m.Pitch+j:], m.Pitch, 1} }

// Transposed returns the transpose.
func (v View) Transposed() View { return View{v.data, v.term, v.row} }

// Multiply adds a dense product to the rows of out:
//
//	out[i][j] += Σ_l a[i][l] · b[l][j]        for i < rows, j < b.Width, l < terms; terms > 0
//
// It reads beyond the rows of a and the columns of b, and writes beyond those of out,
// no further than [NewMatrix], Resize and Zero leave room for.
func (k *Kernels) Multiply(out Matrix, rows int, a View, b Matrix, terms int) {
	k.tiles(out.Data, out.Pitch, rows, b.Width, a, View{b.Data, 1, b.Pitch}, terms, prefetch{})
}

// Correlate multiplies the rows of x from lo to hi with all rows of the matrix that p
// was made of. It calls each again and again, with consecutive sums of row i:
//
//	sums[j] = Σ_l x[i][l] · p[column+j][l]        for j < len(sums)
//
// For every row, columns come in increasing order. A block of columns stays in level 2
// while all rows use it. If ahead is not nil, its elements of the same rows and columns
// are brought into level 2 while their sums are made, so that each finds them there.
// Room belongs to the caller, who may pass it again; it must not be in use by another
// goroutine.
func (k *Kernels) Correlate(x Matrix, lo, hi int, p *Panels, ahead *State, room *[]float32, each func(i, column int, sums []float32)) {
	*room = Sized(*room, k.rows*correlateColumns)
	sums := *room
	for block := 0; block < p.rows; block += correlateColumns {
		columns := min(correlateColumns, p.rows-block)
		panels := View{p.data[block*p.width:], p.width, k.columns}
		for first := lo; first < hi; first += k.rows {
			clear(sums)
			rows := min(k.rows, hi-first)
			k.tiles(sums, correlateColumns, k.rows, columns, x.View(first, 0), panels, p.width, ahead.prefetch(first, block, rows))
			for i := range rows {
				each(first+i, block, sums[i*correlateColumns:][:columns])
			}
		}
	}
}

// tiles adds the product of a and b to dst, whose rows are pitch apart. Term l of
// column j+c of b is b.data[j·row+l·term+c], where column j is a tile's first and c
// counts its columns. One tile's columns of b stay in cache while all rows use them.
func (k *Kernels) tiles(dst []float32, pitch, rows, columns int, a, b View, terms int, next prefetch) {
	every := max(1, terms/k.rows)
	for j := 0; j < columns; j += k.columns {
		s, q := unsafe.Add(next.s, j*next.size), unsafe.Add(next.q, j*next.size)
		for i := 0; i < rows; i += k.rows {
			k.product(&dst[i*pitch+j], pitch, &a.data[i*a.row], a.row, a.term, &b.data[j*b.row], b.term, terms,
				(*byte)(s), (*byte)(q), next.pitch, next.rows, every)
		}
	}
}

// Panels are a matrix, packed to be multiplied with: as many rows at a time as a tile
// has columns, each such panel transposed. The last may be partly empty.
type Panels struct {
	data                 []float32
	rows, width, columns int
}

// Resize makes room for the panels of a matrix of rows × width, in the memory that p
// has if that is enough. Each must be filled next.
func (p *Panels) Resize(k *Kernels, rows, width int) {
	p.rows, p.width, p.columns = rows, width, k.columns
	p.data = Sized(p.data, p.Len()*width*p.columns)
}

// Len returns the number of panels.
func (p *Panels) Len() int { return (p.rows + p.columns - 1) / p.columns }

// Fill packs panel i of m. Panels may be filled on several goroutines.
func (p *Panels) Fill(i int, m Matrix) {
	first := i * p.columns
	panel := p.data[first*p.width:]
	for column := range min(p.columns, p.rows-first) {
		for j, x := range m.Row(first + column) {
			panel[j*p.columns+column] = x
		}
	}
}
