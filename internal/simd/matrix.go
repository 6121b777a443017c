package simd

// Width is the number of floats in the widest register. Rows are padded to a multiple
// of it.
const Width = 16

// Pitch is the distance from a padded row to the next, in floats.
func Pitch(width int) int { return (width + Width - 1) &^ (Width - 1) }

// Matrix is row-major, with rows Pitch floats apart.
type Matrix struct {
	Data         []float32
	Width, Pitch int
}

// NewMatrix returns a matrix of zeros with padded rows, and room for the tiles of
// products to reach beyond its edges.
func NewMatrix(rows, width int) (m Matrix) {
	m.Resize(rows, width)
	return m
}

// Resize makes m what NewMatrix returns, in the memory that it has if that is enough:
// then the numbers are any.
func (m *Matrix) Resize(rows, width int) {
	m.Width, m.Pitch = width, Pitch(width)
	m.Data = Sized(m.Data, (rows+edge)*m.Pitch+edge)
}

// Zero makes m zeros to add products to. Its rows are so far apart that what a tile
// adds beyond the end of one is not yet the next.
func (m *Matrix) Zero(rows, width int) {
	m.Width, m.Pitch = width, (width+edge-1)&^(edge-1)
	m.Data = Sized(m.Data, (rows+edge)*m.Pitch)
	clear(m.Data[:rows*m.Pitch])
}

// Row returns row i.
func (m Matrix) Row(i int) []float32 { return m.Data[i*m.Pitch:][:m.Width:m.Width] }

// Padded returns row i with its padding.
func (m Matrix) Padded(i int) []float32 { return m.Data[i*m.Pitch:][:m.Pitch] }

// From returns the rows of m from row i on.
func (m Matrix) From(i int) Matrix { return Matrix{m.Data[i*m.Pitch:], m.Width, m.Pitch} }

// Sized returns n elements, in the memory of s if that is enough: then they are any.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
