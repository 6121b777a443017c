package eval

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"
)

// features is the design matrix X of a regression, a row per text, stored as the product W·E of
// sparse matrices. Each row of E is the vector of a term; a row of W holds the weights of a text's
// terms. The mean of twenty sparse vectors is dense: X would have ten times the nonzeros of W and E.
type features struct {
	cols  int // columns of X
	terms []term
	// Row i of W has weight[j] in column index[j], for ptr[i] ≤ j < ptr[i+1].
	ptr    []int
	index  []int32
	weight []float64

	class   []int // class of each row of X
	classes int

	known          []bool // by text: whether any of its tokens has a vector
	covered, total int    // number of tokens with a vector, and of all tokens
}

// A term is a word vector that is added to rows of X at an offset.
type term struct {
	vector
	offset int
}

// A termKey identifies a term: the row of its vector and its position in concatenated features.
type termKey struct{ row, position int }

// newFeatures returns the features of a task's texts. It returns an error if a feature isn't finite.
func newFeatures(r *Representation, t *classification) (*features, error) {
	x := &features{cols: r.cols, ptr: []int{0}, classes: len(t.classes)}
	if t.concatenate {
		x.cols *= len(t.texts[0].tokens)
	}
	ids := map[termKey]int32{}
	row := make([]float64, x.cols)
	for _, text := range t.texts {
		first := len(x.index)
		columns := map[int32]int{} // positions in index of this text's terms
		for position, token := range text.tokens {
			x.total++
			word, ok := r.find(token)
			if !ok {
				continue
			}
			x.covered++
			key := termKey{row: word}
			if t.concatenate {
				key.position = position
			}
			id, ok := ids[key]
			if !ok {
				id = int32(len(x.terms))
				ids[key] = id
				x.terms = append(x.terms, term{r.vector(word), key.position * r.cols})
			}
			if j, repeated := columns[id]; repeated {
				x.weight[j]++
				continue
			}
			columns[id] = len(x.index)
			x.index, x.weight = append(x.index, id), append(x.weight, 1)
		}
		clear(row)
		for j := first; j < len(x.index); j++ {
			x.terms[x.index[j]].addTo(row, x.weight[j])
		}
		norm := floats.Norm(row, 2)
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return nil, fmt.Errorf("features of the text %q are not finite", strings.Join(text.tokens, " "))
		}
		if norm > 0 {
			floats.Scale(1/norm, x.weight[first:])
		}
		x.ptr = append(x.ptr, len(x.index))
		x.class = append(x.class, t.classes[text.label])
		x.known = append(x.known, len(x.index) > first)
	}
	return x, nil
}

// addTo adds s times the term to a row of X.
func (t term) addTo(row []float64, s float64) { t.vector.addTo(row[t.offset:], s) }

// times computes z, the product of the term and w. The matrix w has a row of len(z) values for each column of X.
func (t term) times(w, z []float64) {
	n := len(z)
	w = w[t.offset*n:]
	if n == 1 {
		z[0] = t.dot(w)
		return
	}
	clear(z)
	value := t.value[:len(t.index)]
	for i, j := range t.index {
		v := float64(value[i])
		row := w[int(j)*n:][:n]
		for k, x := range row {
			z[k] += v * x
		}
	}
}

// addOuter adds the outer product of the term and z to w. The shape of w is the same as in times.
func (t term) addOuter(w, z []float64) {
	n := len(z)
	w = w[t.offset*n:]
	if n == 1 {
		t.vector.addTo(w, z[0])
		return
	}
	value := t.value[:len(t.index)]
	for i, j := range t.index {
		v := float64(value[i])
		row := w[int(j)*n:][:n]
		for k, z := range z {
			row[k] += v * z
		}
	}
}
