package interpret

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"overcomplete/internal/parallel"
)

// terms are the distinct words of each text. They take 4 bytes per word of a text and about 80
// per word of the vocabulary.
type terms struct {
	words  []string // in the order of their first text
	counts []int32  // number of texts with each word
	starts []int64  // of each text in ids
	ids    []uint32 // of words
}

// maxTextBytes is the length of the beginning of a text that is read.
const maxTextBytes = 20000

func newTerms(texts []string) *terms {
	t := &terms{starts: make([]int64, 1, len(texts)+1)}
	idOf := make(map[string]uint32)
	var lastText []int // of each word
	for i, text := range texts {
		for _, word := range tokenize(text[:min(len(text), maxTextBytes)]) {
			id, ok := idOf[word]
			if !ok {
				id = uint32(len(t.words))
				idOf[word] = id
				t.words, t.counts, lastText = append(t.words, word), append(t.counts, 0), append(lastText, -1)
			}
			if lastText[id] != i {
				lastText[id] = i
				t.counts[id]++
				t.ids = append(t.ids, id)
			}
		}
		t.starts = append(t.starts, int64(len(t.ids)))
	}
	return t
}

// Keywords returns up to n words that distinguish some rows, which are texts, from all others, best
// first. The score is the c-TF-IDF of BERTopic (Grootendorst 2022, §3.3) with the number of texts
// for counts, so that long texts count no more than short ones:
//
//	texts among rows with the word × log(1 + A / all texts with the word)
//
// with A distinct words in as many texts on average. Words are left out if they are in only one of
// four texts or more, less than 1.5 times as frequent as in all texts, or score less than a quarter
// of the best. Of words that share a five-letter prefix, the best-scoring one is kept.
func (x *Index) Keywords(rows []int, n int) []string {
	type candidate struct {
		id    uint32
		count int
		score float64
	}
	const minRatio = 1.5
	t := x.terms()
	counts := map[uint32]int{}
	for _, i := range rows {
		for _, id := range t.ids[t.starts[i]:t.starts[i+1]] {
			counts[id]++
		}
	}
	minCount := 1
	if len(rows) >= 4 {
		minCount = 2
	}
	share := float64(len(rows)) / float64(len(t.starts)-1)
	average := share * float64(len(t.ids))
	var candidates []candidate
	for id, count := range counts {
		expected := share * float64(t.counts[id])
		if count >= minCount && float64(count) >= minRatio*expected {
			candidates = append(candidates, candidate{id, count, float64(count) * math.Log(1+average/float64(t.counts[id]))})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.count, a.count), cmp.Compare(a.id, b.id))
	})
	var words []string
	for _, c := range candidates {
		if len(words) == n || c.score < candidates[0].score/4 {
			break
		}
		if word := t.words[c.id]; !sharesPrefix(word, words) {
			words = append(words, word)
		}
	}
	return words
}

// GroupLabels returns a label for each group of rows, which are texts: up to n of its [Index.Keywords],
// best first. Group g consists of the rows i with groups[i] = g; a row of −1 belongs to none.
func (x *Index) GroupLabels(groups []int32, n int) [][]string {
	rows := make([][]int, slices.Max(append(groups, -1))+1)
	for i, g := range groups {
		if g >= 0 {
			rows[g] = append(rows[g], i)
		}
	}
	labels := make([][]string, len(rows))
	parallel.Each(context.Background(), len(rows), func(g int) { labels[g] = x.Keywords(rows[g], n) })
	return labels
}

// unspaced are the scripts without spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// tokenize returns the words of a text in lower case: runs of letters, marks, digits, and apostrophes
// between them. Scripts without spaces yield pairs of adjacent characters, as in search engines that
// have no dictionary for them. A mark belongs to the character before it.
func tokenize(text string) []string {
	var words []string
	runs := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '\'' && r != '’'
	})
	for _, run := range runs {
		word := ""
		var characters []string // of a script without spaces
		for _, r := range run {
			switch {
			case unicode.IsMark(r) && len(characters) > 0:
				characters[len(characters)-1] += string(r)
			case unicode.In(r, unspaced...):
				words, word = appendWord(words, word), ""
				characters = append(characters, string(r))
			default:
				words, characters = appendPairs(words, characters), nil
				word += string(r)
			}
		}
		words = appendPairs(appendWord(words, word), characters)
	}
	return words
}

func appendWord(words []string, word string) []string {
	for word := range strings.SplitSeq(strings.ReplaceAll(word, "’", "'"), "''") {
		if word = strings.Trim(word, "'"); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// appendPairs appends the pairs of adjacent characters, or the only one.
func appendPairs(words, characters []string) []string {
	if len(characters) == 1 {
		return append(words, characters[0])
	}
	for i := 1; i < len(characters); i++ {
		words = append(words, characters[i-1]+characters[i])
	}
	return words
}
