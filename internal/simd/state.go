package simd

import "unsafe"

// A State is the state of dual averaging: for every code S, the sum of its gradients, and Q,
// the sum of their squares. Both are row-major with the given number of Columns. They
// are either S and Q in float32, or S and √Q in float16 (IEEE 754 binary16), which are
// converted to float32 for computation.
//
// The range of float16 is too small for Q: squares of gradients below 2⁻¹² would be 0,
// and a code −η·S/√Q would be limited by ε alone. √Q has the magnitude of gradients, as
// S has. It is positive if S isn't 0, because √(q²+g²) rounds to |g| or more. It never
// decreases, because it rounds to q or more.
type State struct {
	Columns      int
	S, Q         []float32 // nil for float16
	HalfS, RootQ []uint16  // nil for float32
}

// Rows returns the rows from lo to hi, which share memory with s.
func (s *State) Rows(lo, hi int) State {
	lo, hi = lo*s.Columns, hi*s.Columns
	if s.HalfS != nil {
		return State{Columns: s.Columns, HalfS: s.HalfS[lo:hi], RootQ: s.RootQ[lo:hi]}
	}
	return State{Columns: s.Columns, S: s.S[lo:hi], Q: s.Q[lo:hi]}
}

// Averaging holds the constants of a step of dual averaging.
type Averaging struct {
	Gradient  float32 // gradient of the loss per product
	Square    float32 // increase of Q per squared product
	Threshold float32 // tλ
	Rate      float32 // η
	Floor     float32 // 0 for nonnegative codes, −∞ for others
}

// Average computes a step of dual averaging for len(p) elements of row i of s, from a
// column on, and appends the nonzero codes to index and value. p holds the products of
// the row's residual with atoms. For j < len(p), with S and Q of element column+j:
//
//	S += Gradient·p[j]
//	Q += Square·p[j]²
//	u = |S| − Threshold
//	a = 0 if u ≤ 0, else −sgn(S)·Rate·u/√(Q+ε)
//	a = max(a, Floor)
//	if a ≠ 0: append column+j to index, a to value
//
// index and value must have capacity for len(p)+[Width] more elements. Average allocates
// nothing and overwrites elements beyond their length.
func (k *Kernels) Average(s *State, i, column int, p []float32, index []int32, value []float32, a Averaging) ([]int32, []float32) {
	n := len(index)
	more, values := index[n:cap(index)], value[n:cap(value)]
	lo := i*s.Columns + column
	hi := lo + len(p)
	if s.HalfS != nil {
		n += k.averageHalf(more, values, p, s.HalfS[lo:hi], s.RootQ[lo:hi], int32(column), a.Gradient, a.Square, a.Threshold, a.Rate, a.Floor)
	} else {
		n += k.average(more, values, p, s.S[lo:hi], s.Q[lo:hi], int32(column), a.Gradient, a.Square, a.Threshold, a.Rate, a.Floor)
	}
	return index[:n], value[:n]
}

// prefetch describes the rows of two arrays that a product prefetches into level 2.
type prefetch struct {
	s, q        unsafe.Pointer
	size, pitch int // bytes of an element, and from a row to the next
	rows        int
}

func (s *State) prefetch(row, column, rows int) prefetch {
	if s == nil {
		return prefetch{}
	}
	at := row*s.Columns + column
	if s.HalfS != nil {
		return prefetch{unsafe.Pointer(&s.HalfS[at]), unsafe.Pointer(&s.RootQ[at]), 2, 2 * s.Columns, rows}
	}
	return prefetch{unsafe.Pointer(&s.S[at]), unsafe.Pointer(&s.Q[at]), 4, 4 * s.Columns, rows}
}
