package interpret

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/internal/text"
)

// Parameters of BM25 (Robertson and Zaragoza 2009). The length of a text is its number of distinct words.
const (
	saturation   = 1.2
	lengthWeight = 0.75
)

// A queryWord is a word of a query, with the texts that contain it.
type queryWord struct {
	word   string
	texts  []int32 // rows
	idf    float64
	prefix bool // no text contains the word, so texts contain longer words that begin with it
	common bool // too frequent to be required
}

// Search ranks the texts that contain words of a query. It returns a query of kind [QuerySearch] with up to
// n Rows, the Total number of texts with all words, and the Matched and Unknown words. The rows of the index
// must be texts.
//
// Texts with all words come first, then texts with some words. Both groups are in decreasing order of BM25. A text's
// score is up to twice as large if words that are adjacent in the query are adjacent in the text. A word that more than
// a quarter of the texts contain is optional, unless the query has only such words. A word that no text contains
// matches the words that begin with it.
func (x *Index) Search(query string, n int) Query {
	const maxWords, maxCandidates, maxScanned = 32, 1000, 2 << 20
	q := Query{Kind: QuerySearch}
	words := x.queryWords(query, &q)
	if len(words) == 0 {
		return q
	}
	if len(words) > maxWords {
		slices.SortStableFunc(words, func(a, b queryWord) int { return cmp.Compare(b.idf, a.idf) })
		words = words[:maxWords]
	}
	p := x.postings()
	score := func(row int, idf, count float64) float64 {
		length := float64(p.Lengths[row]) / p.MeanLength
		return idf * count * (saturation + 1) / (count + saturation*(1-lengthWeight+lengthWeight*length))
	}
	required := 0
	scores, matched := make([]float64, x.Codes.Rows), make([]uint8, x.Codes.Rows)
	for _, w := range words {
		if !w.common {
			required++
			q.Matched = append(q.Matched, w.word)
		}
		for _, i := range w.texts {
			scores[i] += score(int(i), w.idf, 1)
			if !w.common {
				matched[i]++
			}
		}
	}
	const all = 1e6 // bonus for texts with all words; larger than any BM25 score
	found := ranking.Ranking{N: max(n, maxCandidates)}
	for i, s := range scores {
		if int(matched[i]) == required {
			q.Total++
			s += all
		}
		if matched[i] > 0 {
			found.Add(ranking.Item{Index: i, Score: s})
		}
	}
	items := found.Items()
	rescored := 0 // number of texts that are scanned
	for left := maxScanned; rescored < len(items); rescored++ {
		if left -= min(len(x.Codes.Texts.Text[items[rescored].Index]), text.MaxBytes); left < 0 {
			break
		}
	}
	parallel.Each(context.Background(), rescored, func(i int) {
		row := items[i].Index
		counts, adjacent := countWords(x.Codes.Texts.Text[row], words)
		s := 0.0
		for j, w := range words {
			s += score(row, w.idf, counts[j])
		}
		s *= 1 + adjacent
		if items[i].Score >= all {
			s += all
		}
		items[i].Score = s
	})
	slices.SortStableFunc(items[:rescored], func(a, b ranking.Item) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Index, b.Index))
	})
	for _, i := range items[:min(n, len(items))] {
		q.Rows = append(q.Rows, i.Index)
	}
	return q
}

// queryWords returns the words of a query that texts contain. It adds all other words of the query to q.Unknown.
func (x *Index) queryWords(query string, q *Query) []queryWord {
	t, p := x.terms(), x.postings()
	var words []queryWord
	onlyCommon := true
	for _, word := range text.Tokenize(query) {
		if slices.ContainsFunc(words, func(w queryWord) bool { return w.word == word }) || slices.Contains(q.Unknown, word) {
			continue
		}
		w, ids := queryWord{word: word}, p.Lookup(t, word)
		for _, id := range ids {
			w.texts = append(w.texts, p.With(id)...)
		}
		if len(w.texts) == 0 {
			q.Unknown = append(q.Unknown, word)
			continue
		}
		if w.prefix = t.Words[ids[0]] != word; w.prefix {
			slices.Sort(w.texts)
			w.texts = slices.Compact(w.texts)
		}
		share := float64(len(w.texts)) / float64(x.Codes.Rows)
		w.idf = math.Log1p(1/share - 0.5)
		w.common = share > 0.25
		onlyCommon = onlyCommon && w.common
		words = append(words, w)
	}
	if onlyCommon {
		for i := range words {
			words[i].common = false
		}
	}
	return words
}

// countWords returns the number of occurrences of each word of a query in a text. It also returns the share of the
// query's adjacent pairs of words that are adjacent in the text.
func countWords(s string, words []queryWord) (counts []float64, adjacent float64) {
	counts = make([]float64, len(words))
	pairs := make([]bool, len(words))
	last := -1
	for _, token := range text.Tokenize(s[:min(len(s), text.MaxBytes)]) {
		i := slices.IndexFunc(words, func(w queryWord) bool { return token == w.word || w.prefix && strings.HasPrefix(token, w.word) })
		if i >= 0 {
			counts[i]++
			if i > 0 && i == last+1 && !pairs[i] {
				pairs[i] = true
				adjacent += 1 / float64(len(words)-1)
			}
		}
		last = i
	}
	return counts, adjacent
}
