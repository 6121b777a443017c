package interpret

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"overcomplete/internal/text"
)

// Kinds of queries.
const (
	QueryDimension = "dimension"  // the number of a dimension, also after "#" or "dimension", or the label of a dimension
	QueryWords     = "words"      // one word, or two to four words to compare, such as bank river
	QuerySum       = "arithmetic" // a sum of words, such as king - man + woman
	QueryText      = "text"       // a text in quotes, or of five words or more
	QuerySearch    = "search"     // words to search for in texts
)

// maxCompared is the largest number of words that a query compares. More words are a text.
const maxCompared = 4

// A Query is a parsed query.
type Query struct {
	Kind      string
	Dimension int      // for QueryDimension: number of the dimension
	Terms     []Term   // distinct words
	Without   []int    // dimensions that a sum excludes: bank - #13
	Unknown   []string // for QueryText: words that the vocabulary lacks; for QuerySearch: words that no text contains
	Rows      []int    // for QuerySearch: the best texts, see [Index.Search]
	Total     int      // for QuerySearch: number of texts with all words
	Matched   []string // for QuerySearch: words that texts contain, except common words
	Quoted    bool     // for QuerySearch: the query is in quotes
}

// A Term is a word of a query.
type Term struct {
	Row    int
	Weight float64 // number of times that it is added, minus the number of times that it is subtracted
}

// An UnknownIDError reports a word that the vocabulary lacks, or a query that no text matches.
type UnknownIDError struct {
	ID      string
	Closest []string // words with a similar spelling
	Texts   int      // number of texts that match; if positive, Closest holds the ids of the first
}

func (e *UnknownIDError) Error() string {
	closest := "no word has a similar spelling"
	if len(e.Closest) > 0 {
		closest = "similar words: " + strings.Join(e.Closest, ", ")
	}
	if e.Texts > 0 {
		return fmt.Sprintf("%d texts match %.100q; name one by its id, such as %s", e.Texts, e.ID, strings.Join(e.Closest, ", "))
	}
	return fmt.Sprintf("no word %.100q in the model; %s", e.ID, closest)
}

// maxSuggestions is the largest number of words that an UnknownIDError suggests.
const maxSuggestions = 10

// Find returns the row of a word as [Index.Row] does. If there is no such row, and only one text contains all words of
// the argument, Find returns the row of that text. The error is an [*UnknownIDError].
func (x *Index) Find(word string) (row int, err error) {
	if row, ok := x.Row(word); ok {
		return row, nil
	}
	unknown := &UnknownIDError{ID: word}
	if x.Codes.Texts != nil {
		found := x.Search(word, maxSuggestions)
		if found.Total == 1 {
			return found.Rows[0], nil
		}
		unknown.Texts = found.Total
		for _, row := range found.Rows[:min(found.Total, len(found.Rows))] {
			unknown.Closest = append(unknown.Closest, x.Codes.IDs[row])
		}
	}
	if unknown.Texts == 0 {
		unknown.Closest = text.Closest(word, x.Codes.IDs, maxSuggestions)
	}
	return 0, unknown
}

// Parse parses a query: a word, several words, their sum and difference, a text, or a dimension.
//
// Parse looks up words as [Index.Row] does, first with and then without the punctuation around them. A word of the
// vocabulary may contain spaces or a minus. A term such as "- #13" excludes dimension 13 from the sum. If rows are
// texts, words are their ids, and any other query, or one in quotes, is a search ([Index.Search]). For an unknown word
// the error is an [*UnknownIDError].
func (x *Index) Parse(query string, labels Labels) (Query, error) {
	query = strings.TrimSpace(query)
	if query == "" {
		return Query{}, errors.New("the query is empty")
	}
	if row, ok := x.Row(query); ok {
		return Query{Kind: QueryWords, Terms: []Term{{row, 1}}}, nil
	}
	if k, ok := x.parseDimension(query, labels); ok {
		return Query{Kind: QueryDimension, Dimension: k}, nil
	}
	tokens := x.tokens(query)
	sum := slices.ContainsFunc(tokens, isOperator)
	text, quoted := trimQuotes(query)
	whole := quoted && len(text) < len(strings.TrimLeft(query, quotes)) && !strings.ContainsAny(text, quotes)
	switch {
	case x.Codes.Texts != nil && (whole || !sum || !x.allKnown(tokens)):
		q, err := x.parseSearch(text)
		q.Quoted = whole
		return q, err
	case quoted:
		return x.parseText(strings.Fields(text))
	case sum:
		return x.parseSum(tokens)
	case len(tokens) > maxCompared:
		return x.parseText(tokens)
	}
	q := Query{Kind: QueryWords}
	for _, token := range tokens {
		row, ok := x.lookup(token)
		if !ok {
			_, err := x.Find(token)
			return q, err
		}
		q.add(row, 1)
	}
	return q, nil
}

// parseDimension returns the dimension that a number or label names.
func (x *Index) parseDimension(name string, labels Labels) (k int, ok bool) {
	number := strings.TrimPrefix(name, "#")
	if first, rest, found := strings.Cut(name, " "); found && strings.EqualFold(first, "dimension") {
		number = strings.TrimSpace(rest)
	}
	if k, err := strconv.Atoi(number); err == nil && k >= 0 && k < x.Codes.Cols {
		return k, true
	}
	for _, l := range labels {
		if !l.Topic && l.Name != "" && strings.EqualFold(l.Name, name) {
			return l.ID, true
		}
	}
	return 0, false
}

