package vectors

// Center subtracts the mean vector from every row and returns it, of length L.
// Sums are made in float64.
func (d *Dense) Center() []float32 {
	sum := make([]float64, d.Dim)
	for i := range d.Words {
		for j, x := range d.Row(i) {
			sum[j] += float64(x)
		}
	}
	mean := make([]float32, d.Dim)
	for j := range mean {
		mean[j] = float32(sum[j] / float64(d.Len()))
	}
	for i := range d.Words {
		row := d.Row(i)
		for j := range row {
			row[j] -= mean[j]
		}
	}
	return mean
}
