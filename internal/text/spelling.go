package text

import (
	"unicode"

	"overcomplete/internal/ranking"
)

// Closest returns up to n words of a list, in increasing order of their edit distance to the given word. The
// distance is at most a third of the word's length, rounded up. Case doesn't matter.
func Closest(word string, among []string, n int) []string {
	const longest = 100 // the time grows with the square of the length
	from := appendLower(nil, word)
	if len(from) > longest {
		return nil
	}
	limit := (len(from) + 2) / 3
	found := ranking.Ranking{N: n}
	var to []rune
	row := make([]int, 4*(len(from)+limit)+1)
	for i, w := range among {
		if len(w) < len(from)-limit || len(w) > 4*(len(from)+limit) { // a rune is one to four bytes
			continue
		}
		to = appendLower(to[:0], w)
		if d := editDistance(from, to, limit, row); d <= limit {
			found.Add(ranking.Item{Index: i, Score: -float64(d)})
		}
	}
	var words []string
	for _, i := range found.Items() {
		words = append(words, among[i.Index])
	}
	return words
}

func appendLower(runes []rune, s string) []rune {
	for _, r := range s {
		runes = append(runes, unicode.ToLower(r))
	}
	return runes
}

// editDistance returns the number of insertions, deletions and substitutions that turn a into b
// (Levenshtein). If that number exceeds limit, the result is any number above limit. It overwrites
// row[:len(b)+1].
func editDistance(a, b []rune, limit int, row []int) int {
	for j := range len(b) + 1 { // row holds the distances between the current prefix of a and each prefix of b
		row[j] = j
	}
	for i, r := range a {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j, s := range b {
			d := diagonal
			if r != s {
				d = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], d
			least = min(least, d)
		}
		if least > limit {
			return least
		}
	}
	return row[len(b)]
}
