// Package printing makes words and file names from other people's files safe to print, with one function for each kind
// of output, and formats tables as aligned text and as Markdown:
//
//	fmt.Println(printing.Text("caf\x1b[2Jé")) // caf\x1b[2Jé, without clearing the terminal
//	printing.Table{{"word", "count"}, {"rain", "12"}}.Text("lr")
//	// word  count
//	// rain     12
package printing

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plain reports whether a character is visible and isn't a terminal command. The two joiners are invisible,
// but Persian and other scripts require them.
func plain(r rune) bool { return unicode.IsPrint(r) || r == '\u200c' || r == '\u200d' }

// Text returns s on one line for a terminal or a picture. Characters that are not plain, and bytes that are
// not UTF-8, are escaped as in a Go string.
func Text(s string) string { return replace(s, "", escaped) }

// replace replaces each character that is neither plain nor in kept, and each byte that is not UTF-8, with the result
// of the call by(r, bytes). For a byte that is not UTF-8, r is RuneError.
func replace(s, kept string, by func(r rune, bytes string) string) string {
	var b strings.Builder
	start := 0 // start of the text that isn't copied yet
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if bad := r == utf8.RuneError && n == 1; bad || !plain(r) && !strings.ContainsRune(kept, r) {
			b.WriteString(s[start:i])
			b.WriteString(by(r, s[i:i+n]))
			start = i + n
		}
		i += n
	}
	if start == 0 {
		return s
	}
	b.WriteString(s[start:])
	return b.String()
}

func escaped(_ rune, bytes string) string {
	quoted := strconv.Quote(bytes)
	return quoted[1 : len(quoted)-1]
}

// Word returns a word unchanged, or quoted if [Text] changes it. The quotes distinguish it from a word that
// looks the same.
func Word(s string) string {
	if Text(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// A Writer escapes like [Text], but keeps line ends and tabs.
type Writer struct{ io.Writer }

func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, replace(string(p), "\n\t", escaped)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// JSON writes v as indented JSON with JSON escapes, which decode to the original strings.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, InJSON(b.String()))
	return err
}

// InJSON returns JSON with JSON escapes for characters that can't be printed.
func InJSON(text string) string {
	return replace(text, "\n", func(r rune, _ string) string {
		var units strings.Builder
		for _, unit := range utf16.Encode([]rune{r}) {
			units.WriteString(`\u` + strconv.FormatUint(0x10000+uint64(unit), 16)[1:])
		}
		return units.String()
	})
}

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "|", `\|`, "&", `\&`, "~", `\~`, "#", `\#`)

// Markdown returns s escaped for a table cell or a line of Markdown.
func Markdown(s string) string { return markdown.Replace(Text(s)) }
