package simd

// Width is the number of floats that rows which kernels read or write are padded
// to a multiple of: the widest register's.
const Width = 16

// Pitch is the distance of padded rows.
func Pitch(width int) int { return (width + Width - 1) &^ (Width - 1) }

// Matrix is row-major, with rows Pitch apart.
type Matrix struct {
	Data         []float32
	Width, Pitch int
}

// NewMatrix returns a padded matrix of zeros with room for the edges of products.
func NewMatrix(rows, width int) (m Matrix) {
	m.Resize(rows, width)
	return m
}

// Resize is NewMatrix that keeps memory, and what is in it.
func (m *Matrix) Resize(rows, width int) {
	m.Width, m.Pitch = width, Pitch(width)
	m.Data = Sized(m.Data, (rows+edge)*m.Pitch+edge)
}

// Zero makes m rows of zeros to add products to, which it keeps apart from the
// sums at their edges that nobody wants.
func (m *Matrix) Zero(rows, width int) {
	m.Width, m.Pitch = width, (width+edge-1)&^(edge-1)
	m.Data = Sized(m.Data, (rows+edge)*m.Pitch)
	clear(m.Data[:rows*m.Pitch])
}

// Row is row i.
func (m Matrix) Row(i int) []float32 { return m.Data[i*m.Pitch:][:m.Width:m.Width] }

// Padded is row i with what it is padded with.
func (m Matrix) Padded(i int) []float32 { return m.Data[i*m.Pitch:][:m.Pitch] }

// From is the rows of m from row i on.
func (m Matrix) From(i int) Matrix { return Matrix{m.Data[i*m.Pitch:], m.Width, m.Pitch} }

// Sized returns n elements in the memory of s where that is enough, with what is
// in it.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
