package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	prose = []string{".go", ".cu", ".cuh", ".js", ".html", ".py", ".md"}
	// sentence matches the start of a sentence, a list item, a table cell or a string. paragraphs marks
	// other starts with a zero byte.
	sentence = "(?:\x00|//\\s|[\"`]|[.!?:|*>-]\\s)\\s*"
	comment  = regexp.MustCompile(`^\s*(?://|#)\s*`)
)

// TestWords finds the phrases of .ci/words in comments, messages and documents.
func TestWords(t *testing.T) {
	type phrase struct {
		rule string
		*regexp.Regexp
	}
	var phrases []phrase
	except := make(map[string]bool) // "FILE PHRASE"
	for line := range strings.Lines(read(t, ".ci/words")) {
		first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch rest = strings.TrimSpace(rest); first {
		case "", "#":
		case "except":
			except[rest] = true
		default:
			words, atStart := strings.CutPrefix(strings.ReplaceAll(rest, " ", `\s+`), "^")
			start := `\b`
			if atStart {
				start = sentence
			}
			phrases = append(phrases, phrase{first, regexp.MustCompile(start + "(" + words + `)\b`)})
		}
	}
	for _, file := range files(t, prose...) {
		text := paragraphs(read(t, file), filepath.Ext(file) == ".md")
		for _, p := range phrases {
			for _, at := range p.FindAllStringSubmatchIndex(text, -1) {
				found := strings.Join(strings.Fields(text[at[2]:at[3]]), " ")
				if !except[file+" "+found] {
					t.Errorf("%s:%d: %q: rule %s of CONTRIBUTING.md's style", file, 1+strings.Count(text[:at[2]], "\n"), found, p.rule)
				}
			}
		}
	}
	if len(phrases) == 0 {
		t.Error("no phrases")
	}
}

// paragraphs returns a text without code spans and comment markers, with a zero byte before
// each heading and each first line of a paragraph or comment.
func paragraphs(text string, markdown bool) string {
	if markdown {
		text = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").ReplaceAllStringFunc(text, func(code string) string {
			return "code" + strings.Repeat("\n", strings.Count(code, "\n"))
		})
	}
	lines := strings.Split(text, "\n")
	inComment, blank := false, true
	for i, line := range lines {
		marker := comment.FindString(line)
		line = line[len(marker):]
		if blank || inComment != (marker != "") {
			line = "\x00" + line
		}
		inComment, blank = marker != "", strings.TrimSpace(line) == "" || markdown && marker != ""
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
