package interpret

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"overcomplete/vectors"
)

// textIndex is an index of texts that are called by ids.
func textIndex(texts ...string) *Index {
	codes := randomCodes(1, len(texts), 3, 1)
	codes.Texts = &vectors.Texts{Text: texts}
	for i := range texts {
		codes.Words[i] = fmt.Sprintf("d%d", i)
	}
	return NewIndex(codes)
}

func TestSearch(t *testing.T) {
	x := textIndex("Rain in\nSpain", "the plain", "SPAIN had RAIN", "", "rain in spain stays", "ŽLUTÝ kůň", "aay-ay")
	for _, tt := range []struct {
		query string
		n     int
		rows  []int
		total int
	}{
		{"rain in spain", 10, []int{0, 4, 2}, 3},
		{"RAIN  in", 1, []int{0}, 3},
		{"ain", 3, []int{0, 1, 2}, 4},
		{"plain", 3, []int{1}, 1},
		{"in spain", 9, []int{0, 4, 2}, 3},
		{"ay", 9, []int{6, 4}, 2},
		{"žlutý", 9, []int{5}, 1},
		{"row 3", 9, []int{3}, 1},
		{"row 7", 9, nil, 0},
		{"d3", 9, []int{3}, 1}, // an empty text is called by its id
		{" ", 9, nil, 0},
		{"snow", 9, nil, 0},
	} {
		if rows, total := x.Search(tt.query, tt.n); !slices.Equal(rows, tt.rows) || total != tt.total {
			t.Errorf("%q: %v of %d, want %v of %d", tt.query, rows, total, tt.rows, tt.total)
		}
	}
	words := randomCodes(1, 3, 2, 1)
	words.Words = []string{"bank", "river", "Banks"}
	if rows, total := NewIndex(words).Search("bank", 5); !slices.Equal(rows, []int{0, 2}) || total != 2 {
		t.Errorf("%v of %d", rows, total)
	}
}

// Of texts, ids are words, and all else is searched for.
func TestAskTexts(t *testing.T) {
	x := textIndex("the king - a man", "a woman", "the king", "no")
	for question, want := range map[string]Question{
		"d2":             {About: AboutWord, Terms: []Term{{2, 1}}},
		"d2 - d1":        {About: AboutSum, Terms: []Term{{2, 1}, {1, -1}}},
		"king - a man":   {About: AboutWord, Terms: []Term{{0, 1}}, Found: []int{0}, Total: 1},
		"the king":       {About: AboutSearch, Found: []int{0, 2}, Total: 2},
		`"WOMAN"`:        {About: AboutWord, Terms: []Term{{1, 1}}, Found: []int{1}, Total: 1},
		"2":              {About: AboutDimension, Dimension: 2},
		"a king and man": {About: AboutSearch},
	} {
		got, err := x.Ask(question, nil)
		if unknown, ok := errors.AsType[*UnknownWordError](err); ok != (want.About == AboutSearch && want.Total == 0) || ok && unknown.Word != question {
			t.Errorf("%q: %v", question, err)
		}
		if got.About != want.About || !slices.Equal(got.Terms, want.Terms) || !slices.Equal(got.Found, want.Found) || got.Total != want.Total || got.Dimension != want.Dimension {
			t.Errorf("%q: %+v, want %+v", question, got, want)
		}
	}
}
