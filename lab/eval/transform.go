package eval

import (
	"math"

	"overcomplete/vectors"
)

// Transforms lists, by name, the alternatives to sparse coding that the paper tests (§3, "Alternative
// Transformations"). Each function converts V×L dense vectors to V×L sparse vectors.
var Transforms = map[string]func(*vectors.Dense) *vectors.Sparse{
	// The value is 1 where x is positive (equation thresh1).
	"thresh1": func(x *vectors.Dense) *vectors.Sparse {
		return threshold(x, math.SmallestNonzeroFloat32, math.Inf(-1))
	},
	// The value is 1 where x is at least the mean of all positive values, and −1 where x is at most the mean of all
	// negative values (equation thresh2, from Guo et al. 2014).
	"thresh2": func(x *vectors.Dense) *vectors.Sparse {
		var sum, n [2]float64 // of positive values and of negative values
		for _, v := range x.Data {
			if v != 0 {
				sign := 0
				if v < 0 {
					sign = 1
				}
				sum[sign] += float64(v)
				n[sign]++
			}
		}
		return threshold(x, sum[0]/n[0], sum[1]/n[1]) // a threshold without such values is NaN
	},
}

// threshold returns 1 where x is at least high, −1 where x is at most low, and 0 elsewhere.
func threshold(x *vectors.Dense, high, low float64) *vectors.Sparse {
	s := &vectors.Sparse{IDs: x.IDs, CSR: vectors.CSR{Rows: x.Len(), Cols: x.Dim, Ptr: []int64{0}}}
	for i := range x.Len() {
		for j, v := range x.Row(i) {
			switch {
			case float64(v) >= high:
				s.Index, s.Value = append(s.Index, int32(j)), append(s.Value, 1)
			case float64(v) <= low:
				s.Index, s.Value = append(s.Index, int32(j)), append(s.Value, -1)
			}
		}
		s.Ptr = append(s.Ptr, int64(len(s.Value)))
	}
	return s
}
