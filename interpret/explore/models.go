package explore

import (
	"context"
	"math"
	"slices"
	"sync"

	"overcomplete/internal/parallel"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// comparedWords is the number of words over which the dimensions of two models are compared: the
// first ones of both, which are the most frequent ones in most files.
const comparedWords = 20_000

// maxAtoms is the number of atoms up to which they are matched one to one, which takes seconds. The
// time grows with the cube.
const maxAtoms = 4000

// similarAtoms is the cosine from which the page calls two atoms alike.
const similarAtoms = 0.7

// matches are the dimensions of two models that correspond to each other.
type matches struct {
	Words int               `json:"words"` // that the dimensions were compared over
	Atoms bool              `json:"atoms"` // atoms were compared instead, and matched one to one
	First []interpret.Match `json:"first"` // the best match in the second model of each dimension of the first
	Other []interpret.Match `json:"other"` // the same of the second model
}

// compareWith adds the second model. The matches are computed in the background.
func (x *Explorer) compareWith(other *Explorer) {
	x.about.Other = &otherModel{other.about.Name, otherPath[1:] + "/"}
	other.about.Other = &otherModel{x.about.Name, "../"}
	x.matches = sync.OnceValue(func() matches {
		a, b := x.model, other.model
		atoms := max(a.Dictionary.Len(), b.Dictionary.Len())
		// The largest cosine of n random atoms is about √(2 ln n/dim). Below, cosines say nothing.
		if sameSpace(a, b) && atoms <= maxAtoms && math.Sqrt(2*math.Log(float64(atoms))/float64(a.Dictionary.Dim)) < similarAtoms {
			return matchAtoms(&a.Dictionary, &b.Dictionary)
		}
		return matchValues(x.index, other.index, comparedWords)
	})
	other.matches = func() matches {
		m := x.matches()
		return matches{Words: m.Words, Atoms: m.Atoms, First: m.Other, Other: m.First}
	}
	go x.matches()
}

// sameSpace reports whether the atoms of two models can be compared: both are of the recipe best,
// whose atoms have the signs of the words that they are initialised from, and learned from the same
// vectors or one from the other.
func sameSpace(a, b *model.Model) bool {
	first, isFirst := a.Info.Training.Recipe.(model.Best)
	second, isSecond := b.Info.Training.Recipe.(model.Best)
	if a.Dictionary.Dim != b.Dictionary.Dim || !isFirst || !isSecond {
		return false
	}
	like := func(best model.Best, other *model.Model) bool {
		return best.Like != "" && best.Like == vectors.SHA256(other.Dictionary.Atoms)
	}
	input := a.Info.Training.Input.SHA256
	return input != "" && input == b.Info.Training.Input.SHA256 || like(first, b) || like(second, a)
}

func matchAtoms(a, b *model.Dictionary) matches {
	first, err := interpret.MatchAtoms(context.Background(), a.Atoms, b.Atoms, a.Dim)
	if err != nil {
		panic(err) // the dimensions are equal, and the context is never cancelled
	}
	m := matches{Atoms: true, First: first, Other: slices.Repeat([]interpret.Match{{Dimension: -1}}, b.Len())}
	for k, match := range first {
		if match.Dimension >= 0 {
			m.Other[match.Dimension] = interpret.Match{Dimension: k, Cosine: match.Cosine}
		}
	}
	return m
}

// matchValues compares each dimension of a with each of b by the cosine of their values over the first
// n words that both have. The best match has the largest absolute cosine.
func matchValues(a, b *interpret.Index, n int) matches {
	const none = -1
	rowOf := make([]int, a.Codes.Rows) // of the words of a in b
	m := matches{
		First: slices.Repeat([]interpret.Match{{Dimension: none}}, a.Codes.Cols),
		Other: slices.Repeat([]interpret.Match{{Dimension: none}}, b.Codes.Cols),
	}
	squares := make([]float64, b.Codes.Cols)
	for i, w := range a.Codes.Words {
		rowOf[i] = none
		first, _ := a.Row(w)
		row, ok := b.Row(w)
		if !ok || b.Codes.Words[row] != w || m.Words == n || first != i {
			continue
		}
		rowOf[i] = row
		m.Words++
		code := b.Code(row)
		for j, k := range code.Index {
			squares[k] += float64(code.Value[j]) * float64(code.Value[j])
		}
	}
	var merging sync.Mutex
	parallel.Each(context.Background(), a.Codes.Cols, func(k int) {
		products := make([]float64, b.Codes.Cols)
		own := 0.0
		rows, values := a.Dimension(k)
		for j, i := range rows {
			if rowOf[i] == none {
				continue
			}
			v := float64(values[j])
			own += v * v
			code := b.Code(rowOf[i])
			for l, other := range code.Index {
				products[other] += v * float64(code.Value[l])
			}
		}
		merging.Lock()
		defer merging.Unlock()
		for l, product := range products {
			if product != 0 {
				cosine := product / math.Sqrt(own*squares[l])
				improve(&m.First[k], interpret.Match{Dimension: l, Cosine: cosine})
				improve(&m.Other[l], interpret.Match{Dimension: k, Cosine: cosine})
			}
		}
	})
	return m
}

// improve replaces a match by a better one. Of equal ones the lower dimension is better.
func improve(best *interpret.Match, m interpret.Match) {
	a, b := math.Abs(m.Cosine), math.Abs(best.Cosine)
	if best.Dimension < 0 || a > b || a == b && m.Dimension < best.Dimension {
		*best = m
	}
}
