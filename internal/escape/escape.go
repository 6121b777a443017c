// Package escape makes what others wrote, words and names of files, safe in each place
// that it is printed to. There is one function for each place.
package escape

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

// plain reports whether a character shows as what it is: no terminal takes it for a
// command, and no reader for nothing or for the end of a line. Persian and other scripts
// need the two joiners, which don't show.
func plain(r rune) bool { return unicode.IsPrint(r) || r == '\u200c' || r == '\u200d' }

// Text returns s for a terminal or a picture, on one line: characters that are not plain, and
// bytes that are not UTF-8, are written as in a Go string.
func Text(s string) string { return replace(s, "", escaped) }

// replace returns s with each character that is neither plain nor among kept, or a byte
// that is not UTF-8, replaced. Of the latter r is RuneError.
func replace(s, kept string, by func(r rune, bytes string) string) string {
	var b strings.Builder
	start := 0 // of what is to be copied
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

// Word returns a word as it is, or in quotes if [Text] changes it: it could be mistaken
// for another that looks the same.
func Word(s string) string {
	if Text(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// Writer writes lines of text as [Text] does; it leaves their ends, and tabs.
type Writer struct{ io.Writer }

func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, replace(string(p), "\n\t", escaped)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// JSON writes v as JSON, indented, and escaped as JSON does it: what reads it gets v's own
// strings.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, replace(b.String(), "\n", func(r rune, _ string) string {
		var units strings.Builder
		for _, unit := range utf16.Encode([]rune{r}) {
			units.WriteString(`\u` + strconv.FormatUint(0x10000+uint64(unit), 16)[1:])
		}
		return units.String()
	}))
	return err
}

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "|", `\|`, "&", `\&`, "~", `\~`, "#", `\#`)

// Markdown returns s for a cell of a table, or within a line, in Markdown.
func Markdown(s string) string { return markdown.Replace(Text(s)) }

var latex = strings.NewReplacer(`\`, `\textbackslash{}`, "_", `\_`, "%", `\%`, "&", `\&`, "#", `\#`, "$", `\$`,
	"{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`,
	"λ", `$\lambda$`, "±", `$\pm$`, "½", `$\frac12$`, "‖", `$\Vert$`, "²", `$^2$`, "·", `$\cdot$`, "Σ", `$\Sigma$`, "–", "--", "…", `\ldots{}`)

// LaTeX returns s for a cell of a tabular, or within a line, in LaTeX.
func LaTeX(s string) string { return latex.Replace(Text(s)) }
