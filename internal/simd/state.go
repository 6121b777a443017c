package simd

import "unsafe"

// State is what dual averaging keeps for every code, row-major with so many Columns:
// S, the sum of its gradients, and Q, that of their squares. They are float32, or S
// and √Q are float16 (IEEE 754 binary16), computed with as float32.
//
// Float16 has no room for Q: squares of gradients below 2⁻¹² would be 0, and a code
// −η·S/√Q as large as ε lets it. √Q is of the size of gradients, as S is. It is not 0
// where S is not, since √(q²+g²) rounds to no less than |g|, and never gets smaller,
// since it rounds to no less than q.
type State struct {
	Columns      int
	S, Q         []float32 // nil if they are float16
	HalfS, RootQ []uint16  // nil if they are float32
}

// Rows returns the rows from lo to hi. They share memory with s.
func (s *State) Rows(lo, hi int) State {
	lo, hi = lo*s.Columns, hi*s.Columns
	if s.HalfS != nil {
		return State{Columns: s.Columns, HalfS: s.HalfS[lo:hi], RootQ: s.RootQ[lo:hi]}
	}
	return State{Columns: s.Columns, S: s.S[lo:hi], Q: s.Q[lo:hi]}
}

// Averaging has the numbers of a step of dual averaging.
type Averaging struct {
	Gradient  float32 // of the loss, for a product of 1
	Square    float32 // what a product of 1 adds to Q
	Threshold float32 // tλ
	Rate      float32 // η
	Floor     float32 // 0 for nonnegative codes, −∞ for others
}

// Average takes a step of dual averaging for len(p) elements of row i of s, from a
// column on, and appends the codes that are not zero. P are products of the row's
// residual with atoms. With S and Q those of element column+j, for j < len(p):
//
//	S += Gradient·p[j]
//	Q += Square·p[j]²
//	u = |S| − Threshold
//	a = 0 if u ≤ 0, else −sgn(S)·Rate·u/√(Q+ε)
//	a = max(a, Floor)
//	if a ≠ 0: append column+j to index, a to value
//
// Index and value have capacity for all of p and [Width] more: appending allocates
// nothing, and overwrites what is beyond their length.
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

// prefetch is what a product brings into level 2: so many rows of two arrays.
type prefetch struct {
	s, q        unsafe.Pointer
	size, pitch int // of an element, and from row to row, in bytes
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
