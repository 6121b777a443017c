package interpret

// smallest returns the value of rank n, from 0 for the smallest, and reorders
// values (Hoare's quickselect, which takes linear time on average; the middle as
// the pivot makes it so for sorted values, too).
func smallest(values []float32, n int) float32 {
	lo, hi := 0, len(values)-1
	for lo < hi {
		pivot := values[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return values[n] // between the two, all are the pivot
		}
	}
	return values[n]
}
