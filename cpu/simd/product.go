package simd

import "unsafe"

// The product kernel makes rows × columns sums at once, which it keeps in
// registers: each level has its own numbers of them. This file cuts products into
// such tiles, and nothing else knows their size.

const (
	// edge is how far tiles may reach beyond the rows and columns of a product,
	// for sums that nobody wants: none has more rows or columns.
	edge = 32

	// TileRows is a multiple of every level's rows. Work that is split by rows is
	// best split by multiples of it.
	TileRows = 24

	// correlateColumns is how many sums of a row Correlate has at hand at a time:
	// those of a tile's rows stay in level 1. It is a multiple of every level's columns.
	correlateColumns = 256
)

// Factor is the left factor of a product, a part of a matrix or of its transpose:
// element (i, j) of the product needs data[i·row+l·term] for every term l.
type Factor struct {
	data      []float32
	row, term int
}

// Factor is the part of m that starts with element (i, j).
func (m Matrix) Factor(i, j int) Factor { return Factor{m.Data[i*m.Pitch+j:], m.Pitch, 1} }

// Transposed is the transpose of a factor.
func (f Factor) Transposed() Factor { return Factor{f.data, f.term, f.row} }

// Multiply adds a dense product to the rows of out:
//
//	out[i][j] += Σ_l a[i][l] · b[l][j]        for i < rows, j < b.Width, l < terms; terms > 0
//
// A panel of b's columns stays in cache while all rows use it. It reads beyond the
// rows of a and the columns of b, and writes beyond those of out, within what the
// methods of [Matrix] leave room for.
func (k *Kernels) Multiply(out Matrix, rows int, a Factor, b Matrix, terms int) {
	k.tiles(out.Data, out.Pitch, rows, b.Width, a, Factor{b.Data, 1, b.Pitch}, terms, prefetch{})
}

// Correlate makes the products of the rows of x from lo to hi with all rows of a
// matrix. It calls each with some consecutive sums at a time, of row i and of the
// columns from column on:
//
//	sums[j] = Σ_l x[i][l] · p[column+j][l]
//
// They are those of a block of panels, that stays in level 2 while all rows use it.
// If ahead is not nil, its elements of the same rows and columns come into level 2
// meanwhile, for each to use. Room is a worker's own, kept from call to call.
func (k *Kernels) Correlate(x Matrix, lo, hi int, p *Panels, ahead *State, room *[]float32, each func(i, column int, sums []float32)) {
	*room = Sized(*room, k.rows*correlateColumns)
	sums := *room
	for block := 0; block < p.rows; block += correlateColumns {
		columns := min(correlateColumns, p.rows-block)
		panels := Factor{p.data[block*p.width:], p.width, k.columns}
		for first := lo; first < hi; first += k.rows {
			clear(sums)
			rows := min(k.rows, hi-first)
			k.tiles(sums, correlateColumns, k.rows, columns, x.Factor(first, 0), panels, p.width, ahead.prefetch(first, block, rows))
			for i := range rows {
				each(first+i, block, sums[i*correlateColumns:][:columns])
			}
		}
	}
}

// tiles adds to dst the products of rows of a and columns of b, of which
// b.data[j·row+l·term+c] is term l of column j+c, for a tile's columns c.
func (k *Kernels) tiles(dst []float32, pitch, rows, columns int, a, b Factor, terms int, next prefetch) {
	every := max(1, terms/k.rows)
	for j := 0; j < columns; j += k.columns {
		s, q := unsafe.Add(next.s, j*next.size), unsafe.Add(next.q, j*next.size)
		for i := 0; i < rows; i += k.rows {
			k.product(&dst[i*pitch+j], pitch, &a.data[i*a.row], a.row, a.term, &b.data[j*b.row], b.term, terms,
				(*byte)(s), (*byte)(q), next.pitch, next.rows, every)
		}
	}
}

// Panels are the rows of a matrix for products with its transpose: panels of as
// many rows as a tile has columns, each transposed, the last filled up with zeros.
type Panels struct {
	data                 []float32
	rows, width, columns int
}

// Resize makes room for the panels of a matrix. It keeps memory.
func (p *Panels) Resize(k *Kernels, rows, width int) {
	p.rows, p.width, p.columns = rows, width, k.columns
	p.data = Sized(p.data, p.Len()*width*p.columns)
}

// Len is the number of panels.
func (p *Panels) Len() int { return (p.rows + p.columns - 1) / p.columns }

// Fill makes panel i of the rows of m. Panels may be filled at the same time.
func (p *Panels) Fill(i int, m Matrix) {
	size := p.width * p.columns
	panel := p.data[i*size:][:size]
	for column := range p.columns {
		if row := i*p.columns + column; row < p.rows {
			for j, x := range m.Row(row) {
				panel[j*p.columns+column] = x
			}
		} else {
			for j := range p.width {
				panel[j*p.columns+column] = 0
			}
		}
	}
}
