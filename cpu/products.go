package cpu

// decode adds the products of codes with atoms to rows of width dim:
//
//	dst[i] += Σ_k code_ik · d[k]        for every row i and lo ≤ k < hi
//
// next[i] is the position of row i's first nonzero with k ≥ lo and moves to
// that with k ≥ hi, so that calls for consecutive blocks of atoms do a whole
// product while a block stays in cache.
//
// Floor: 2·L flops a nonzero. Each atom's row is loaded once for it; taking
// four nonzeros at a time loads and stores dst a quarter as often.
func decode(dst []float32, dim int, c *codes, rows int, d []float32, hi int32, next []int) {
	for i := range rows {
		index, value, n := c.index[i], c.value[i], next[i]
		row := dst[i*dim : (i+1)*dim]
		for ; n+4 <= len(index) && index[n+3] < hi; n += 4 {
			d0 := d[int(index[n])*dim:][:len(row)]
			d1 := d[int(index[n+1])*dim:][:len(row)]
			d2 := d[int(index[n+2])*dim:][:len(row)]
			d3 := d[int(index[n+3])*dim:][:len(row)]
			v0, v1, v2, v3 := value[n], value[n+1], value[n+2], value[n+3]
			for j := range row {
				row[j] += (v0*d0[j] + v1*d1[j]) + (v2*d2[j] + v3*d3[j])
			}
		}
		for ; n < len(index) && index[n] < hi; n++ {
			d0 := d[int(index[n])*dim:][:len(row)]
			v0 := value[n]
			for j := range row {
				row[j] += v0 * d0[j]
			}
		}
		next[i] = n
	}
}

// columns are the codes of a batch by atom: the words that use it, increasing,
// and their values.
type columns struct {
	start []int // K+1 offsets into word and value
	word  []int32
	value []float32
}

// transpose sets t to the columns of the first rows of c.
func (t *columns) transpose(c *codes, rows, atoms int) {
	if len(t.start) != atoms+1 {
		t.start = make([]int, atoms+1)
	}
	clear(t.start)
	for _, index := range c.index[:rows] {
		for _, k := range index {
			t.start[k+1]++
		}
	}
	for k := range atoms {
		t.start[k+1] += t.start[k]
	}
	nonzeros := t.start[atoms]
	if cap(t.word) < nonzeros {
		t.word, t.value = make([]int32, nonzeros), make([]float32, nonzeros)
	}
	t.word, t.value = t.word[:nonzeros], t.value[:nonzeros]
	for i := range rows {
		for j, k := range c.index[i] {
			at := t.start[k]
			t.word[at], t.value[at] = int32(i), c.value[i][j]
			t.start[k]++
		}
	}
	// Every start has moved to its end, the next one's start.
	copy(t.start[1:], t.start[:atoms])
	t.start[0] = 0
}

// accumulate adds one atom's products with residuals of width dim:
//
//	m[j] += Σ_i a_i·r_ij      n[j] += Σ_i (a_i·r_ij)²        over words i < hi
//
// from position next on, and returns the position where it stopped; n is nil if
// it is not wanted. Calls for consecutive blocks of words keep a block of
// residuals in cache while many atoms use it.
//
// Floor: 2·L flops a nonzero for m and 2·L more for n.
func accumulate(m, n []float32, words []int32, values []float32, r []float32, hi int32, next int) int {
	dim := len(m)
	for ; next < len(words) && words[next] < hi; next++ {
		row := r[int(words[next])*dim:][:len(m)]
		a := values[next]
		if n == nil {
			for j := range m {
				m[j] += a * row[j]
			}
			continue
		}
		n := n[:len(m)]
		for j := range m {
			p := a * row[j]
			m[j] += p
			n[j] += p * p
		}
	}
	return next
}

// correlate computes products of rows with a block of atoms, all of width dim:
//
//	dst[i·stride+k] = Σ_j r[i·dim+j]·d[k·dim+j]        for every row i and atom k
//
// Floor: 2·L flops a result. Two rows by four atoms at a time take 6 loads for
// 8 multiplications. An odd row or atoms left over are computed with their
// neighbour again, so that every sum is made by the same instructions.
func correlate(dst []float32, stride int, r, d []float32, rows, atoms, dim int) {
	for i := 0; i < rows; i += 2 {
		i1 := min(i+1, rows-1)
		r0 := r[i*dim:][:dim]
		r1 := r[i1*dim:][:dim]
		g0, g1 := dst[i*stride:][:atoms], dst[i1*stride:][:atoms]
		for k := 0; k < atoms; k += 4 {
			k1, k2, k3 := min(k+1, atoms-1), min(k+2, atoms-1), min(k+3, atoms-1)
			d0 := d[k*dim:][:len(r0)]
			d1 := d[k1*dim:][:len(r0)]
			d2 := d[k2*dim:][:len(r0)]
			d3 := d[k3*dim:][:len(r0)]
			r1 := r1[:len(r0)]
			var s00, s01, s02, s03, s10, s11, s12, s13 float32
			for j, x0 := range r0 {
				x1 := r1[j]
				s00 += x0 * d0[j]
				s10 += x1 * d0[j]
				s01 += x0 * d1[j]
				s11 += x1 * d1[j]
				s02 += x0 * d2[j]
				s12 += x1 * d2[j]
				s03 += x0 * d3[j]
				s13 += x1 * d3[j]
			}
			g1[k], g1[k1], g1[k2], g1[k3] = s10, s11, s12, s13
			g0[k], g0[k1], g0[k2], g0[k3] = s00, s01, s02, s03
		}
	}
}
