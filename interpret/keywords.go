package interpret

import (
	"cmp"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

// terms are the words of texts, each text's once: 4 bytes a word of a text, and some 80 for each
// word that is not another's.
type terms struct {
	words  []string // in the order in which they were met
	counts []int32  // texts that have each
	starts []int64  // of each text's in ids
	ids    []uint32 // words' numbers
}

// mostRead is how many bytes of a text are looked at: who wrote more said it by then.
const mostRead = 20000

func newTerms(texts []string) *terms {
	t := &terms{starts: make([]int64, 1, len(texts)+1)}
	number := make(map[string]uint32)
	var last []int // text in which each word was met last
	for i, text := range texts {
		for _, word := range tokenize(text[:min(len(text), mostRead)]) {
			id, ok := number[word]
			if !ok {
				id = uint32(len(t.words))
				number[word] = id
				t.words, t.counts, last = append(t.words, word), append(t.counts, 0), append(last, -1)
			}
			if last[id] != i {
				last[id] = i
				t.counts[id]++
				t.ids = append(t.ids, id)
			}
		}
		t.starts = append(t.starts, int64(len(t.ids)))
	}
	return t
}

// of returns the words of text i.
func (t *terms) of(i int) []uint32 { return t.ids[t.starts[i]:t.starts[i+1]] }

// keywords returns up to n words that tell some texts from the rest, best first, by the c-TF-IDF
// of BERTopic (Grootendorst 2022, §3.3) with texts for counts, so that a long one says no more
// than a short one:
//
//	texts of these with the word × log(1 + A / all texts with it)
//
// where A is how many words as many texts have on average. Left out is a word that is in only one of
// four texts or more, that is there hardly more often than in all texts, or that has less than a
// quarter of the best's score. Of words that begin alike only the best is taken.
func (t *terms) keywords(texts []int, n int) []string {
	type candidate struct {
		id    uint32
		count int
		score float64
	}
	counts := map[uint32]int{}
	for _, i := range texts {
		for _, id := range t.of(i) {
			counts[id]++
		}
	}
	const more = 1.5 // times as often as by chance
	least := 1
	if len(texts) >= 4 {
		least = 2
	}
	average := float64(len(t.ids)) / float64(len(t.starts)-1) * float64(len(texts))
	var candidates []candidate
	for id, count := range counts {
		often := float64(t.counts[id]) / float64(len(t.starts)-1) * float64(len(texts)) // by chance
		if count >= least && float64(count) >= more*often {
			candidates = append(candidates, candidate{id, count, float64(count) * math.Log(1+average/float64(t.counts[id]))})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.count, a.count), cmp.Compare(a.id, b.id))
	})
	var words []string
	for _, c := range candidates {
		word := t.words[c.id]
		if c.score < candidates[0].score/4 {
			break // it tells little: how, is, the
		}
		if len(words) < n && !slices.ContainsFunc(words, func(other string) bool { return beginAlike(word, other) }) {
			words = append(words, word)
		}
	}
	return words
}

// unspaced are scripts that are written without spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// tokenize returns the words of a text in lower case: runs of letters, marks and digits, and an
// apostrophe between two of them. Of scripts without spaces these are pairs of characters, which
// is what search engines do where they have no dictionary; a mark is part of its character.
func tokenize(text string) []string {
	var words []string
	var word []byte    // so far
	var pair [2][]byte // characters of a script without spaces: the last two
	joined := 0        // bytes of word before an apostrophe that may be its last
	alone := false     // pair has one character that is in no word
	endWord := func() {
		if joined > 0 {
			word = word[:joined]
		}
		if len(word) > 0 {
			words = append(words, string(word))
		}
		word, joined = word[:0], 0
	}
	endRun := func() {
		if alone {
			words = append(words, string(pair[1]))
		}
		pair, alone = [2][]byte{}, false
	}
	endPair := func() { // the last character is whole
		if len(pair[0]) > 0 && len(pair[1]) > 0 {
			words = append(words, string(pair[0])+string(pair[1]))
			alone = false
		}
	}
	for _, r := range text {
		switch {
		case unicode.In(r, unspaced...) && !unicode.IsMark(r):
			endWord()
			endPair()
			alone = pair[1] == nil
			pair[0], pair[1] = pair[1], utf8.AppendRune(nil, unicode.ToLower(r))
		case unicode.IsMark(r) && pair[1] != nil:
			pair[1] = utf8.AppendRune(pair[1], r)
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r):
			endPair()
			endRun()
			word, joined = utf8.AppendRune(word, unicode.ToLower(r)), 0
		case (r == '\'' || r == '’') && len(word) > 0 && joined == 0:
			joined = len(word)
			word = append(word, '\'')
		default:
			endWord()
			endPair()
			endRun()
		}
	}
	endWord()
	endPair()
	endRun()
	return words
}

// lookedAt is how many of the strongest texts of a dimension its keywords are from.
const lookedAt = 20

// Words returns up to n words that stand for a side of a dimension: those with the largest values
// or, where rows are texts, the words that tell its strongest texts, twenty at most, from all
// others.
func (x *Index) Words(dimension, n int, negative bool) []string {
	words := []string{}
	if x.Codes.Texts == nil {
		for _, e := range x.Side(dimension, n, negative) {
			words = append(words, x.Codes.Words[e.Row])
		}
		return words
	}
	var texts []int
	for _, e := range x.Side(dimension, lookedAt, negative) {
		texts = append(texts, e.Row)
	}
	if words = append(words, x.Keywords(texts, n)...); len(words) == 0 && len(texts) > 0 {
		words = append(words, x.Codes.Words[texts[0]]) // nothing but its id
	}
	return words
}

// Keywords returns up to n words that tell some rows, which are texts, from all others, best first.
func (x *Index) Keywords(rows []int, n int) []string { return x.terms().keywords(rows, n) }
