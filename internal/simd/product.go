package simd

import "unsafe"

// The product kernel computes a tile of rows × columns sums in registers. Only this file
// depends on the size of a level's tiles.

const (
	// edge is the largest number of rows or columns of a tile. A tile reaches beyond a
	// product by less than edge.
	edge = 32

	// TileRows is a multiple of the number of rows of a tile, at every level. The number
	// of rows that a worker processes should be a multiple of TileRows.
	TileRows = 24

	// correlateColumns is the number of sums of a row that Correlate passes on at once.
	// The sums of a tile's rows stay in the level-1 cache. correlateColumns is a multiple of
	// the number of columns of a tile, at every level.
	correlateColumns = 256
)

// A View is a part of a matrix, or of a transposed matrix, as the left factor of a product.
// Its element in row i and column l is data[i·row+l·term].
type View struct {
	data      []float32
	row, term int
}

// View returns the part of m whose first element is (i, j).
func (m Matrix) View(i, j int) View { return View{m.Data[i*m.Pitch+j:], m.Pitch, 1} }

// Transposed returns the transpose.
func (v View) Transposed() View { return View{v.data, v.term, v.row} }

// Multiply adds a dense product to the rows of out:
//
//	out[i][j] += Σ_l a[i][l] · b[l][j]        for i < rows, j < b.Width, l < terms; terms > 0
//
// It reads beyond the rows of a and the columns of b, and writes beyond the rows and
// columns of out, within the memory that [NewMatrix], Resize and Zero allocate.
func (k *Kernels) Multiply(out Matrix, rows int, a View, b Matrix, terms int) {
	k.tiles(out.Data, out.Pitch, rows, b.Width, a, View{b.Data, 1, b.Pitch}, terms, prefetch{})
}

// Correlate multiplies the rows of x from lo to hi with all rows of the packed matrix p.
// It calls each(i, column, sums) with consecutive sums of row i:
//
//	sums[j] = Σ_l x[i][l] · p[column+j][l]        for j < len(sums)
//
// The columns of a row come in increasing order. A block of columns stays in the
// level-2 cache while all rows use it. If ahead isn't nil, Correlate prefetches the elements of
// ahead in the same rows and columns into the level-2 cache, for the callback. Correlate grows the
// caller's scratch memory if necessary; no other goroutine may use it.
func (k *Kernels) Correlate(x Matrix, lo, hi int, p *Panels, ahead *State, scratch *[]float32, each func(i, column int, sums []float32)) {
	*scratch = Sized(*scratch, k.rows*correlateColumns)
	sums := *scratch
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
// column j+c of b is b.data[j·b.row+l·b.term+c], where j is the first column of a tile
// and c the column in the tile. A tile's columns of b stay in cache while all rows use
// them.
func (k *Kernels) tiles(dst []float32, pitch, rows, columns int, a, b View, terms int, next prefetch) {
	every := max(1, terms/k.rows)
	for j := 0; j < columns; j += k.columns {
		var s, q unsafe.Pointer
		if next.rows > 0 {
			s, q = unsafe.Add(next.s, 4*j), unsafe.Add(next.q, 4*j)
		}
		for i := 0; i < rows; i += k.rows {
			k.product(&dst[i*pitch+j], pitch, &a.data[i*a.row], a.row, a.term, &b.data[j*b.row], b.term, terms,
				(*byte)(s), (*byte)(q), next.pitch, next.rows, every)
		}
	}
}

// Panels is a matrix packed as the right factor of [Kernels.Correlate]. A panel holds as
// many rows as a tile has columns, transposed. The last panel may be partly empty.
type Panels struct {
	data                 []float32
	rows, width, columns int
}

// Resize allocates the panels of a rows × width matrix. It reuses p's memory if that is
// large enough. All panels must be filled afterwards.
func (p *Panels) Resize(k *Kernels, rows, width int) {
	p.rows, p.width, p.columns = rows, width, k.columns
	p.data = Sized(p.data, p.Len()*width*p.columns)
}

// Len returns the number of panels.
func (p *Panels) Len() int { return (p.rows + p.columns - 1) / p.columns }

// Fill packs panel i of m. Goroutines may fill different panels concurrently.
func (p *Panels) Fill(i int, m Matrix) {
	first := i * p.columns
	panel := p.data[first*p.width:]
	for column := range min(p.columns, p.rows-first) {
		for j, x := range m.Row(first + column) {
			panel[j*p.columns+column] = x
		}
	}
}
