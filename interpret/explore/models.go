package explore

import (
	"slices"
	"sync"

	"overcomplete/interpret"
)

// matchedWords is how many words the dimensions of two models are compared over: the
// first ones that both have, which in most files are the most frequent.
const matchedWords = 20_000

// UseOther makes the page show a second model beside x's: a page of its own, and one for
// both. Which dimensions are alike is computed in the background. Call it before
// [Explorer.Handler], of x alone. Exported pages show one model only.
func (x *Explorer) UseOther(other *Explorer) {
	x.other = other
	x.about.Other, other.about.Other = &otherModel{other.about.Name, beside[1:] + "/"}, &otherModel{x.about.Name, "../"}
	x.matches = sync.OnceValue(func() interpret.Matches {
		return interpret.MatchDimensions(x.index, other.index, matchedWords)
	})
	other.matches = func() interpret.Matches {
		m := x.matches()
		return interpret.Matches{Words: m.Words, First: slices.Clone(m.Other), Other: slices.Clone(m.First)}
	}
	go x.matches()
}
