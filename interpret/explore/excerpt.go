package explore

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// An excerpter chooses the part of a text that a list shows.
type excerpter struct {
	pattern *regexp.Regexp // of the words to show, nil for the beginning of a text
	length  int            // in characters
}

// newExcerpter shows the parts of texts with as many of some words as possible, at the beginning of words
// or, in scripts without spaces, anywhere.
func newExcerpter(words []string, length int) excerpter {
	var quoted []string
	for _, word := range words {
		if word == "" {
			continue
		}
		q := "(" + regexp.QuoteMeta(word) + ")"
		if !unicode.In([]rune(word)[0], unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
			q = `(?:^|[^\pL\pN])` + q
		}
		quoted = append(quoted, q)
	}
	if quoted == nil {
		return excerpter{nil, length}
	}
	return excerpter{regexp.MustCompile("(?i)" + strings.Join(quoted, "|")), length}
}

// of returns the part of a text with the most different words, on one line. Dots stand for what it leaves
// out.
func (e excerpter) of(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), wholeText)], "")), " ")
	runes := []rune(text)
	if len(runes) <= e.length || e.pattern == nil {
		return cut(text, e.length)
	}
	type hit struct{ at, word int }
	var hits []hit // in characters
	bytes, characters := 0, 0
	for _, m := range e.pattern.FindAllStringSubmatchIndex(text, -1) {
		for word := 1; word < len(m)/2; word++ {
			if from := m[2*word]; from >= 0 {
				characters += len([]rune(text[bytes:from]))
				bytes = from
				hits = append(hits, hit{characters, word})
			}
		}
	}
	const before = 40 // characters before the first word
	start, most := 0, 0
	for i, first := range hits {
		words := map[int]bool{}
		for _, h := range hits[i:] {
			if h.at-first.at < e.length-2*before {
				words[h.word] = true
			}
		}
		if len(words) > most {
			start, most = first.at, len(words)
		}
	}
	if start <= before {
		return cut(text, e.length)
	}
	start -= before
	if i := slices.Index(runes[start:start+before], ' '); i >= 0 {
		start += i + 1
	}
	return "…" + cut(string(runes[start:]), e.length-1)
}
