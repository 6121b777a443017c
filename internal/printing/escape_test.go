package printing

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"overcomplete/testonly"
)

const persian = "می\u200cخواهم" // the joiner is part of the word

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":                       "",
		"New York":               "New York",
		persian:                  persian,
		`a\x1b`:                  `a\x1b`,
		"\x1b[2J":                `\x1b[2J`,
		"a\nb\tc\rd\x00":         `a\nb\tc\rd\x00`,
		"\u009b2J":               `\u009b2J`,
		"\x9b2J":                 `\x9b2J`, // not UTF-8: the same command for an 8-bit terminal
		"a\x7f":                  `a\x7f`,
		"abc\u202etxt.exe":       `abc\u202etxt.exe`,
		"\ufeff\u2028\u00ad":     `\ufeff\u2028\u00ad`,
		"\ufffe\uffff":           `\ufffe\uffff`,
		"\U000e0041":             `\U000e0041`, // a tag, which is invisible
		"\xed\xa0\x80":           `\xed\xa0\x80`,
		"\ufffd is a symbol":     "\ufffd is a symbol",
		"e\u0301 and \U0001f600": "e\u0301 and \U0001f600",
	} {
		if got := Text(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestWord(t *testing.T) {
	for s, want := range map[string]string{"a": "a", `a\n`: `a\n`, "a\n": `"a\n"`, persian: persian} {
		if got := Word(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestWriter(t *testing.T) {
	var b strings.Builder
	if n, err := (Writer{&b}).Write([]byte("a\tb\n\x1b]0;title\a\x9b\n")); n != 16 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if want := "a\tb\n\\x1b]0;title\\a\\x9b\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// FuzzAll checks that no output contains control characters or markup from its input.
func FuzzAll(f *testing.F) {
	for _, s := range []string{"a", "\x1b[2J", "\u009b\n", "<a|b&c>\\", "\xff{}$%", "\U000e0041\u2028", persian} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var lines strings.Builder
		Writer{&lines}.Write([]byte(s))
		var j strings.Builder
		testonly.Must(t, JSON(&j, []string{s}))
		for name, got := range map[string]string{
			"Text": Text(s), "Word": Word(s), "Markdown": Markdown(s),
			"Writer": strings.NewReplacer("\n", "", "\t", "").Replace(lines.String()), "JSON": strings.ReplaceAll(j.String(), "\n", ""),
		} {
			if i := strings.IndexFunc(got, func(r rune) bool {
				return !unicode.IsGraphic(r) && r != '\u200c' && r != '\u200d' || unicode.Is(unicode.Bidi_Control, r) || r != ' ' && unicode.IsSpace(r)
			}); i >= 0 || !utf8.ValidString(got) {
				t.Errorf("%s of %q is %q", name, s, got)
			}
		}
		var back []string
		if err := json.Unmarshal([]byte(j.String()), &back); err != nil || back[0] != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Errorf("JSON of %q is %s, read as %q, %v", s, j.String(), back, err)
		}
		for i, c := range Markdown(s) {
			if strings.ContainsRune("|<>&`*", c) && (i == 0 || Markdown(s)[i-1] != '\\') {
				t.Errorf("Markdown of %q has a bare %q: %q", s, c, Markdown(s))
			}
		}
	})
}
