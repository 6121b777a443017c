package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isAddress reports whether a text without spaces looks like an address, a file name or an abbreviation. Such a
// text contains one of the characters @._\= between letters or digits.
func isAddress(field string) bool {
	inWord, joined := false, false
	for _, r := range field {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		if joined && letter {
			return true
		}
		joined = inWord && strings.ContainsRune(`@._\=`, r)
		inWord = letter
	}
	return false
}

// CanLabel reports whether a label can contain a word. The word must contain letters or emoji, at least twice as many
// as digits. It must not begin with a digit, be a single ASCII letter or exceed 40 characters.
func CanLabel(word string) bool {
	const longest = 40
	letters, digits := 0, 0
	for i, r := range word {
		switch {
		case unicode.IsLetter(r) || isEmoji(r):
			letters++
		case unicode.IsDigit(r):
			digits++
			if i == 0 {
				return false
			}
		}
	}
	return len(word) > 1 && utf8.RuneCountInString(word) <= longest && letters > 0 && letters >= 2*digits
}

// unspaced lists scripts without spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// isPlain reports whether a text is one word of ASCII digits and lower-case letters.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

// Tokenize returns the words of a text in lower case: runs of letters, marks, digits, and apostrophes between
// them. Scripts without spaces yield pairs of adjacent characters, as in search engines without a dictionary
// for them. An emoji is a word. Marks and joiners belong to the previous character.
func Tokenize(text string) []string {
	var words []string
	if isPlain(text) {
		return append(words, text)
	}
	runs := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !isMark(r) && !isEmoji(r) && r != '\'' && r != '’'
	})
	for _, run := range runs {
		if !strings.ContainsFunc(run, func(r rune) bool { return isEmoji(r) || isUnspaced(r) }) {
			words = appendWord(words, run)
			continue
		}
		word := ""
		afterEmoji := false
		var characters []string // the current run in a script without spaces
		for _, r := range run {
			switch {
			case isMark(r) && len(characters) > 0:
				characters[len(characters)-1] += string(r)
			case isMark(r):
				word += string(r)
			case isUnspaced(r):
				words, word = appendWord(words, word), ""
				characters = append(characters, string(r))
			default:
				words, characters = appendPairs(words, characters), nil
				if (afterEmoji || isEmoji(r)) && !strings.HasSuffix(word, joiner) {
					words, word = appendWord(words, word), ""
				}
				word += string(r)
				afterEmoji = isEmoji(r)
			}
		}
		words = appendPairs(appendWord(words, word), characters)
	}
	return words
}

const joiner = "\u200d" // joins several emoji into one, such as a family

func isUnspaced(r rune) bool { return r >= 0x0e00 && (unicode.In(r, unspaced...) || r == 'ー') } // 0x0e00: Thai, the lowest

// IsUnspaced reports whether a word is of a script without spaces. In such scripts Tokenize returns pairs of
// characters.
func IsUnspaced(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return isUnspaced(r)
}

func isEmoji(r rune) bool { return r >= 0x2600 && unicode.Is(unicode.So, r) }

// isMark reports whether a character is a mark, joiner or skin tone, which modify the previous character.
func isMark(r rune) bool {
	return unicode.IsMark(r) || r == 0x200c || r == 0x200d || 0x1f3fb <= r && r <= 0x1f3ff
}

func appendWord(words []string, word string) []string {
	for word := range strings.SplitSeq(strings.ReplaceAll(word, "’", "'"), "''") {
		if word = strings.Trim(word, "'"); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// appendPairs appends the pairs of adjacent characters, or the character if there is only one.
func appendPairs(words, characters []string) []string {
	if len(characters) == 1 {
		return append(words, characters[0])
	}
	for i := 1; i < len(characters); i++ {
		words = append(words, characters[i-1]+characters[i])
	}
	return words
}
