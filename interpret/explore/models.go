package explore

import (
	"context"
	"math"
	"slices"
	"sync"

	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// matchedWords is how many words the dimensions of two models are compared over: the
// first ones that both have, which in most files are the most frequent.
const matchedWords = 20_000

// mostAtoms is how many atoms are matched one to one, which takes seconds; for more it would be
// minutes.
const mostAtoms = 4000

// likeAtoms is the cosine from which two atoms are said to be alike.
const likeAtoms = 0.7

// UseOther makes the page show a second model beside x's: a page of its own, and one for
// both. Which dimensions are alike is computed in the background. Call it before
// [Explorer.Handler], of x alone. Exported pages show one model only.
func (x *Explorer) UseOther(other *Explorer) {
	x.other = other
	x.about.Other, other.about.Other = &otherModel{other.about.Name, beside[1:] + "/"}, &otherModel{x.about.Name, "../"}
	x.matches = sync.OnceValue(func() interpret.Matches {
		if a, b := x.model, other.model; sameSpace(a, b) && atomsTell(max(a.Dictionary.Len(), b.Dictionary.Len()), a.Dictionary.Dim) {
			if m, err := matchAtoms(&a.Dictionary, &b.Dictionary); err == nil {
				return m
			}
		}
		return interpret.MatchDimensions(x.index, other.index, matchedWords)
	})
	other.matches = func() interpret.Matches {
		m := x.matches()
		return interpret.Matches{Words: m.Words, Atoms: m.Atoms, First: slices.Clone(m.Other), Other: slices.Clone(m.First)}
	}
	go x.matches()
}

// sameSpace reports whether atoms of two models can be compared. They were learned from the same
// vectors, by the recipe best, whose atoms have the signs of the words that they start from; or
// one was trained to be like the other.
func sameSpace(a, b *model.Model) bool {
	first, isFirst := a.Info.Training.Recipe.(model.Best)
	second, isSecond := b.Info.Training.Recipe.(model.Best)
	if a.Dictionary.Dim != b.Dictionary.Dim || !isFirst || !isSecond {
		return false
	}
	like := func(best model.Best, other *model.Model) bool {
		return best.Like != "" && best.Like == vectors.SHA256(other.Dictionary.Atoms)
	}
	from := a.Info.Training.Input.SHA256
	return from != "" && from == b.Info.Training.Input.SHA256 || like(first, b) || like(second, a)
}

// atomsTell reports whether the cosines of n atoms of length dim tell which are alike, and are
// soon there. The largest of n random ones is about √(2 ln n/dim).
func atomsTell(n, dim int) bool {
	return n <= mostAtoms && math.Sqrt(2*math.Log(float64(n))/float64(dim)) < likeAtoms
}

func matchAtoms(a, b *model.Dictionary) (m interpret.Matches, err error) {
	m.Atoms = true
	m.First, err = interpret.MatchAtoms(context.Background(), a.Atoms, b.Atoms, a.Dim)
	m.Other = slices.Repeat([]interpret.Match{{Dimension: -1}}, b.Len())
	for k, match := range m.First {
		if match.Dimension >= 0 {
			m.Other[match.Dimension] = interpret.Match{Dimension: k, Cosine: match.Cosine}
		}
	}
	return m, err
}
