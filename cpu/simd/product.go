package simd

// Multiply adds a dense product to out:
//
//	out[i][j] += Σ_k a[i·aRow+(k−lo)·aColumn] · b[k][j]        for i < rows, lo ≤ k < hi
//
// A panel of b's columns stays in cache while all rows use it. It reads up to
// Edge floats beyond a and b and writes as much beyond the rows and columns of out.
func (k *Kernels) Multiply(out Matrix, rows int, a []float32, aRow, aColumn int, b Matrix, lo, hi int) {
	for j := 0; j < b.Width; j += k.Columns {
		for i := 0; i < rows; i += k.Rows {
			k.Product(&out.Data[i*out.Pitch+j], out.Pitch, &a[i*aRow], aRow, aColumn,
				&b.Data[lo*b.Pitch+j], b.Pitch, hi-lo, nil, nil, 0, 0, 0)
		}
	}
}

// Panels are the rows of a matrix for products with its transpose: panels of as
// many rows as a product has columns, each transposed, the last filled up with
// zeros.
type Panels struct {
	Data                 []float32
	rows, width, columns int
}

// Resize makes room for a matrix. It keeps memory.
func (p *Panels) Resize(k *Kernels, rows, width int) {
	p.rows, p.width, p.columns = rows, width, k.Columns
	p.Data = Sized(p.Data, p.Len()*width*p.columns)
}

// Len is the number of panels.
func (p *Panels) Len() int { return (p.rows + p.columns - 1) / p.columns }

// Fill makes panel i of the rows of m.
func (p *Panels) Fill(i int, m Matrix) {
	size := p.width * p.columns
	panel := p.Data[i*size:][:size]
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
