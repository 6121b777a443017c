package explore

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"overcomplete/interpret"
	"overcomplete/interpret/topics"
)

// Lengths of the lists of an answer.
const (
	listedParts = 10   // largest parts of a cosine
	listedSum   = 24   // largest values in the sum of several words
	answers     = 12   // nearest words
	maxQuery    = 4000 // bytes of a query

	completionText = 100 // characters of a text that matches a query
)

// A queryAnswer is a parsed query and its answer. The answer is empty if the page of a word, of a comparison or of a
// dimension shows it.
type queryAnswer struct {
	Kind      string    `json:"kind"` // see [interpret.Query]
	Dimension int       `json:"dimension"`
	Words     []string  `json:"words"`
	Weights   []float64 `json:"weights"`           // weights of the words
	Without   []int     `json:"without,omitempty"` // excluded dimensions
	Unknown   []string  `json:"unknown"`           // unknown words of a text, or of a search

	Dimensions []sumPart `json:"dimensions,omitempty"` // dimensions of the sum of the words
	Nearest    []reason  `json:"nearest,omitempty"`

	Total    int         `json:"total,omitempty"`    // number of texts with all words of a search; Words has the best ids
	Matched  []string    `json:"matched,omitempty"`  // words of a search that occur in texts, except common words
	Matching []pair      `json:"matching,omitempty"` // dimensions of the texts found
	Topics   []found     `json:"topics,omitempty"`   // broad topics of the texts with all words, largest first
	Of       []topics.ID `json:"of,omitempty"`       // narrowest topic of each text in Words
	Failure  string      `json:"failure,omitempty"`  // error of [Options.Embed]
	texts
}

// A found counts the texts of one topic among the texts that a search found.
type found struct {
	Topic topics.ID `json:"topic"`
	Texts int       `json:"texts"`
}

// A sumPart is the value of a dimension in the sum of several words, divided by the norm of the sum. Parts holds
// the term of each word.
type sumPart struct {
	Dimension int       `json:"dimension"`
	Value     float64   `json:"value"`
	Parts     []float64 `json:"parts"`
}

// A reason is a neighbour of a query, with the parts of its cosine.
type reason struct {
	neighbour
	Parts  []part  `json:"parts"`  // largest parts
	Others int     `json:"others"` // number of other parts
	Rest   float64 `json:"rest"`   // sum of the other parts

	Steered []part `json:"steered,omitempty"` // parts of steered dimensions, which the score adds to the cosine
}

type part struct {
	Dimension int     `json:"dimension"`
	Part      float64 `json:"part"`
	Value     float64 `json:"value"` // value of the dimension in the word's code
}

// answerQuery answers a query. The nearest words are in decreasing order of their steered scores, see
// [interpret.Code.Steer].
func (x *Explorer) answerQuery(query, steer string) (a queryAnswer, err error) {
	steering, err := x.parseSteering(steer)
	if err != nil {
		return a, err
	}
	q, err := x.index.Parse(query, x.currentLabels())
	embeds := x.options.Embed != nil && q.Kind == interpret.QuerySearch // even if no text contains words of the query
	if err != nil && !embeds {
		return a, x.requestError(err)
	}
	a = queryAnswer{Kind: q.Kind, Dimension: q.Dimension, Without: q.Without, Total: q.Total, Matched: q.Matched,
		Words: []string{}, Weights: []float64{}, Unknown: append([]string{}, q.Unknown...)}
	var own []int
	for _, t := range q.Terms {
		a.Words, a.Weights = append(a.Words, x.model.Codes.IDs[t.Row]), append(a.Weights, t.Weight)
		own = append(own, t.Row)
		a.add(x, t.Row, nil)
	}
	if q.Kind == interpret.QuerySearch {
		a.Matching = x.matching(q.Rows)
		for _, row := range q.Rows {
			a.Words = append(a.Words, x.model.Codes.IDs[row])
			a.addHit(x, row, q.Matched, listedText)
		}
		if x.summary.Themes > 0 {
			a.Topics, a.Of = x.topicsOf(query, q)
		}
	}
	var sum interpret.Code
	switch {
	case embeds:
		if sum, err = x.options.Embed(x.model, query); err != nil {
			a.Failure = err.Error()
			return a, nil
		}
	case len(q.Terms) == 0 || q.Kind == interpret.QueryWords && steering == nil:
		return a, nil
	default:
		sum = x.index.Sum(q)
		a.Dimensions = x.sumParts(q.Terms, sum)
	}
	a.Nearest = []reason{}
	for _, n := range x.index.Nearest(sum.Steer(steering...), answers, own...) {
		code := x.index.Code(n.Row)
		shared, _ := interpret.Compare(sum, code)
		r := reason{neighbour: neighbour{Word: x.model.Codes.IDs[n.Row]}, Parts: []part{}}
		for _, w := range steering {
			value := float64(code.At(w.Dimension)) / code.Norm()
			r.Steered = append(r.Steered, part{w.Dimension, float64(w.Value) * value, value})
		}
		for i, c := range shared {
			r.Cosine += c.Part
			if i < listedParts {
				r.Parts = append(r.Parts, part{c.Dimension, c.Part, c.Values[1]})
			} else {
				r.Others++
				r.Rest += c.Part
			}
		}
		a.Nearest = append(a.Nearest, r)
		a.addHit(x, n.Row, q.Matched, listedText)
	}
	return a, nil
}

