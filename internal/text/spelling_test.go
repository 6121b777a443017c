package text

import (
	"strings"
	"testing"
)

func TestClosest(t *testing.T) {
	words := []string{"the", "Paris", "paris", "The", "Zürich", "part", "Ångström", "the", "İstanbul"}
	for _, tt := range []struct{ word, want string }{
		{"pariss", "Paris paris"}, {"zuerich", "Zürich"}, {"thee", "the The the"}, {"angstrom", "Ångström"}, {"qqqqqq", ""}, {"", ""},
		{strings.Repeat("q", 101), ""},
	} {
		if got := strings.Join(Closest(tt.word, words, 3), " "); got != tt.want {
			t.Errorf("closest to %q: %s", tt.word, got)
		}
	}
	row := make([]int, 20)
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"saturday", "sunday", 3}, {"abc", "abc", 0}} {
		if got, back := editDistance([]rune(tt.a), []rune(tt.b), 9, row), editDistance([]rune(tt.b), []rune(tt.a), 9, row); got != tt.want || back != tt.want {
			t.Errorf("%s and %s: %d, %d, want %d", tt.a, tt.b, got, back, tt.want)
		}
		if got := editDistance([]rune(tt.a), []rune(tt.b), tt.want-1, row); got < tt.want {
			t.Errorf("%s and %s, with a smaller limit: %d", tt.a, tt.b, got)
		}
	}
}
