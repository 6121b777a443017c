package explore

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"overcomplete/interpret"
)

// How much of an answer to a question is shown.
const (
	reasons   = 10   // dimensions that have a part in a cosine
	mixed     = 24   // dimensions of several words together
	answers   = 12   // nearest words
	mostAsked = 4000 // bytes of a question
)

// questionAnswer is what a question is about and, unless there is a page for that, the
// answer.
type questionAnswer struct {
	About     string    `json:"about"` // as in [interpret.Question]
	Dimension int       `json:"dimension"`
	Words     []string  `json:"words"`
	Weights   []float64 `json:"weights"`           // of the words
	Without   []int     `json:"without,omitempty"` // dimensions that are switched off
	Unknown   []string  `json:"unknown"`           // words of a text

	Dimensions []mixture `json:"dimensions,omitempty"` // of the words together
	Nearest    []reason  `json:"nearest,omitempty"`

	Total int `json:"total,omitempty"` // texts that a search found; Words are the first
	said
}

// mixture is the value of a dimension in the sum of several words' codes, divided by its
// norm, and each word's part in it.
type mixture struct {
	Dimension int       `json:"dimension"`
	Value     float64   `json:"value"`
	Parts     []float64 `json:"parts"`
}

// reason is a word near to a question, and the dimensions that its cosine is the sum of.
type reason struct {
	neighbour
	Parts  []part  `json:"parts"` // the largest
	Others int     `json:"others"`
	Rest   float64 `json:"rest"` // the sum of the others
}

type part struct {
	Dimension int     `json:"dimension"`
	Part      float64 `json:"part"`
	Value     float64 `json:"value"` // of the word's code
}

// ask answers a question.
func (x *Explorer) ask(question string) (any, error) {
	q, err := x.index.Ask(question, x.labels.current())
	if unknown, ok := errors.AsType[*interpret.UnknownWordError](err); ok {
		return nil, x.unknown(unknown)
	} else if err != nil {
		return nil, badRequest("%v", err)
	}
	a := questionAnswer{About: q.About, Dimension: q.Dimension, Without: q.Without, Words: []string{}, Weights: []float64{}, Unknown: append([]string{}, q.Unknown...)}
	var own []int
	for _, t := range q.Terms {
		a.Words, a.Weights = append(a.Words, x.model.Codes.Words[t.Row]), append(a.Weights, t.Weight)
		own = append(own, t.Row)
		a.add(x, t.Row, false)
	}
	for _, row := range q.Found {
		if q.About == interpret.AboutSearch {
			a.Words, a.Total = append(a.Words, x.model.Codes.Words[row]), q.Total
			a.add(x, row, false)
		}
	}
	if q.About != interpret.AboutSum && q.About != interpret.AboutText {
		return a, nil
	}
	index, value := x.index.Combine(q)
	a.Dimensions = x.mixtures(q.Terms, index, value)
	a.Nearest = []reason{}
	for _, n := range x.index.NearestTo(index, value, answers, own...) {
		r := reason{neighbour: neighbour{x.model.Codes.Words[n.Row], n.Cosine}, Parts: []part{}}
		for i, c := range x.index.Contributions(index, value, n.Row) {
			if i < reasons {
				r.Parts = append(r.Parts, part{c.Dimension, c.Part, c.Values[1]})
			} else {
				r.Others++
				r.Rest += c.Part
			}
		}
		a.Nearest = append(a.Nearest, r)
		a.add(x, n.Row, false)
	}
	return a, nil
}

// completed are words, or ids of texts, that complete what is typed.
type completed struct {
	Words []string `json:"words"`
	said
}

// complete returns the words that begin with a prefix; of texts, ids that do, and those that have
// it in them.
func (x *Explorer) complete(prefix string) (any, error) {
	c := completed{Words: append([]string{}, x.index.Complete(prefix, suggestions)...)}
	if !x.about.Texts {
		return c, nil
	}
	found, _ := x.index.Search(prefix, suggestions)
	for _, row := range found {
		if word := x.model.Codes.Words[row]; len(c.Words) < suggestions && !slices.Contains(c.Words, word) {
			c.Words = append(c.Words, word)
		}
	}
	for _, word := range c.Words {
		row, _ := x.index.Row(word)
		c.add(x, row, false)
	}
	return c, nil
}

// mixtures are the largest values of the sum of terms.
func (x *Explorer) mixtures(terms []interpret.Term, index []int32, value []float32) []mixture {
	norm := 0.0
	order := make([]int, len(index))
	for j, v := range value {
		norm += float64(v) * float64(v)
		order[j] = j
	}
	norm = math.Sqrt(norm)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(max(value[b], -value[b]), max(value[a], -value[a])) })
	found := []mixture{}
	for _, j := range order[:min(mixed, len(order))] {
		m := mixture{int(index[j]), float64(value[j]) / norm, make([]float64, len(terms))}
		for i, t := range terms {
			m.Parts[i] = t.Weight * x.index.Unit(t.Row, m.Dimension) / norm
		}
		found = append(found, m)
	}
	return found
}
