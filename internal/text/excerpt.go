package text

import (
	"hash/fnv"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lines holds statistics of the lines of texts. They distinguish an author's own words from quotations and headers.
type Lines struct {
	repeated passages       // lines that occur more than once and don't begin with a symbol
	heads    map[string]int // heads[h] is the number of texts that have a line with the head h; see headOf
	symbols  map[rune]int   // symbols[r] is the number of texts that have at least three words beginning with r
	least    int            // a head or symbol is common if at least this number of texts has it
}

func NewLines(texts []string) *Lines {
	const maxHeads = 1 << 16
	lines := 0
	for _, text := range texts {
		lines += 1 + strings.Count(text[:min(len(text), MaxBytes)], "\n")
	}
	s := &Lines{newPassages(4 * lines), map[string]int{}, map[rune]int{}, max(5, len(texts)/200)}
	seen := newPassages(4 * lines)
	last := map[string]int{} // number, from 1, of the last text with each head
	for i, text := range texts {
		marked := map[rune]int{} // number of words of this text that begin with each symbol
		for word := range strings.FieldsSeq(text[:min(len(text), MaxBytes)]) {
			if r := markOf(word); r != 0 {
				if marked[r]++; marked[r] == 3 {
					s.symbols[r]++
				}
			}
		}
		for line := range strings.Lines(text[:min(len(text), MaxBytes)]) {
			line = strings.TrimSpace(line)
			if head := headOf(line); head != "" && last[head] != i+1 && (last[head] > 0 || len(last) < maxHeads) {
				last[head] = i + 1
				s.heads[head]++
			}
			if line == "" || markOf(line) != 0 {
				continue
			}
			key := hashLine(line)
			if seen.has(key) {
				s.repeated.set(key)
			}
			seen.set(key)
		}
	}
	return s
}

func hashLine(line string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, line)
	return h.Sum64()
}

// headOf returns the first word of a line if the word ends with a symbol that doesn't end sentences or quotations.
func headOf(line string) string {
	head, _, _ := strings.Cut(line, " ")
	r, _ := utf8.DecodeLastRuneInString(head)
	if len(head) > 40 || !unicode.In(r, unicode.S, unicode.P) || isTerminal(r) || unicode.In(r, unicode.Pe, unicode.Pf) || strings.ContainsRune(`,"'`, r) {
		return ""
	}
	return head
}

// markOf returns the symbol with which a word or line begins, or 0. It ignores opening quotes and brackets, currencies,
// angle brackets, and symbols that also end the word, as in *this*.
func markOf(word string) rune {
	r, n := utf8.DecodeRuneInString(word)
	if !unicode.In(r, unicode.S, unicode.P) || isEmoji(r) || unicode.In(r, unicode.Ps, unicode.Pi, unicode.Sc) || strings.ContainsRune(`"'¿¡<`, r) {
		return 0
	}
	if last, _ := utf8.DecodeLastRuneInString(word); last == r && strings.ContainsFunc(word[n:], isWordRune) {
		return 0
	}
	return r
}

func isTerminal(r rune) bool { return strings.ContainsRune(".!?…。！？؟।", r) }

// A sentence is a part of a text that ends with a mark, such as a full stop, or at the end of a block of lines.
type sentence struct {
	text  string
	own   bool // in the author's own words
	block int  // number of the block
}

// lineBytes is the largest length of a line that a mail program has wrapped, including marks of quotation such as >.
const lineBytes = 90

// sentences splits the first MaxBytes bytes of a text. Blocks of lines end at empty lines, after lines that end with a
// colon, and where the author's own words begin or end.
func (s *Lines) sentences(text string) (all []sentence) {
	lines := strings.Split(strings.ToValidUTF8(text[:min(len(text), MaxBytes)], ""), "\n")
	heads := map[string]int{} // number of lines of this text with each head
	signature := len(lines)
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
		heads[headOf(lines[i])]++
		if lines[i] != "" && !strings.ContainsFunc(lines[i], isWordRune) && len(lines)-i <= 10 {
			signature = min(signature, i)
		}
	}
	isOwn := func(i int) bool {
		line, head := lines[i], headOf(lines[i])
		return len(line) > 2*lineBytes || // the text has lost its line breaks
			markOf(line) == 0 && i < signature && !s.repeated.has(hashLine(line)) && (head == "" || s.heads[head] < s.least && heads[head] < 3)
	}
	block := 0
	var joined []string // lines of the block
	own := false
	flush := func() {
		all = s.appendSentences(all, strings.Join(joined, " "), own, block)
		joined = joined[:0]
		block++
	}
	for i, line := range lines {
		if now := line != "" && isOwn(i); line == "" || now != own {
			flush()
			own = now
		}
		if line = oneLine(line); line != "" {
			joined = append(joined, line)
		}
		if strings.HasSuffix(line, ":") {
			flush()
		}
	}
	flush()
	return all
}

