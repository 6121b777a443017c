package vectors

// Mean returns the mean of all V vectors, of length L. It sums in float64.
func (d *Dense) Mean() []float32 {
	sum := make([]float64, d.Dim)
	for i := range d.IDs {
		for j, x := range d.Row(i) {
			sum[j] += float64(x)
		}
	}
	mean := make([]float32, d.Dim)
	for j := range mean {
		mean[j] = float32(sum[j] / float64(d.Len()))
	}
	return mean
}
