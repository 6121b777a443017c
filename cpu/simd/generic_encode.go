package simd

// The plain Go of the kernels that only encoding needs: see generic.go.
// On arm64 it is what runs.

// for j < len(p):
//
//	z = b[j] + momentum·(b[j] − a[j])
//	g = z + step·p[j]
//	x = max(sgn(g)·max(|g| − threshold, 0), floor)
//	against += (z − x)·(x − b[j])
//	a[j] = x
//	if x ≠ 0: append column+j to index, x to value
//
// It returns how many it appended, and against. index and value have Width
// elements more than p, and what is in them beyond the appended ones is undefined.
func fistaGeneric(index []int32, value, p, b, a []float32, column int32, momentum, step, threshold, floor float32) (n int, against float32) {
	b, a = b[:len(p)], a[:len(p)]
	for j, c := range p {
		z := b[j] + momentum*(b[j]-a[j])
		g := z + step*c
		x := max(g-threshold, 0)
		if g < 0 {
			x = -max(-g-threshold, 0)
		}
		x = max(x, floor)
		against += (z - x) * (x - b[j])
		a[j] = x
		if x != 0 {
			index[n], value[n] = column+int32(j), x
			n++
		}
	}
	return n, against
}

// for n = 0, 1, … while index[n] < end:
//
//	p[n] = Σ_j r[j] · d[index[n]·dim+j]        for j < len(r)
//
// It returns where it stopped. index increases; len(r) is a multiple of
// Width.
//
// Floor: 2·len(r) flops a nonzero, and their load from level 2.
func dotsGeneric(p []float32, index []int32, r, d []float32, dim int, end int32) (n int) {
	for ; n < len(index) && index[n] < end; n++ {
		row := d[int(index[n])*dim:][:len(r)]
		var s0, s1, s2, s3 float32
		for j := 0; j < len(r); j += 4 {
			s0 += r[j] * row[j]
			s1 += r[j+1] * row[j+1]
			s2 += r[j+2] * row[j+2]
			s3 += r[j+3] * row[j+3]
		}
		p[n] = (s0 + s1) + (s2 + s3)
	}
	return n
}

// c[j] += x·g[j]        for j < len(c), a multiple of Width
func axpyGeneric(c []float64, x float64, g []float32) {
	g = g[:len(c)]
	for j := range c {
		c[j] += x * float64(g[j])
	}
}
