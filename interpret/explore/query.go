package explore

import (
	"errors"
	"slices"
	"strings"

	"overcomplete/interpret"
)

// Lengths of the lists of an answer.
const (
	listedParts = 10   // dimensions of a cosine
	listedSum   = 24   // dimensions of the sum of several words
	answers     = 12   // nearest words
	maxQuery    = 4000 // bytes of a query
)

// queryAnswer is a parsed query and, unless another page shows it, the answer.
type queryAnswer struct {
	Kind      string    `json:"kind"` // see [interpret.Query]
	Dimension int       `json:"dimension"`
	Words     []string  `json:"words"`
	Weights   []float64 `json:"weights"`           // of the words
	Without   []int     `json:"without,omitempty"` // excluded dimensions
	Unknown   []string  `json:"unknown"`           // words of a text

	Dimensions []sumPart `json:"dimensions,omitempty"` // of the sum of the words
	Nearest    []reason  `json:"nearest,omitempty"`

	Total int `json:"total,omitempty"` // number of texts that a search found; Words has the first
	texts
}

// sumPart is the value of a dimension in the sum of several words, divided by the norm of the sum,
// and the part of each word in it.
type sumPart struct {
	Dimension int       `json:"dimension"`
	Value     float64   `json:"value"`
	Parts     []float64 `json:"parts"`
}

// reason is a word that is near to a query, and the dimensions that its cosine is the sum of.
type reason struct {
	neighbour
	Parts  []part  `json:"parts"` // the largest
	Others int     `json:"others"`
	Rest   float64 `json:"rest"` // sum of the others
}

type part struct {
	Dimension int     `json:"dimension"`
	Part      float64 `json:"part"`
	Value     float64 `json:"value"` // in the word's code
}

func (x *Explorer) answerQuery(query string) (any, error) {
	q, err := x.index.Parse(query, x.currentLabels())
	if unknown, ok := errors.AsType[*interpret.UnknownWordError](err); ok {
		return nil, x.notFound(unknown)
	} else if err != nil {
		return nil, badRequest("%v", err)
	}
	a := queryAnswer{Kind: q.Kind, Dimension: q.Dimension, Without: q.Without, Total: q.Total,
		Words: []string{}, Weights: []float64{}, Unknown: append([]string{}, q.Unknown...)}
	var own []int
	for _, t := range q.Terms {
		a.Words, a.Weights = append(a.Words, x.model.Codes.Words[t.Row]), append(a.Weights, t.Weight)
		own = append(own, t.Row)
		a.add(x, t.Row, listedText)
	}
	for _, row := range q.Rows {
		a.Words = append(a.Words, x.model.Codes.Words[row])
		a.add(x, row, listedText)
	}
	if q.Kind != interpret.QuerySum && q.Kind != interpret.QueryText {
		return a, nil
	}
	sum := x.index.Sum(q)
	a.Dimensions = x.sumParts(q.Terms, sum)
	a.Nearest = []reason{}
	for _, n := range x.index.Nearest(sum, answers, own...) {
		r := reason{neighbour: neighbour{x.model.Codes.Words[n.Row], n.Cosine}, Parts: []part{}}
		shared, _ := interpret.Compare(sum, x.index.Code(n.Row))
		for i, c := range shared {
			if i < listedParts {
				r.Parts = append(r.Parts, part{c.Dimension, c.Part, c.Values[1]})
			} else {
				r.Others++
				r.Rest += c.Part
			}
		}
		a.Nearest = append(a.Nearest, r)
		a.add(x, n.Row, listedText)
	}
	return a, nil
}

// sumParts returns the largest values of the sum of terms.
func (x *Explorer) sumParts(terms []interpret.Term, sum interpret.Code) []sumPart {
	codes := make([]interpret.Code, len(terms))
	for i, t := range terms {
		codes[i] = x.index.Code(t.Row)
	}
	norm := sum.Norm()
	parts := []sumPart{}
	for i, w := range sum.Weights() {
		if i == listedSum {
			break
		}
		p := sumPart{w.Dimension, float64(w.Value) / norm, make([]float64, len(terms))}
		for i, t := range terms {
			if v := codes[i].At(w.Dimension); v != 0 {
				p.Parts[i] = t.Weight * float64(v) / (codes[i].Norm() * norm)
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// completions are words, or ids of texts, for what is typed.
type completions struct {
	Words []string `json:"words"`
	texts
}

// complete returns the words that begin with a prefix, whatever their case, in row order. Texts that
// contain it follow.
func (x *Explorer) complete(prefix string) (any, error) {
	codes := x.model.Codes
	c := completions{Words: []string{}}
	for _, w := range codes.Words {
		if len(c.Words) == suggestions {
			break
		}
		if len(w) >= len(prefix) && strings.EqualFold(w[:len(prefix)], prefix) {
			c.Words = append(c.Words, w)
		}
	}
	if !x.about.Texts {
		return c, nil
	}
	found, _ := x.index.Search(prefix, suggestions)
	for _, row := range found {
		if word := codes.Words[row]; len(c.Words) < suggestions && !slices.Contains(c.Words, word) {
			c.Words = append(c.Words, word)
		}
	}
	for _, word := range c.Words {
		row, _ := x.index.Row(word)
		c.add(x, row, listedText)
	}
	return c, nil
}