// parseExcluded returns the dimension of a token such as #13, unless the token is a word of the vocabulary.
func (x *Index) parseExcluded(token string) (k int, ok bool) {
	number, marked := strings.CutPrefix(token, "#")
	n, err := strconv.ParseUint(number, 10, 31)
	_, word := x.Row(token)
	return int(n), marked && err == nil && !word
}

const quotes = `"“”„«»`

// trimQuotes removes quotation marks around a text that begins with one.
func trimQuotes(s string) (text string, quoted bool) {
	if !strings.ContainsRune(quotes, []rune(s)[0]) {
		return s, false
	}
	return strings.Trim(s, quotes), true
}

const operators = "+-−–"

func isOperator(token string) bool {
	r, n := utf8.DecodeRuneInString(token)
	return n == len(token) && strings.ContainsRune(operators, r)
}

// spaceOperators separates operators from words.
var spaceOperators = strings.NewReplacer("+", " + ", "-", " - ", "−", " − ", "–", " – ")

// tokens splits a query at white space, and at operators between words of the vocabulary.
func (x *Index) tokens(query string) []string {
	var tokens []string
	for _, field := range strings.Fields(query) {
		parts := strings.Fields(spaceOperators.Replace(field))
		if _, known := x.lookup(field); known || !x.allKnown(parts) {
			parts = []string{field}
		}
		tokens = append(tokens, parts...)
	}
	return tokens
}

// allKnown reports whether all tokens are operators, words, or dimensions to exclude.
func (x *Index) allKnown(tokens []string) bool {
	return !slices.ContainsFunc(tokens, func(token string) bool {
		_, word := x.lookup(token)
		_, dimension := x.parseExcluded(token)
		return !word && !dimension && !isOperator(token)
	})
}

// lookup returns the row of a word, first with and then without the punctuation around it.
func (x *Index) lookup(token string) (row int, ok bool) {
	if row, ok = x.Row(token); ok {
		return row, true
	}
	return x.Row(strings.TrimFunc(token, func(r rune) bool { return unicode.IsPunct(r) && !strings.ContainsRune(operators, r) }))
}

// add adds weight to the term of a row. If q lacks the term, it appends the term.
func (q *Query) add(row int, weight float64) {
	i := slices.IndexFunc(q.Terms, func(t Term) bool { return t.Row == row })
	if i < 0 {
		q.Terms = append(q.Terms, Term{row, weight})
	} else {
		q.Terms[i].Weight += weight
	}
}

func (x *Index) parseSum(tokens []string) (Query, error) {
	q := Query{Kind: QuerySum}
	weight, wantTerm := 1.0, true
	for i, token := range tokens {
		if isOperator(token) {
			if wantTerm && i > 0 {
				return q, fmt.Errorf("no word between %s and %s", tokens[i-1], token)
			}
			weight, wantTerm = 1, true
			if token != "+" {
				weight = -1
			}
			continue
		}
		if !wantTerm {
			return q, fmt.Errorf("no + or − between %.100q and %.100q", tokens[i-1], token)
		}
		wantTerm = false
		row, known := x.lookup(token)
		k, excluded := x.parseExcluded(token)
		switch {
		case excluded && weight > 0:
			return q, fmt.Errorf("dimension %s can be subtracted from words, but not added to them", token)
		case excluded && k >= x.Codes.Cols:
			return q, fmt.Errorf("no dimension %s (want 0 to %d)", token, x.Codes.Cols-1)
		case excluded:
			q.Without = append(q.Without, k)
		case known:
			q.add(row, weight)
		default:
			_, err := x.Find(token)
			return q, err
		}
	}
	if len(q.Terms) == 0 && len(q.Without) > 0 {
		return q, errors.New("no word to subtract the dimension from")
	}
	if wantTerm {
		return q, fmt.Errorf("no word after the last %s", tokens[len(tokens)-1])
	}
	return q, nil
}

func (x *Index) parseText(tokens []string) (Query, error) {
	q := Query{Kind: QueryText}
	for _, token := range tokens {
		row, ok := x.lookup(token)
		if !ok {
			row, ok = x.lookup(strings.Trim(token, operators)) // the text may contain dashes
		}
		if ok {
			q.add(row, 1)
		} else if strings.ContainsFunc(token, unicode.IsLetter) || strings.ContainsFunc(token, unicode.IsDigit) {
			q.Unknown = append(q.Unknown, token)
		}
	}
	if len(q.Terms) == 0 {
		return q, errors.New("no word of this text is in the model")
	}
	return q, nil
}

// maxFound is the largest number of texts that a search query lists.
const maxFound = 50

// parseSearch returns the search for the words of a text. If no text contains any of these words, the error suggests
// words or ids of a similar spelling.
func (x *Index) parseSearch(words string) (Query, error) {
	q := x.Search(words, maxFound)
	if len(q.Rows) > 0 {
		return q, nil
	}
	unknown := &UnknownIDError{ID: words, Closest: text.Closest(words, x.Codes.IDs, maxSuggestions)}
	if len(unknown.Closest) == 0 && len(q.Unknown) > 0 {
		unknown.ID = q.Unknown[0]
		unknown.Closest = text.Closest(unknown.ID, x.terms().Words[:x.terms().Single], maxSuggestions)
	}
	return q, unknown
}
