package interpret

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	x := textIndex("Rain in\nSpain", "the plain", "SPAIN had RAIN, not in summer", "", "rain in spain stays", "ŽLUTÝ kůň", "the sun", "the moon")
	for _, tt := range []struct {
		query            string
		n                int
		rows             []int
		total            int
		matched, unknown []string
	}{
		{"rain in spain", 10, []int{0, 4, 2}, 3, []string{"rain", "in", "spain"}, nil}, // adjacent words first
		{"RAIN", 2, []int{0, 4}, 3, []string{"rain"}, nil},                             // the shortest text first
		{"rain stays", 9, []int{4, 0, 2}, 1, []string{"stays"}, nil},                   // all words first; rain is common
		{"pla", 9, []int{1}, 1, []string{"pla"}, nil},
		{"the moon", 9, []int{7}, 1, []string{"moon"}, nil},
		{"the", 9, []int{1, 6, 7}, 3, []string{"the"}, nil}, // common, and the only word
		{"žlutý zebra", 9, []int{5}, 1, []string{"žlutý"}, []string{"zebra"}},
		{" ", 9, nil, 0, nil, nil},
		{"snow snow", 9, nil, 0, nil, []string{"snow"}},
	} {
		q := x.Search(tt.query, tt.n)
		if tt.query == "rain stays" {
			q.Rows = q.Rows[:1] // the others contain only a common word
			tt.rows = tt.rows[:1]
		}
		if !slices.Equal(q.Rows, tt.rows) || q.Total != tt.total || !slices.Equal(q.Matched, tt.matched) || !slices.Equal(q.Unknown, tt.unknown) {
			t.Errorf("%q: %+v, want %+v", tt.query, q, tt)
		}
	}
}

// All occurrences of the only longer word count.
func TestSearchOnlyLongerWord(t *testing.T) {
	x := textIndex("stays here now", "stays stays stays here now too", "a", "b", "c", "d", "e", "f")
	if got := x.Search("stay", 9).Rows; !slices.Equal(got, []int{1, 0}) {
		t.Errorf("rows %v, want the text with more occurrences first", got)
	}
}

// Words of more than a quarter of the texts are optional.
func TestSearchCommonWords(t *testing.T) {
	if q := textIndex("a", "a", "b", "b", "b", "c", "d", "e").Search("a b", 9); !slices.Equal(q.Matched, []string{"a"}) || q.Total != 2 {
		t.Errorf("%+v", q)
	}
}

// Phrases don't change scores. They are found for labels, if there are at most maxSample texts.
func TestSearchWithPhrases(t *testing.T) {
	texts := []string{"apple hard drive", "apple one two", "my hard drive", "hard drive fails", "new hard drive", "hard drive cable", "three", "four", "five"}
	x := textIndex(texts...)
	if x.terms().Single == len(x.terms().Words) {
		t.Fatal("no phrases")
	}
	if got := x.Search("apple", 9).Rows; !slices.Equal(got, []int{0, 1}) {
		t.Errorf("rows %v, want rows of equal score in row order", got)
	}
}

// Search ranks texts by the definition of BM25.
func TestSearchScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	texts := make([]string, 400)
	for i := range texts {
		var words []string
		for range 1 + rng.IntN(30) {
			words = append(words, fmt.Sprint("w", int(40*math.Pow(rng.Float64(), 2))))
		}
		texts[i] = strings.Join(words, " ")
	}
	x := textIndex(texts...)
	lengths, average := make([]float64, len(texts)), 0.0
	for i, text := range texts {
		words := strings.Fields(text)
		slices.Sort(words)
		lengths[i] = float64(len(slices.Compact(words)))
		average += lengths[i] / float64(len(texts))
	}
	for _, word := range []string{"w39", "w20", "w3"} {
		counts := make([]float64, len(texts))
		n := 0.0
		for i, text := range texts {
			counts[i] = float64(strings.Count(text+" ", word+" "))
			if counts[i] > 0 {
				n++
			}
		}
		score := func(i int) float64 {
			return math.Log(0.5+float64(len(texts))/n) * counts[i] * 2.2 / (counts[i] + 1.2*(0.25+0.75*lengths[i]/average))
		}
		q := x.Search(word, len(texts))
		if q.Total != int(n) || len(q.Rows) != q.Total {
			t.Fatalf("%s: %d texts and %d rows, want %v", word, q.Total, len(q.Rows), n)
		}
		if !slices.IsSortedFunc(q.Rows, func(a, b int) int {
			if score(a) >= score(b)-1e-9 {
				return 0
			}
			return 1
		}) {
			t.Errorf("%s: %v isn't in order of scores", word, q.Rows)
		}
	}
}
