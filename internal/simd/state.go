package simd

import "unsafe"

// A State is the state of dual averaging. For each element of the codes, S stores the sum
// of its gradients, and Q the sum of its squared gradients. Both matrices are row-major,
// with Columns elements per row.
type State struct {
	Columns int
	S, Q    []float32
}

// Rows returns the rows from lo to hi, which share memory with s.
func (s *State) Rows(lo, hi int) State {
	lo, hi = lo*s.Columns, hi*s.Columns
	return State{Columns: s.Columns, S: s.S[lo:hi], Q: s.Q[lo:hi]}
}

// Averaging holds the constants of a step of dual averaging.
type Averaging struct {
	Gradient  float32 // gradient of the loss per product
	Square    float32 // increase of Q per squared product
	Threshold float32 // tλ after t epochs, with the weight λ of the codes' L1 norm
	Rate      float32 // the learning rate η
	Floor     float32 // 0 for nonnegative codes, −∞ for others
}

// Average computes a step of dual averaging for len(p) elements of row i of s, from the
// given column on. It appends the nonzero codes to index and value. p holds the products of
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
	n += k.average(more, values, p, s.S[lo:hi], s.Q[lo:hi], int32(column), a.Gradient, a.Square, a.Threshold, a.Rate, a.Floor)
	return index[:n], value[:n]
}

// prefetch describes the rows of two arrays that a product prefetches into the level-2 cache.
type prefetch struct {
	s, q  unsafe.Pointer
	pitch int // bytes from a row to the next
	rows  int
}

func (s *State) prefetch(row, column, rows int) prefetch {
	if s == nil {
		return prefetch{}
	}
	at := row*s.Columns + column
	return prefetch{unsafe.Pointer(&s.S[at]), unsafe.Pointer(&s.Q[at]), 4 * s.Columns, rows}
}