// topicsOf counts, by topic, the texts that contain all words of a search. If no text contains all of them, it counts
// the best texts. It also returns the narrowest topic of each of the best texts.
func (x *Explorer) topicsOf(query string, q interpret.Query) (counts []found, of []topics.ID) {
	table := x.topics().table
	for _, row := range q.Rows {
		of = append(of, narrowest(table, row))
	}
	rows := q.Rows
	if q.Total > len(rows) {
		rows = x.index.Search(query, q.Total).Rows
	} else if q.Total > 0 {
		rows = rows[:q.Total]
	}
	for _, row := range rows {
		id := table.Rows[row]
		if id == topics.None {
			continue
		}
		i := slices.IndexFunc(counts, func(f found) bool { return f.Topic == id })
		if i < 0 {
			i, counts = len(counts), append(counts, found{Topic: id})
		}
		counts[i].Texts++
	}
	slices.SortStableFunc(counts, func(a, b found) int { return cmp.Compare(b.Texts, a.Texts) })
	return counts, of
}

const (
	maxSteered  = 100       // number of dimensions that a request can steer by
	maxSteering = 1_000_000 // largest absolute weight, so that scores don't overflow
)

// parseSteering parses weights of dimensions: 17:0.5,203:-0.8.
func (x *Explorer) parseSteering(steer string) (weights []interpret.Weight, err error) {
	if steer == "" {
		return nil, nil
	}
	for i, item := range strings.Split(steer, ",") {
		dimension, value, _ := strings.Cut(item, ":")
		k, err := strconv.Atoi(dimension)
		weight, invalid := strconv.ParseFloat(value, 32)
		if err != nil || invalid != nil || i == maxSteered || !(math.Abs(weight) <= maxSteering) {
			return nil, badRequest("malformed steer (got %.100q, want up to %d dimensions with weights from -%d to %[3]d, such as 17:0.5,203:-0.8)", steer, maxSteered, maxSteering)
		}
		if slices.ContainsFunc(weights, func(w interpret.Weight) bool { return w.Dimension == k }) {
			return nil, badRequest("malformed steer (dimension %d has two weights in %.100q)", k, steer)
		}
		if err := x.checkDimension(k); err != nil {
			return nil, err
		}
		weights = append(weights, interpret.Weight{Dimension: k, Value: float32(weight)})
	}
	return weights, nil
}

// sumParts returns the largest values of the sum of terms, in decreasing order of absolute value.
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

// completions lists words or ids of texts that complete a prefix.
type completions struct {
	Words []string `json:"words"`
	texts
}

// complete returns the first words in row order that begin with a prefix, ignoring case. If rows are texts, ids of
// texts that contain the words of the prefix follow.
func (x *Explorer) complete(prefix string) (any, error) {
	codes := x.model.Codes
	c := completions{Words: []string{}}
	for _, w := range codes.IDs {
		if len(c.Words) == suggestions {
			break
		}
		if len(w) >= len(prefix) && strings.EqualFold(w[:len(prefix)], prefix) {
			c.Words = append(c.Words, w)
		}
	}
	if !x.summary.Texts {
		return c, nil
	}
	found := x.index.Search(prefix, suggestions)
	for _, row := range found.Rows {
		if word := codes.IDs[row]; len(c.Words) < suggestions && !slices.Contains(c.Words, word) {
			c.Words = append(c.Words, word)
		}
	}
	for _, word := range c.Words {
		row, _ := x.index.Row(word)
		c.addHit(x, row, found.Matched, completionText)
	}
	return c, nil
}
