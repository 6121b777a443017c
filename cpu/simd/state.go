package simd

import "unsafe"

// State is what dual averaging keeps of codes of words × atoms, row-major: S and Q
// as float32, or S and √Q as IEEE 754 binary16 numbers, that are computed with as
// float32.
//
// √Q, not Q: it is of the size of gradients, as S is. Squares of gradients below
// 2⁻¹² would vanish, and a code −η·S/√Q be as large as ε lets it; so, where S is not
// 0, √Q is not either, for √(q²+g²) rounds to no less than |g|. Nor does it ever
// round to less than q.
type State struct {
	Columns      int
	S, Q         []float32
	HalfS, RootQ []uint16 // if S and Q are nil
}

// Rows are those from lo to hi.
func (s *State) Rows(lo, hi int) State {
	lo, hi = lo*s.Columns, hi*s.Columns
	if s.HalfS != nil {
		return State{Columns: s.Columns, HalfS: s.HalfS[lo:hi], RootQ: s.RootQ[lo:hi]}
	}
	return State{Columns: s.Columns, S: s.S[lo:hi], Q: s.Q[lo:hi]}
}

// Averaging has the numbers of a step of dual averaging. Threshold is tλ, Floor is 0
// for nonnegative codes and −∞ for others.
type Averaging struct{ Gradient, Square, Threshold, Rate, Floor float32 }

// Average takes dual averaging's step for elements of row i of s, from a column on,
// with products p, and appends those of the code that are not zero. For j < len(p):
//
//	S += Gradient·p[j]
//	Q += Square·p[j]²
//	u = |S| − Threshold
//	a = 0 if u ≤ 0, else −sgn(S)·Rate·u/√(Q+ε)
//	a = max(a, Floor)
//	if a ≠ 0: append column+j to index, a to value
//
// It returns how many it appended, into the room that index and value have beyond
// their length: [Width] elements more than p, of which the rest is undefined.
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

// prefetch is where a product finds S and Q of so many rows: the element size and
// the distance of rows are in bytes.
type prefetch struct {
	s, q              unsafe.Pointer
	size, pitch, rows int
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