// appendSentences appends the sentences of a line. If own is set, they are the author's own words, except quotations,
// attributions and sentences with a mail address.
func (s *Lines) appendSentences(all []sentence, line string, own bool, block int) []sentence {
	var marks []int // offsets of the words that begin with a common symbol
	at := 0
	for word := range strings.SplitSeq(line, " ") {
		if r := markOf(word); r != 0 && s.symbols[r] >= s.least {
			marks = append(marks, at)
		}
		at += len(word) + 1
	}
	start := 0
	for _, part := range splitAttributions(splitSentences(line)) {
		start += strings.Index(line[start:], part)
		end := start + len(part)
		before, _ := slices.BinarySearch(marks, start)
		after, _ := slices.BinarySearch(marks, end)
		quoted := before < after || before > 0 && after < len(marks) && marks[after]-marks[before-1] <= lineBytes
		one := sentence{part, own && !quoted && !strings.HasSuffix(part, ":") && !slices.ContainsFunc(strings.Fields(part), isMailAddress), block}
		if !one.own {
			one.text = withoutMarks(part)
		}
		if start = end; one.text != "" {
			all = append(all, one)
		}
	}
	return all
}

// attribution matches the part of a sentence up to the first colon after a mail address.
var attribution = regexp.MustCompile(`^.*?[\pL\pN]\S*@\S*[\pL\pN].*?:(?: |$)`)

