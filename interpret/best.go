package interpret

import "slices"

// best keeps the n first elements, in the order of compare, of those it is given.
// Elements that compare as equal are kept as they come, so that compare should
// tell all apart.
type best[T any] struct {
	n        int
	compare  func(a, b T) int
	elements []T
	full     bool // elements[n-1] is the last of n in order
}

// add takes O(log n) on average: elements are sorted when twice as many as wanted
// have gathered.
func (b *best[T]) add(e T) {
	if b.n <= 0 || b.full && b.compare(e, b.elements[b.n-1]) >= 0 {
		return
	}
	b.elements = append(b.elements, e)
	if len(b.elements)/2 == b.n {
		b.sorted()
		b.full = true
	}
}

// sorted returns what is kept, first element first.
func (b *best[T]) sorted() []T {
	slices.SortFunc(b.elements, b.compare)
	b.elements = b.elements[:min(max(b.n, 0), len(b.elements))]
	return b.elements
}
