package eval

import (
	"math"
	"slices"
	"strings"

	"overcomplete/vectors"
)

// A Representation is a set of word vectors to evaluate: V rows of K columns, sparse or dense.
type Representation struct {
	Name string
	cols int // K
	rows map[string]int
	// row returns the columns of a row that may be nonzero, in increasing order, and their values.
	row func(i int) (index []int32, value []float32)
}

// NewDense returns a representation by dense vectors. A repeated word has the vector of its first row.
func NewDense(name string, d *vectors.Dense) *Representation {
	all := make([]int32, d.Dim)
	for j := range all {
		all[j] = int32(j)
	}
	return newRepresentation(name, d.IDs, d.Dim, func(i int) ([]int32, []float32) { return all, d.Row(i) })
}

// NewSparse returns a representation by sparse vectors. A repeated word has the vector of its first row.
func NewSparse(name string, s *vectors.Sparse) *Representation {
	return newRepresentation(name, s.IDs, s.Cols, s.Row)
}

func newRepresentation(name string, words []string, cols int, row func(int) ([]int32, []float32)) *Representation {
	r := &Representation{name, cols, make(map[string]int, len(words)), row}
	for i, w := range slices.Backward(words) { // the first row of a repeated word
		r.rows[w] = i
	}
	return r
}

func (r *Representation) find(token string) (row int, ok bool) {
	if row, ok = r.rows[token]; !ok {
		row, ok = r.rows[strings.ToLower(token)]
	}
	return row, ok
}

func (r *Representation) vector(row int) vector {
	index, value := r.row(row)
	return vector{index, value}
}

// A vector holds the nonzeros of a row.
type vector struct {
	index []int32
	value []float32
}

// dot returns ⟨v, w⟩ with a dense w.
func (v vector) dot(w []float64) float64 {
	sum := 0.0
	value := v.value[:len(v.index)]
	for i, j := range v.index {
		sum += float64(value[i]) * w[j]
	}
	return sum
}

func (v vector) addTo(w []float64, s float64) {
	value := v.value[:len(v.index)]
	for i, j := range v.index {
		w[j] += s * float64(value[i])
	}
}

func (v vector) inner(u vector) float64 {
	var sum float64
	for i, j := 0, 0; i < len(v.index) && j < len(u.index); {
		switch a, b := v.index[i], u.index[j]; {
		case a < b:
			i++
		case a > b:
			j++
		default:
			sum += float64(v.value[i]) * float64(u.value[j])
			i, j = i+1, j+1
		}
	}
	return sum
}

// cosine returns the cosine of v and u, or 0 if v or u is zero.
func (v vector) cosine(u vector) float64 {
	// The products of binary vectors are integers. Equal products give bitwise equal cosines, which
	// share a rank.
	norms := math.Sqrt(v.inner(v) * u.inner(u))
	if norms == 0 {
		return 0
	}
	return v.inner(u) / norms
}
