package interpret

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// What a question is about.
const (
	AboutDimension = "dimension" // its number after "dimension" or "#", alone if that is no word, or its label
	AboutWord      = "word"
	AboutWords     = "words"      // two to four, to compare: bank river
	AboutSum       = "arithmetic" // king - man + woman
	AboutText      = "text"       // in quotes, or of more words
	AboutSearch    = "search"     // of rows that are texts: those that have it in them
)

// mostCompared is how many words are compared at most: more are a text.
const mostCompared = 4

// A Question is what somebody typed, understood.
type Question struct {
	About     string
	Dimension int      // if it is about one
	Terms     []Term   // its words otherwise, each once
	Without   []int    // dimensions that are switched off in their sum: bank - #13
	Unknown   []string // words of a text that the vocabulary does not have
	Found     []int    // the first rows that a search found
	Total     int      // and how many there are
}

// A Term is a word of a question.
type Term struct {
	Row    int
	Weight float64 // how often it is there, less how often it is taken away
}

// An UnknownWordError reports a word that the vocabulary does not have.
type UnknownWordError struct{ Word string }

func (e *UnknownWordError) Error() string { return fmt.Sprintf("no word %.100q in the model", e.Word) }

// Ask understands a question about a word, several words, their sum and difference, a text
// or a dimension. Words are found as [Index.Row] does it, and if need be without the
// punctuation around them. A dimension's number after "#" can be taken away from words, too: their
// code counts without it then. What is a word as a whole, with spaces or a minus in it, is that
// word. Of rows that are texts, words are their ids, and anything else is searched for in the
// texts: see [Index.Search]. The error is an [*UnknownWordError] if it is about one word.
func (x *Index) Ask(question string, labels Labels) (Question, error) {
	question = strings.TrimSpace(question)
	if question == "" {
		return Question{}, errors.New("there is no question")
	}
	if row, ok := x.Row(question); ok {
		return Question{About: AboutWord, Terms: []Term{{row, 1}}}, nil
	}
	if k, ok := x.dimensionNamed(question, labels); ok {
		return Question{About: AboutDimension, Dimension: k}, nil
	}
	tokens := x.tokens(question)
	sum := slices.ContainsFunc(tokens, isOperator)
	if x.Codes.Texts != nil && !(sum && x.knows(tokens)) {
		return x.search(question)
	}
	if text, ok := quoted(question); ok {
		return x.text(strings.Fields(text))
	}
	if sum {
		return x.arithmetic(tokens)
	}
	if len(tokens) > mostCompared {
		return x.text(tokens)
	}
	var q Question
	for _, token := range tokens {
		row, ok := x.find(token)
		if !ok {
			return q, &UnknownWordError{token}
		}
		q.add(row, 1)
	}
	q.About = AboutWords
	if len(q.Terms) == 1 {
		q.About = AboutWord
	}
	return q, nil
}

// knows reports whether all tokens are operators and words.
func (x *Index) knows(tokens []string) bool {
	return !slices.ContainsFunc(tokens, func(token string) bool {
		_, ok := x.find(token)
		_, dimension := x.numbered(token)
		return !ok && !dimension && !isOperator(token)
	})
}

// mostFound is how many rows a search shows.
const mostFound = 50

// search is a question about texts with something in them. If there is one, it is about that.
func (x *Index) search(query string) (Question, error) {
	if text, ok := quoted(query); ok {
		query = text
	}
	q := Question{About: AboutSearch}
	switch q.Found, q.Total = x.Search(query, mostFound); q.Total {
	case 0:
		return q, &UnknownWordError{query}
	case 1:
		q.About = AboutWord
		q.add(q.Found[0], 1)
	}
	return q, nil
}

// dimensionNamed returns the dimension that has this number or label.
func (x *Index) dimensionNamed(name string, labels Labels) (k int, ok bool) {
	number := strings.TrimPrefix(name, "#")
	if first, rest, found := strings.Cut(name, " "); found && strings.EqualFold(first, "dimension") {
		number = strings.TrimSpace(rest)
	}
	if k, err := strconv.Atoi(number); err == nil && k >= 0 && k < x.Codes.Cols {
		return k, true
	}
	for _, l := range labels.List() {
		if l.Name != "" && strings.EqualFold(l.Name, name) {
			return l.Dimension, true
		}
	}
	return 0, false
}

