package cli

import (
	"errors"
	"strconv"
	"strings"

	"overcomplete/internal/printing"
	"overcomplete/interpret"
)

// findRow returns the row of a word, or of the only text that contains it.
func findRow(x *interpret.Index, word string) (int, error) {
	if row, ok := x.Row(word); ok {
		return row, nil
	}
	if err := checkSearch(x); err != nil {
		return 0, err
	}
	row, err := x.Find(word)
	if unknown, ok := errors.AsType[*interpret.UnknownIDError](err); ok {
		return 0, unknownRow(x, unknown)
	}
	return row, err
}

// unknownRow returns the error for an unknown word, with similar words.
func unknownRow(x *interpret.Index, err *interpret.UnknownIDError) error {
	closest := wordList(err.Closest[:min(5, len(err.Closest))], ", ")
	switch {
	case err.Texts > 0:
		return usagef("%d texts match %.100q; name one by its id, such as %s", err.Texts, err.ID, closest)
	case x.Codes.Texts != nil:
		return usagef("%.100q is no id, and no text has all of its words", err.ID)
	case closest == "":
		return usagef("%.100q is not among the %d rows, and none is spelled like it", err.ID, x.Codes.Rows)
	}
	return usagef("%.100q is not among the %d rows; similar ones are %s", err.ID, x.Codes.Rows, closest)
}

// An item is a row in a list. Word is the word or, if rows are texts, the id of the text.
type item struct {
	Word string  `json:"word"`
	Text *string `json:"text,omitempty"` // nil if rows are words; the text may be empty

	excerpt func() string // returns the excerpt that is printed in place of Text
}

// newItem returns the item of a row. Its excerpt prefers sentences with the given words.
func newItem(x *interpret.Index, row int, words ...string) item {
	i := item{Word: x.Codes.IDs[row]}
	if x.Codes.Texts != nil {
		i.Text = &x.Codes.Texts.Text[row]
		i.excerpt = func() string {
			text, _ := x.Excerpt(row, words, shownText)
			return text
		}
	}
	return i
}

// newHit returns the item of a text that a search found. Its excerpt shows the words of the query.
func newHit(x *interpret.Index, row int, words []string) item {
	i := newItem(x, row)
	i.excerpt = func() string { return x.Snippet(row, words, shownText) }
	return i
}

func (i item) String() string {
	word := wordList([]string{i.Word}, "")
	if i.Text == nil || *i.Text == "" {
		return word
	}
	return word + "  " + shortText(i.excerpt(), shownText)
}

// shownText is the number of characters of a text in a list.
const shownText = 100

// shortText returns the first n characters of a text, made safe to print.
func shortText(text string, n int) string {
	runes := []rune(printing.Text(text))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}

// wordList joins words on one line. Words with white space are quoted.
func wordList(words []string, separator string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = printing.Word(word)
		if word == "" || word[0] == '"' || strings.ContainsRune(word, ' ') {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, separator)
}
