package interpret

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// queries returns an index of words in 12 dimensions, and labels. The label of dimension 3 is "Royalty".
func queries() (*Index, Labels) {
	s := clitest.RandomCodes(1, 0, 12, 0)
	s.IDs = []string{"king", "man", "woman", "bank", "river", "New York", "x-ray", "7", "money", "the", "well-known", "known"}
	s.Rows = len(s.IDs)
	s.Ptr = make([]int64, s.Rows+1)
	return NewIndex(s), Labels{{3, "Royalty", "", false, false}, {4, "river", "", false, false}, {5, "", "a note", false, false}}
}

func format(x *Index, q Query) string {
	if q.Kind == QueryDimension {
		return fmt.Sprint("dimension ", q.Dimension)
	}
	text := q.Kind + ":"
	for _, t := range q.Terms {
		text += fmt.Sprintf(" %+g %s", t.Weight, x.Codes.IDs[t.Row])
	}
	if len(q.Without) > 0 {
		text += fmt.Sprint(" without ", q.Without)
	}
	if len(q.Unknown) > 0 {
		text += fmt.Sprintf(" %q", q.Unknown)
	}
	return text
}

func TestParse(t *testing.T) {
	x, labels := queries()
	for query, want := range map[string]string{
		"bank":          "words: +1 bank",
		" Bank ":        "words: +1 bank",
		"bank!":         "words: +1 bank",
		"New York":      "words: +1 New York",
		"x-ray":         "words: +1 x-ray",
		"7":             "words: +1 7",
		"bank bank":     "words: +2 bank",
		"8":             "dimension 8",
		"#7":            "dimension 7",
		"dimension 7":   "dimension 7",
		"Dimension  11": "dimension 11",
		"royalty":       "dimension 3",
		"river":         "words: +1 river", // a word has priority over a label

		"bank river":            "words: +1 bank +1 river",
		"bank, river":           "words: +1 bank +1 river",
		"bank river money king": "words: +1 bank +1 river +1 money +1 king",

		"bank-#3":            "arithmetic: +1 bank without [3]",
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
		"the king, the man - and a Woman!":     "no + or −",
		"the king and the man: 3 rivers of…":   `text: +2 the +1 king +1 man ["and" "3" "rivers" "of…"]`,
		"the king\nand the man\u00a0\t. bank.": `text: +2 the +1 king +1 man +1 bank ["and"]`,

		"":                 "the query is empty",
		" \t":              "the query is empty",
		"bnak":             `no word "bnak" in the model`,
		"bank rivre":       `no word "rivre" in the model`,
		"king - mann":      `no word "mann" in the model`,
		"king-mann":        `no word "king-mann" in the model`,
		"12":               `no word "12" in the model`,
		"-5":               `no word "-5" in the model`,
		"bank + #3":        "dimension #3 can be subtracted from words, but not added to them",
		"bank - #999":      "no dimension #999 (want 0 to 11)",
		"bank - #+3":       `no word "#+3" in the model`,
		"king +":           "no word after the last +",
		"+":                "no word after the last +",
		"king - + man":     "no word between - and +",
		"king \x92 man":    `no word "\x92" in the model`, // the last byte of −
		"king man + woman": `no + or − between "king" and "man"`,
		`"zz"`:             "no word of this text is in the model",
		`"`:                "no word of this text is in the model",
		"a b c d e f":      "no word of this text is in the model",
	} {
		q, err := x.Parse(query, labels)
		got := format(x, q)
		if err != nil {
			got = err.Error()
			_, unknown := errors.AsType[*UnknownIDError](err)
			if unknown != strings.HasPrefix(got, `no word "`) {
				t.Errorf("%q: the error is a %T", query, err)
			}
		}
		if got != want && !(err != nil && strings.HasPrefix(got, want)) {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	x, labels := queries()
	for _, s := range []string{"king - man", "\"", "“king", "+−", "−", "#", "dimension", "\xff", "\x92", "k\u0301ing"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := x.Parse(s, labels)
		switch {
		case err != nil:
			if !utf8.ValidString(err.Error()) {
				t.Errorf("%q: error %q", s, err)
			}
		case q.Kind == QueryDimension:
			if q.Dimension < 0 || q.Dimension >= x.Codes.Cols {
				t.Errorf("%q: dimension %d", s, q.Dimension)
			}
		case len(q.Terms) == 0 || !slices.Contains([]string{QueryWords, QuerySum, QueryText}, q.Kind):
			t.Errorf("%q: %+v", s, q)
		}
	})
}

// textIndex returns an index of texts with the ids d0, d1, ….
func textIndex(texts ...string) *Index {
	codes := clitest.RandomCodes(1, len(texts), 3, 1)
	codes.Texts = &vectors.Texts{Text: texts}
	for i := range texts {
		codes.IDs[i] = fmt.Sprintf("d%d", i)
	}
	return NewIndex(codes)
}

// If rows are texts, words are ids, and any other query is a search.
func TestParseTexts(t *testing.T) {
	x := textIndex("the king - a man", "a woman", "the king", "no")
	for query, want := range map[string]Query{
		"d2":        {Kind: QueryWords, Terms: []Term{{2, 1}}},
		"d2 - d1":   {Kind: QuerySum, Terms: []Term{{2, 1}, {1, -1}}},
		"the king":  {Kind: QuerySearch, Rows: []int{2, 0}, Total: 2, Matched: []string{"the", "king"}},
		`"woman" a`: {Kind: QuerySearch, Rows: []int{1}, Total: 1, Matched: []string{"woman"}},
		`"WOMAN"`:   {Kind: QuerySearch, Rows: []int{1}, Total: 1, Matched: []string{"woman"}, Quoted: true},
		`"d1 - a"`:  {Kind: QuerySearch, Rows: []int{1, 0}, Total: 2, Matched: []string{"a"}, Unknown: []string{"d1"}, Quoted: true},
		"2":         {Kind: QueryDimension, Dimension: 2},
	} {
		if got, err := x.Parse(query, nil); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, error %v, want %+v", query, got, err, want)
		}
	}
	if _, err := x.Parse("zebra wombn", nil); !reflect.DeepEqual(err, &UnknownIDError{ID: "zebra"}) {
		t.Errorf("error %v", err)
	}
	if _, err := x.Parse("wombn", nil); !reflect.DeepEqual(err, &UnknownIDError{ID: "wombn", Closest: []string{"woman"}}) {
		t.Errorf("error %v", err)
	}
	if _, err := x.Find("the king"); !reflect.DeepEqual(err, &UnknownIDError{ID: "the king", Texts: 2, Closest: []string{"d2", "d0"}}) {
		t.Errorf("error %v", err)
	}
}
