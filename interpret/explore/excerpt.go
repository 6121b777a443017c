package explore

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// An excerpter selects the part of a text that a list shows.
type excerpter struct {
	pattern *regexp.Regexp // matches the words to show; nil selects the beginning of a text
	length  int            // in characters
}

// newExcerpter returns an excerpter that selects the part of a text with the most of the given words. In scripts
// without spaces, a given word counts anywhere, in others only where a word of the text begins.
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

// shorten returns the part of a text with the most of the excerpter's words, on one line. Ellipses replace the
// rest.
func (e excerpter) shorten(text string) string {
	text = oneLine(strings.ToValidUTF8(text[:min(len(text), wholeText)], ""))
	runes := []rune(text)
	if len(runes) <= e.length || e.pattern == nil {
		return truncate(text, e.length)
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
	start, distinct := 0, 0
	for i, first := range hits {
		words := map[int]bool{}
		for _, h := range hits[i:] {
			if h.at-first.at < e.length-2*before {
				words[h.word] = true
			}
		}
		if len(words) > distinct {
			start, distinct = first.at, len(words)
		}
	}
	if start <= before {
		return truncate(text, e.length)
	}
	start -= before
	if i := slices.Index(runes[start:start+before], ' '); i >= 0 {
		start += i + 1
	}
	return "…" + truncate(string(runes[start:]), e.length-1)
}

// oneLine replaces white space in a text by single spaces, and four or more equal punctuation characters, such as
// a ruled line, by a dash.
func oneLine(text string) string {
	var line []rune
	var previous rune
	run := 0
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if r != previous {
			previous, run = r, 0
		}
		run++
		switch {
		case run < 4 || !unicode.IsPunct(r) && !unicode.In(r, unicode.Sm, unicode.Sk):
			line = append(line, r)
		case run == 4:
			line = append(line[:len(line)-3], '—')
		}
	}
	return string(line)
}
