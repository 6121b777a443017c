package eval

import (
	"overcomplete/vectors"
)

// Transforms are the paper's alternatives to sparse coding by name (§3, "Alternative
// Transformations"). They make V×L matrices of V×L ones.
var Transforms = map[string]func(*vectors.Dense) *vectors.Sparse{
	"thresh1": threshold1,
	"thresh2": threshold2,
}

// threshold1 returns a matrix that is 1 where x is positive and 0 elsewhere (the
// paper's Eq. thresh1).
func threshold1(x *vectors.Dense) *vectors.Sparse {
	return transform(x, func(v float32) float32 {
		if v > 0 {
			return 1
		}
		return 0
	})
}

// threshold2 returns a matrix that is 1 where x is at least M⁺, −1 where x is at most
// M⁻, and 0 elsewhere (the paper's Eq. thresh2, from Guo et al. 2014). M⁺ is the mean
// of all positive values of x, and M⁻ that of all negative ones.
func threshold2(x *vectors.Dense) *vectors.Sparse {
	var sum, n [2]float64 // positive, negative
	for _, v := range x.Data {
		switch {
		case v > 0:
			sum[0] += float64(v)
			n[0]++
		case v < 0:
			sum[1] += float64(v)
			n[1]++
		}
	}
	high, low := sum[0]/n[0], sum[1]/n[1] // NaN, which nothing reaches, without such values
	return transform(x, func(v float32) float32 {
		switch {
		case float64(v) >= high:
			return 1
		case float64(v) <= low:
			return -1
		}
		return 0
	})
}

func transform(x *vectors.Dense, f func(float32) float32) *vectors.Sparse {
	s := &vectors.Sparse{Words: x.Words, CSR: vectors.CSR{Rows: x.Len(), Cols: x.Dim, Ptr: []int64{0}}}
	for i := range x.Len() {
		for j, v := range x.Row(i) {
			if v := f(v); v != 0 {
				s.Index, s.Value = append(s.Index, int32(j)), append(s.Value, v)
			}
		}
		s.Ptr = append(s.Ptr, int64(len(s.Value)))
	}
	return s
}
