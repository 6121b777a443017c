package eval

import (
	"fmt"
	"math"
	"strings"
)

// features is the design matrix X of a regression, a row for each text, kept as
// the product W·E of two sparse matrices: row t of E is the vector of a term, and
// W says how much of each term a text has. The average of twenty sparse vectors is
// dense, so that X would have ten times the nonzeros of W and E, which are all that
// a regression on them costs.
type features struct {
	cols  int // of X
	terms []term
	// Row i of W has weight[j] in the column of[j], for ptr[i] ≤ j < ptr[i+1].
	ptr    []int
	of     []int32
	weight []float64

	label   []int // class of each row
	classes int

	known          []bool // texts with a token that has a vector
	covered, total int    // tokens
}

// A term is the vector of a word and where it begins in a row of X.
type term struct {
	vector
	offset int
}

// A termKey is what tells terms apart: a word's row, or noRow for the mean
// vector, and its place.
type termKey struct{ row, place int }

const noRow = -1

// A layout says how a text's vectors make its features.
type layout int

const (
	averaged layout = iota // the average of the tokens' vectors
	appended               // the vectors of the tokens, of which all texts have as many, side by side
)

// newFeatures makes the features of texts. Vectors with infinities or NaN are an
// error.
func newFeatures(e *evaluation, texts []text, classes int, l layout) (*features, error) {
	x := &features{cols: e.cols, ptr: []int{0}, classes: classes}
	if l == appended && len(texts) > 0 {
		x.cols *= len(texts[0].tokens)
	}
	ids := map[termKey]int32{}
	scratch := make([]float64, x.cols)
	for _, t := range texts {
		counts, keys, n := x.count(e, t, l)
		first := len(x.of)
		for _, key := range keys {
			id, ok := ids[key]
			if !ok {
				id = int32(len(x.terms))
				ids[key] = id
				x.terms = append(x.terms, newTerm(e, key))
			}
			x.of, x.weight = append(x.of, id), append(x.weight, counts[key])
		}
		clear(scratch)
		for j, id := range x.of[first:] {
			x.terms[id].addTo(scratch, x.weight[first+j])
		}
		norm := euclidean(scratch)
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return nil, fmt.Errorf("features of the text %q are not finite", strings.Join(t.tokens, " "))
		}
		s := 1 / float64(max(1, n))
		if !e.Raw {
			s = 1
			if norm > 0 {
				s = 1 / norm
			}
		}
		for j := range x.weight[first:] {
			x.weight[first+j] *= s
		}
		x.ptr = append(x.ptr, len(x.of))
		x.label = append(x.label, t.label)
	}
	return x, nil
}

// count returns how often each term occurs in a text, the terms in the order in
// which they first do, and what to divide by: the number of tokens in an average.
func (x *features) count(e *evaluation, t text, l layout) (counts map[termKey]float64, keys []termKey, n int) {
	counts = map[termKey]float64{}
	known := false
	for i, token := range t.tokens {
		x.total++
		row, ok := e.find(token, e.Case)
		switch {
		case ok:
			x.covered++
			known = true
		case e.OOV == Mean:
			row = noRow
		case e.OOV == Zero:
			n++
			continue
		default:
			continue
		}
		n++
		key := termKey{row: row}
		if l == appended {
			key.place = i
		}
		if counts[key] == 0 {
			keys = append(keys, key)
		}
		counts[key]++
	}
	if l == appended {
		n = 1
	}
	x.known = append(x.known, known)
	return counts, keys, n
}

func newTerm(e *evaluation, key termKey) term {
	t := term{offset: key.place * e.cols}
	if key.row == noRow {
		t.vector = e.mean()
	} else {
		t.vector = e.vector(key.row)
	}
	return t
}

// addTo adds s times the term to a row of X.
func (t term) addTo(row []float64, s float64) { t.vector.addTo(row[t.offset:], s) }

// times sets z to the product of the term with W, which has a row of len(z) for
// each column of X.
func (t term) times(w, z []float64) {
	n := len(z)
	w = w[t.offset*n:]
	if n == 1 {
		z[0] = t.dot(w)
		return
	}
	// Three at a time stay in registers. Two classes have one output, so that there
	// are three or more; the last ones may be computed twice.
	value := t.value[:len(t.index)]
	for k := 0; k < n; k += 3 {
		k := min(k, n-3)
		var a, b, c float64
		for i, j := range t.index {
			v := float64(value[i])
			row := w[int(j)*n+k:][:3]
			a, b, c = a+v*row[0], b+v*row[1], c+v*row[2]
		}
		z[k], z[k+1], z[k+2] = a, b, c
	}
}

// addOuter adds the outer product of the term and z to a matrix like W.
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

func euclidean(x []float64) float64 {
	var squares float64
	for _, v := range x {
		squares += v * v
	}
	return math.Sqrt(squares)
}
