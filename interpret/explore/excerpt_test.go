package explore

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExcerpt(t *testing.T) {
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
		{"ruled lines", "one ... two\n=====\n-----\nthree ____ four 🙂🙂🙂🙂 !!!!!", []string{"one"}, []string{"one ... two — — three — four 🙂🙂🙂🙂 —"}},
		{"whole characters", strings.Repeat("é", 3*wholeText), []string{"x"}, []string{"éé", "…"}},
	} {
		got := newExcerpter(tt.words, listedText).shorten(tt.text)
		if n := utf8.RuneCountInString(got); n > listedText || !utf8.ValidString(got) {
			t.Errorf("%s: %d characters", tt.name, n)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", tt.name, got, want)
			}
		}
	}
}