// splitAttributions splits each sentence after its attribution, if it has one.
func splitAttributions(sentences []string) (parts []string) {
	for _, sentence := range sentences {
		end := 0
		if strings.Contains(sentence, "@") {
			end = len(attribution.FindString(sentence))
		}
		for _, part := range []string{strings.TrimSpace(sentence[:end]), strings.TrimSpace(sentence[end:])} {
			if part != "" {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// withoutMarks removes the marks > and | from the beginning of each word. It then removes all words before the first
// word that contains a letter, digit or emoji.
func withoutMarks(line string) string {
	var words []string
	for word := range strings.FieldsSeq(line) {
		word = strings.TrimLeft(word, ">|＞")
		if word != "" && (words != nil || strings.ContainsFunc(word, func(r rune) bool { return isWordRune(r) || isEmoji(r) })) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// isMailAddress reports whether a word has an @ between letters or digits.
func isMailAddress(word string) bool {
	before, after, found := strings.Cut(word, "@")
	return found && strings.ContainsFunc(before, isWordRune) && strings.ContainsFunc(after, isWordRune)
}

// splitSentences splits a line after characters that end sentences. It doesn't split before a lower-case letter or after
// an initial, such as "J.". A space must follow, except after East Asian characters.
func splitSentences(line string) (parts []string) {
	runes := []rune(line)
	start := 0
	for i := 0; i < len(runes); i++ {
		if !isTerminal(runes[i]) {
			continue
		}
		end := i + 1
		for end < len(runes) && (isTerminal(runes[end]) || unicode.In(runes[end], unicode.Pe, unicode.Pf) || strings.ContainsRune(`"'`, runes[end])) {
			end++
		}
		next := end
		for next < len(runes) && unicode.IsSpace(runes[next]) {
			next++
		}
		initial := runes[i] == '.' && i > 0 && unicode.IsUpper(runes[i-1]) && (i == 1 || !isWordRune(runes[i-2]))
		if next < len(runes) && (next == end && runes[i] < 0x3000 || unicode.IsLower(runes[next]) || initial) {
			continue
		}
		parts = append(parts, string(runes[start:end]))
		start, i = next, next-1
	}
	if start < len(runes) {
		parts = append(parts, string(runes[start:]))
	}
	return parts
}

// Excerpt returns the most informative sentence of a text on one line, and the sentences after it that fit into length
// characters. Ellipses mark where a longer sentence is cut. Excerpt prefers whole sentences that contain the given words
// and are in the author's own words. A sentence isn't in the author's own words in these cases:
//
//   - Its line begins with a symbol, as quotations in mail do.
//   - Its line occurs more than once in the texts.
//   - Its line begins like a header, with a word and a symbol that begin lines of many texts or three lines of this one.
//   - It is in a signature, which follows a line without letters and digits near the end of the text.
//   - It contains a mail address.
//   - It ends with a colon, as attributions do.
//   - It contains a word that begins with a symbol, and many texts have several words with this symbol. This finds
//     quotations in texts that have lost their line breaks.
//   - It stands between two such words that are at most a line apart.
//
// If every sentence is such a case, Excerpt returns one of them. It also reports whether the sentence is in the author's
// own words and contains a given word. If no words are given, any sentence in the author's own words counts.
func (s *Lines) Excerpt(text string, words []string, length int) (excerpt string, telling bool) {
	return s.excerpt(text, words, length, func(word int) float64 { return 1 / (1 + 0.2*float64(word)) }) // the most important words come first
}

// Snippet returns the sentences of a text that contain the most words of a query, like [Lines.Excerpt]. Words of the
// query matter more than whole sentences or the author's own words.
func (s *Lines) Snippet(text string, words []string, length int) string {
	const weight = 20 // exceeds the sum of all other scores
	snippet, _ := s.excerpt(text, words, length, func(int) float64 { return weight })
	return snippet
}

// excerpt returns the sentence with the largest score, and the sentences after it; see [Lines.Excerpt]. The weight of a
// word is added to the scores of sentences that contain it.
func (s *Lines) excerpt(text string, words []string, length int, weight func(word int) float64) (excerpt string, telling bool) {
	all := s.sentences(text)
	find := finder(words)
	if len(all) == 0 { // no letters
		return find.window(oneLine(strings.ToValidUTF8(text[:min(len(text), MaxBytes)], "")), length), false
	}
	best, most := 0, math.Inf(-1)
	for i, c := range all {
		score := -0.02 * float64(min(i, 20))
		found := map[int]bool{}
		for _, h := range find.find(c.text) {
			if !found[h.word] {
				found[h.word] = true
				score += weight(h.word)
			}
		}
		n := utf8.RuneCountInString(c.text)
		last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(c.text, `"')]}»”’`))
		if isTerminal(last) {
			score += 0.5
		}
		if !c.own {
			score -= 4
		}
		if strings.Contains(c.text, "@") && slices.ContainsFunc(strings.Fields(c.text), isMailAddress) {
			score -= 4
		}
		if n < 30 {
			score -= 1
		}
		if n > length {
			score -= 0.5
		}
		if score > most {
			best, most = i, score
			telling = c.own && (len(found) > 0 || len(words) == 0)
		}
	}
	shown := all[best].text
	for _, c := range all[best+1:] {
		if c.block != all[best].block || c.own != all[best].own || utf8.RuneCountInString(shown)+1+utf8.RuneCountInString(c.text) > length {
			break
		}
		shown += " " + c.text
	}
	return find.window(shown, length), telling
}

// A finder finds words in texts, in any case. It finds a word of a script without spaces anywhere, and other words only
// where a word of the text begins.
type finder []string

// A hit is an occurrence of a finder's word in a text: its offset in bytes, and the index of the word.
type hit struct{ at, word int }

func (f finder) find(text string) (hits []hit) {
	end := 0 // end of the previous hit
	inWord := false
	for at, r := range text {
		for i, word := range f {
			if at < end || inWord && !IsUnspaced(word) {
				continue
			}
			if n := foldedPrefix(text[at:], word); n > 0 {
				hits, end = append(hits, hit{at, i}), at+n
			}
		}
		inWord = isWordRune(r)
	}
	return hits
}

// foldedPrefix returns the length in bytes of the prefix of a text that equals a word, or 0. Case and the form of
// apostrophes don't matter.
func foldedPrefix(text, word string) (n int) {
	for _, want := range word {
		r, size := utf8.DecodeRuneInString(text[n:])
		if r != want && fold(r) != fold(want) {
			return 0
		}
		n += size
	}
	return n
}

// fold returns one character for all cases of a letter, and one for all forms of an apostrophe.
func fold(r rune) rune {
	if r == '’' {
		return '\''
	}
	for next := unicode.SimpleFold(r); next > r; next = unicode.SimpleFold(r) {
		r = next
	}
	return r
}

// window returns the part of a line, of up to n characters, that contains the most distinct words. Ellipses replace the
// rest.
func (f finder) window(line string, n int) string {
	if utf8.RuneCountInString(line) <= n {
		return line
	}
	const before = 40 // bytes before the first word
	start, distinct := 0, 0
	hits := f.find(line)
	for i, first := range hits {
		words := map[int]bool{}
		for _, h := range hits[i:] {
			if h.at-first.at < max(1, n-2*before) {
				words[h.word] = true
			}
		}
		if len(words) > distinct {
			start, distinct = first.at, len(words)
		}
	}
	mark := ""
	if start > before {
		start -= before
		if i := strings.IndexByte(line[start:start+before], ' '); i >= 0 {
			start += i + 1
		}
		mark = "…"
	} else {
		start = 0
	}
	return mark + Truncate(strings.ToValidUTF8(line[start:], ""), n-utf8.RuneCountInString(mark))
}

// Truncate shortens a text to n characters, but at least 1. It cuts at the end of a word if that costs at most a
// quarter of the characters. An ellipsis replaces the rest.
func Truncate(text string, n int) string {
	runes := []rune(text)
	if n = max(n, 1); len(runes) <= n {
		return text
	}
	shown := string(runes[:n-1])
	if i := strings.LastIndexFunc(shown, unicode.IsSpace); i > len(shown)*3/4 {
		shown = shown[:i]
	}
	return shown + "…"
}

// oneLine replaces white space by single spaces. It replaces four or more equal punctuation characters, such as a ruled
// line, by a dash.
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
