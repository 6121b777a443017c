package simd

// Width is the number of floats in the widest register. The length of a padded row is a multiple of Width.
const Width = 16

// Pitch returns the length of a padded row of the given width, in floats.
func Pitch(width int) int { return (width + Width - 1) &^ (Width - 1) }

// A Matrix is row-major, with rows of Width floats that start Pitch floats apart.
type Matrix struct {
	Data         []float32
	Width, Pitch int
}

// NewMatrix returns a matrix of zeros with padded rows and with memory for tiles that
// reach beyond its edges.
func NewMatrix(rows, width int) (m Matrix) {
	m.Resize(rows, width)
	return m
}

// Resize gives m the shape and the padding of NewMatrix. It reuses m's memory if that is
// large enough; the elements are then undefined.
func (m *Matrix) Resize(rows, width int) {
	m.Width, m.Pitch = width, Pitch(width)
	m.Data = Sized(m.Data, (rows+edge)*m.Pitch+edge)
}

// Zero resizes m and sets it to zeros, for products that are added to it. Its pitch is a
// multiple of edge, so that a tile that reaches beyond a row doesn't change the next row.
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

// Sized returns a slice of n elements. It reuses the memory of s if that is large enough;
// the elements are then undefined.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
