package cpu

import "unsafe"

// With float16 sums, S and √Q are kept as IEEE 754 binary16 numbers and computed
// with as float32. √Q, not Q: it is of the size of gradients, as S is. Squares of
// gradients below 2⁻¹² would vanish, and a code −η·S/√Q be as large as ε lets it;
// so, where S is not 0, √Q is not either, for √(q²+g²) rounds to no less than |g|.
// Nor does it ever round to less than q.

// codeSums are S or Q of consecutive words, row after row: as they are, or S and
// √Q as float16.
type codeSums struct {
	single []float32
	half   []uint16
}

func newCodeSums(n int, float16 bool) (s codeSums) {
	if float16 {
		s.half = make([]uint16, n)
		hugePages(s.half)
	} else {
		s.single = make([]float32, n)
		hugePages(s.single)
	}
	return s
}

// rows are those from lo to hi, of the given width.
func (s codeSums) rows(lo, hi, width int) codeSums {
	if s.half != nil {
		return codeSums{half: s.half[lo*width : hi*width]}
	}
	return codeSums{single: s.single[lo*width : hi*width]}
}

// at is where element i is, bytes how long n elements are: for prefetching.
func (s codeSums) at(i int) *byte {
	if s.half != nil {
		return (*byte)(unsafe.Pointer(&s.half[i]))
	}
	return (*byte)(unsafe.Pointer(&s.single[i]))
}

func (s codeSums) bytes(n int) int {
	if s.half != nil {
		return 2 * n
	}
	return 4 * n
}
