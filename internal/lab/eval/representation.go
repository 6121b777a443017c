package eval

import (
	"math"
	"strings"
	"sync"

	"overcomplete/vectors"
)

// A Representation is the vectors to evaluate: a row for each of V words, with K
// columns.
type Representation struct {
	Name string
	cols int // K
	rows int // V
	word map[string]int
	// row returns the columns that may be other than zero, increasing, and
	// their values.
	row  func(i int) (index []int32, value []float32)
	mean func() vector // of all vectors
}

// NewDense returns a representation of dense vectors, with L columns. If a word is
// there more than once, its first row counts.
func NewDense(name string, d *vectors.Dense) *Representation {
	all := make([]int32, d.Dim)
	for j := range all {
		all[j] = int32(j)
	}
	return newRepresentation(name, d.Words, d.Dim, func(i int) ([]int32, []float32) { return all, d.Row(i) })
}

// NewSparse returns a representation of sparse vectors: row i of codes, V×K, is the
// vector of words[i]. If a word is there more than once, its first row counts.
func NewSparse(name string, s *vectors.Sparse) *Representation {
	return newRepresentation(name, s.Words, s.Cols, s.Row)
}

func newRepresentation(name string, words []string, cols int, row func(int) ([]int32, []float32)) *Representation {
	r := &Representation{Name: name, cols: cols, rows: len(words), word: make(map[string]int, len(words)), row: row}
	for i, w := range words {
		if _, again := r.word[w]; !again {
			r.word[w] = i
		}
	}
	r.mean = sync.OnceValue(r.average)
	return r
}

// find returns the row of a token.
func (r *Representation) find(token string, c Case) (row int, ok bool) {
	if c != Lower {
		if row, ok = r.word[token]; ok || c == Exact {
			return row, ok
		}
	}
	row, ok = r.word[strings.ToLower(token)]
	return row, ok
}

// vector is a row as a task sees it.
type vector struct {
	index []int32
	value []float32
}

func (r *Representation) vector(i int) vector {
	index, value := r.row(i)
	return vector{index, value}
}

func (r *Representation) average() vector {
	sum := make([]float64, r.cols)
	for i := range r.rows {
		r.vector(i).addTo(sum, 1)
	}
	var m vector
	for j, x := range sum {
		if x != 0 {
			m.index, m.value = append(m.index, int32(j)), append(m.value, float32(x/float64(r.rows)))
		}
	}
	return m
}

// dot returns ⟨v, w⟩ with a vector w of all columns.
func (v vector) dot(w []float64) float64 {
	var sum [4]float64 // for the processor to add at the same time
	index, value := v.index, v.value[:len(v.index)]
	i := 0
	for ; i+4 <= len(index); i += 4 {
		j, x := index[i:i+4:i+4], value[i:i+4:i+4]
		sum[0] += float64(x[0]) * w[j[0]]
		sum[1] += float64(x[1]) * w[j[1]]
		sum[2] += float64(x[2]) * w[j[2]]
		sum[3] += float64(x[3]) * w[j[3]]
	}
	for ; i < len(index); i++ {
		sum[0] += float64(value[i]) * w[index[i]]
	}
	return sum[0] + sum[1] + sum[2] + sum[3]
}

// addTo adds s·v to w.
func (v vector) addTo(w []float64, s float64) {
	value := v.value[:len(v.index)]
	for i, j := range v.index {
		w[j] += s * float64(value[i])
	}
}

// inner returns ⟨v, u⟩.
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

// cosine returns the cosine of the angle between v and u, 0 if one is zero.
func (v vector) cosine(u vector) float64 {
	// Of binary vectors all three products are whole numbers: pairs with the same
	// products have the same cosine to the last bit, and share a rank.
	norms := math.Sqrt(v.inner(v) * u.inner(u))
	if norms == 0 {
		return 0
	}
	return v.inner(u) / norms
}
