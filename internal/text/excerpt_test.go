package text

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExcerpt(t *testing.T) {
	const length, wholeText = 240, 20000
	filler := strings.Repeat("so it goes on ", 50)
	for _, tt := range []struct {
		name, text string
		words      []string
		want       []string // parts of the excerpt
	}{
		{"short", "a\nshort  text", []string{"short"}, []string{"a short text"}},
		{"empty word", "a text", []string{"", "text"}, []string{"a text"}},
		{"no word", filler + "goal", nil, []string{"so it goes on so it"}},
		{"most different words", filler + "goal goal goal " + filler + filler + " the goalie and the keeper " + filler, []string{"goal", "keeper"}, []string{"…", " the goalie and the keeper so"}},
		{"at the end", filler + "goal", []string{"goal"}, []string{"…it goes on so it goes on so it goes on goal"}},
		{"not within words", filler + "again " + filler + "rain", []string{"rain"}, []string{"…", "on rain"}},
		{"without spaces", strings.Repeat("東京タワー", 200) + "大学です" + strings.Repeat("東京", 200), []string{"大学"}, []string{"…", "大学です"}},
		{"syntax of patterns", filler + "c++ (or) *a*", []string{"c++", "(", "*a"}, []string{"c++ (or) *a*"}},
		{"ruled lines", "three ==== four\n=====\n-----\none ... two ____ 🙂🙂🙂🙂 !!!!!", []string{"two"}, []string{"three — four"}},
		{"apostrophes", "They say so. They don’t " + filler, []string{"don't"}, []string{"They don’t so"}},
		{"HTML", "<h1>News</h1>\n<b>Goals</b> of the week.\n", []string{"goals"}, []string{"<b>Goals</b> of the week."}},
		{"no letters", "\n*** ?!\n", []string{"goals"}, []string{"*** ?!"}},
		{"operators", "> if a == b {\n> return c\n", []string{"a"}, []string{"if a == b { return c"}},
		{"quoted HTML", "> <b>Goals</b> of the week.", []string{"goals"}, []string{"<b>Goals</b> of the week."}},
		{"whole characters", strings.Repeat("é", 3*wholeText), []string{"x"}, []string{"éé", "…"}},
	} {
		got, _ := NewLines([]string{tt.text}).Excerpt(tt.text, tt.words, length)
		if n := utf8.RuneCountInString(got); n > length || !utf8.ValidString(got) {
			t.Errorf("%s: %d characters", tt.name, n)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", tt.name, got, want)
			}
		}
	}
}

// An excerpt is a sentence in the author's own words that contains a given word.
func TestExcerptOfOwnWords(t *testing.T) {
	quote := "> You can't be serious about the goalie.\n> He is the best goalie of all.\n"
	texts := []string{
		"In article <12@a.edu> joe@a.edu\n(Joe Doe) writes:\n" + quote + "\nI am serious. The goalie of St. Louis let in nine\ngoals, e.g. from the blue line! So there.\n--\nJoe | goalie of goalies",
		"Ann Lee wrote:\n" + quote + "Never mind the goalie.",
		quote,
		"Subject: the goalie\nLines: 3\n\nMasks hide a goalie well enough.\nGo goalie go, the goalie club of Utah.",
		"Subject: no goalie at all\n\nNo mask, no goalie: such is life.\nGo goalie go, the goalie club of Utah.",
		"joe@a.edu writes: >Who needs a goalie? >I do. And I >say so. Not me, not a goalie.",
		"我们看比赛。守门员很好！再见。",
		"Er sagt: »Der Torwart war gut.« Dann ging er heim und trank sein Bier.",
	}
	for i := range 4 {
		texts = append(texts, fmt.Sprintf("Subject: %d\nText number %[1]d is here >and >here >again.", i))
	}
	s := NewLines(texts)
	for i, want := range []string{
		"The goalie of St. Louis let in nine goals, e.g. from the blue line! So there.",
		"Never mind the goalie.",
		"You can't be serious about the goalie. He is the best goalie of all.",
		"Masks hide a goalie well enough.",
		"No mask, no goalie: such is life.",
		"Not me, not a goalie.",
		"守门员很好！ 再见。",
		"Er sagt: »Der Torwart war gut.« Dann ging er heim und trank sein Bier.",
	} {
		if got, telling := s.Excerpt(texts[i], []string{"goalie", "守门员", "Torwart"}, 80); got != want || telling != (i != 2) {
			t.Errorf("%q: %q, want %q; telling: %v", texts[i], got, want, telling)
		}
	}
	if got, _ := s.Excerpt(texts[0], nil, 0); got != "…" {
		t.Errorf("%q in 0 characters", got)
	}
	if got, telling := s.Excerpt(" \n", nil, 80); got != "" || telling {
		t.Errorf("%q of an empty text", got)
	}
}

// A snippet contains the words of the query, wherever they stand.
func TestSnippet(t *testing.T) {
	texts := []string{
		"Joe wrote:\n> The mask hides the goalie well.\nI am sure that this is wrong. He is the best of all, and so is his friend.",
		"One\n\nThis is the longer sentence of the two. " + strings.Repeat("so it goes on ", 50) + "mask",
	}
	s := NewLines(texts)
	for i, want := range []string{"The mask hides the goalie well.", "…it goes on so it goes on so it goes on mask"} {
		if got := s.Snippet(texts[i], []string{"mask", "goalie"}, 80); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A word is found in any case, with either apostrophe, and where a word of the text begins.
func TestFinder(t *testing.T) {
	find := finder{"can't", "ὀδός", "kelvin", "守门"}
	for text, want := range map[string][]hit{
		"You CAN’T, you can't!":     {{4, 0}, {17, 0}},
		"ὈΔΌΣ, παρὀδός":             {{0, 1}},
		"\u212aelvins per kelvin":   {{0, 2}, {14, 2}},
		"守门员守门":                     {{0, 3}, {9, 3}},
		"bekelvin2kelvin can kelvi": nil,
		"\xffcan't\xff":             {{1, 0}},
	} {
		if got := find.find(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