// numbered returns the dimension that a token is the number of, after "#", unless it is a word.
func (x *Index) numbered(token string) (k int, ok bool) {
	number, marked := strings.CutPrefix(token, "#")
	n, err := strconv.ParseUint(number, 10, 31)
	_, word := x.Row(token)
	return int(n), marked && err == nil && !word
}

// quoted returns a text that begins with a quotation mark without those around it.
func quoted(s string) (text string, ok bool) {
	const marks = `"“”„«»`
	return strings.Trim(s, marks), strings.ContainsRune(marks, []rune(s)[0])
}

const operators = "+-−–"

func isOperator(token string) bool {
	runes := []rune(token)
	return len(runes) == 1 && strings.ContainsRune(operators, runes[0])
}

// tokens splits a question at white space, and at operators without any around them: in
// front of a word, and between words where all of them are known and the whole is not.
func (x *Index) tokens(question string) []string {
	var tokens []string
	for _, field := range strings.Fields(question) {
		if _, known := x.find(field); known || isOperator(field) {
			tokens = append(tokens, field)
			continue
		}
		var parts []string
		start, all := 0, true
		for i, r := range field + "+" {
			if !strings.ContainsRune(operators, r) {
				continue
			}
			if part := field[start:i]; part != "" {
				_, known := x.find(part)
				all = all && known
				parts = append(parts, part)
			}
			if i < len(field) {
				parts = append(parts, string(r))
			}
			start = i + len(string(r))
		}
		if !all {
			parts = []string{field}
		}
		tokens = append(tokens, parts...)
	}
	return tokens
}

// find returns the row of a word, if need be without the punctuation around it.
func (x *Index) find(token string) (row int, ok bool) {
	if row, ok = x.Row(token); ok {
		return row, true
	}
	return x.Row(strings.TrimFunc(token, func(r rune) bool { return unicode.IsPunct(r) && !strings.ContainsRune(operators, r) }))
}

// add adds a word to the terms, in which each is once.
func (q *Question) add(row int, weight float64) {
	if i := slices.IndexFunc(q.Terms, func(t Term) bool { return t.Row == row }); i >= 0 {
		q.Terms[i].Weight += weight
	} else {
		q.Terms = append(q.Terms, Term{row, weight})
	}
}

func (x *Index) arithmetic(tokens []string) (Question, error) {
	q := Question{About: AboutSum}
	weight, wanted := 1.0, true // a word comes next
	for i, token := range tokens {
		switch {
		case isOperator(token) && (i == 0 || !wanted):
			weight, wanted = 1, true
			if token != "+" {
				weight = -1
			}
		case isOperator(token):
			return q, fmt.Errorf("there is no word between %s and %s", tokens[i-1], token)
		case !wanted:
			return q, fmt.Errorf("there is no + or − between %.100q and %.100q", tokens[i-1], token)
		default:
			if k, ok := x.numbered(token); ok && weight > 0 {
				return q, fmt.Errorf("dimension %s can be taken away from words, and not be added to them", token)
			} else if ok && k >= x.Codes.Cols {
				return q, fmt.Errorf("no dimension %s: they are 0 to %d", token, x.Codes.Cols-1)
			} else if ok {
				q.Without = append(q.Without, k)
			} else if row, ok := x.find(token); ok {
				q.add(row, weight)
			} else {
				return q, &UnknownWordError{token}
			}
			wanted = false
		}
	}
	if len(q.Terms) == 0 && len(q.Without) > 0 {
		return q, errors.New("there is no word to take the dimension away from")
	}
	if wanted {
		return q, fmt.Errorf("there is no word after the last %s", tokens[len(tokens)-1])
	}
	return q, nil
}

func (x *Index) text(tokens []string) (Question, error) {
	q := Question{About: AboutText}
	for _, token := range tokens {
		if row, ok := x.find(token); ok {
			q.add(row, 1)
		} else if row, ok := x.find(strings.Trim(token, operators)); ok { // a dash, in a text
			q.add(row, 1)
		} else if strings.ContainsFunc(token, unicode.IsLetter) || strings.ContainsFunc(token, unicode.IsDigit) {
			q.Unknown = append(q.Unknown, token)
		}
	}
	if len(q.Terms) == 0 {
		return q, errors.New("the model has none of the words of this text")
	}
	return q, nil
}
