package interpret

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// questions are asked of these words, in 12 dimensions of which 3 is called "royalty".
func questions() (*Index, Labels) {
	s := newCodes(0, 12)
	s.Words = []string{"king", "man", "woman", "bank", "river", "New York", "x-ray", "7", "money", "the", "well-known", "known"}
	s.Rows = len(s.Words)
	s.Ptr = make([]int64, s.Rows+1)
	return NewIndex(s), Labels{3: {3, "Royalty", ""}, 4: {4, "river", ""}, 5: {5, "", "a note"}}
}

// read writes a question as it was understood.
func read(x *Index, q Question) string {
	if q.About == AboutDimension {
		return fmt.Sprint("dimension ", q.Dimension)
	}
	text := q.About + ":"
	for _, t := range q.Terms {
		text += fmt.Sprintf(" %+g %s", t.Weight, x.Codes.Words[t.Row])
	}
	if len(q.Without) > 0 {
		text += fmt.Sprint(" without ", q.Without)
	}
	if len(q.Unknown) > 0 {
		text += fmt.Sprintf(" %q", q.Unknown)
	}
	return text
}

func TestAsk(t *testing.T) {
	x, labels := questions()
	for question, want := range map[string]string{
		"bank":          "word: +1 bank",
		" Bank ":        "word: +1 bank",
		"bank!":         "word: +1 bank",
		"New York":      "word: +1 New York",
		"x-ray":         "word: +1 x-ray",
		"7":             "word: +1 7",
		"bank bank":     "word: +2 bank",
		"8":             "dimension 8",
		"#7":            "dimension 7",
		"dimension 7":   "dimension 7",
		"Dimension  11": "dimension 11",
		"royalty":       "dimension 3",
		"river":         "word: +1 river", // a word comes before a label

		"bank river":            "words: +1 bank +1 river",
		"bank, river":           "words: +1 bank +1 river",
		"bank river money king": "words: +1 bank +1 river +1 money +1 king",

		"bank - #3":          "arithmetic: +1 bank without [3]",
		"bank - #7 - #11":    "arithmetic: +1 bank without [7 11]",
		"king - man - #0":    "arithmetic: +1 king -1 man without [0]",
		"king - man + woman": "arithmetic: +1 king -1 man +1 woman",
		"king − man + woman": "arithmetic: +1 king -1 man +1 woman",
		"king -man +woman":   "arithmetic: +1 king -1 man +1 woman",
		"king-man+woman":     "arithmetic: +1 king -1 man +1 woman",
		"- man":              "arithmetic: -1 man",
		"king + king - king": "arithmetic: +1 king",
		"x-ray - well-known": "arithmetic: +1 x-ray -1 well-known",

		`"bank river"`:                         "text: +1 bank +1 river",
		`“the well-known bank”`:                "text: +1 the +1 well-known +1 bank",
		"the king, the man - and a Woman!":     "there is no + or −",
		"the king and the man: 3 rivers of…":   `text: +2 the +1 king +1 man ["and" "3" "rivers" "of…"]`,
		"the king\nand the man\u00a0\t. bank.": `text: +2 the +1 king +1 man +1 bank ["and"]`,

		"":                 "there is no question",
		" \t":              "there is no question",
		"bnak":             `no word "bnak" in the model`,
		"bank rivre":       `no word "rivre" in the model`,
		"king - mann":      `no word "mann" in the model`,
		"king-mann":        `no word "king-mann" in the model`,
		"12":               `no word "12" in the model`,
		"-5":               `no word "-5" in the model`,
		"bank + #3":        "dimension #3 can be taken away from words, and not be added to them",
		"bank - #999":      "no dimension #999: they are 0 to ",
		"bank - #+3":       `no word "#+3" in the model`,
		"king +":           "there is no word after the last +",
		"+":                "there is no word after the last +",
		"king - + man":     "there is no word between - and +",
		"king man + woman": `there is no + or − between "king" and "man"`,
		`"zz"`:             "the model has none of the words of this text",
		`"`:                "the model has none of the words of this text",
		"a b c d e f":      "the model has none of the words of this text",
	} {
		q, err := x.Ask(question, labels)
		got := read(x, q)
		if err != nil {
			got = err.Error()
			_, unknown := errors.AsType[*UnknownWordError](err)
			if unknown != strings.HasPrefix(got, "no word") {
				t.Errorf("%q: the error is a %T", question, err)
			}
		}
		if got != want && !(err != nil && strings.HasPrefix(got, want)) {
			t.Errorf("%q: %s, want %s", question, got, want)
		}
	}
}

func FuzzAsk(f *testing.F) {
	x, labels := questions()
	for _, s := range []string{"king - man", "\"", "“king", "+−", "−", "#", "dimension", "\xff", "k\u0301ing"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := x.Ask(s, labels)
		switch {
		case err != nil:
			if !utf8.ValidString(err.Error()) {
				t.Errorf("%q: error %q", s, err)
			}
		case q.About == AboutDimension:
			if q.Dimension < 0 || q.Dimension >= x.Codes.Cols {
				t.Errorf("%q: dimension %d", s, q.Dimension)
			}
		case len(q.Terms) == 0 || !slices.Contains([]string{AboutWord, AboutWords, AboutSum, AboutText}, q.About):
			t.Errorf("%q: %+v", s, q)
		}
	})
}
