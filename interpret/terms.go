package interpret

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"overcomplete/internal/parallel"
)

// terms lists the distinct words of each text, and its phrases for labels. It uses 5 bytes per distinct word of
// a text and about 80 bytes per word of the vocabulary.
type terms struct {
	words   []string // in the order of their first text, then phrases
	single  int      // number of words that aren't phrases
	starts  []int64  // start of each text in ids
	ids     []uint32 // words of each text, then its phrases
	counted []bool   // if forLabels: whether the word counts for labels in the text
	counts  []int32  // number of texts in which each word counts for labels
	beside  []int32  // if forLabels: number of texts in which each word stands beside a mail address
}

// maxTextBytes is the number of bytes that are read of a text.
const maxTextBytes = 20000

// newTerms lists the words of texts. If forLabels, it finds the words that count for labels, and phrases.
// Numbers, single ASCII letters, parts of addresses and words beside mail addresses don't count, nor do words in a
// passage of four words that an earlier text contains. Pairs of characters don't count, but phrases joined from them do.
func newTerms(texts []string, forLabels bool) *terms {
	t := &terms{starts: make([]int64, 1, len(texts)+1)}
	idOf := make(map[string]uint32)
	var last []int       // index in ids of each word's last occurrence
	var lastBeside []int // index in starts of each word's last text beside an address
	var canCount []bool
	var words []uint32 // of a text
	var seen passages
	var parts []uint32 // see addPhrases
	characters := make(map[string]uint32)
	if forLabels {
		size := 0
		for _, text := range texts {
			size += min(len(text), maxTextBytes)
		}
		seen = newPassages(size / 6) // bytes per word
	}
	tokenizers := make([]*tokenizer, runtime.GOMAXPROCS(0))
	for w := range tokenizers {
		tokenizers[w] = &tokenizer{forLabels: forLabels, idOf: make(map[string]uint32)}
	}
	tokenized := make([]tokens, min(batchTexts, len(texts)))
	for batch := range slices.Chunk(texts, batchTexts) {
		parallel.With(tokenizers, len(batch), func(t *tokenizer, i int) { t.tokenize(batch[i], &tokenized[i]) })
		for _, text := range tokenized[:len(batch)] {
			words = words[:0]
			for _, local := range text.ids {
				id := text.by.ids[local]
				if id == unknownWord {
					word, ok := text.by.words[local], false
					if id, ok = idOf[word]; !ok {
						id = uint32(len(t.words))
						idOf[word] = id
						t.words, t.counts = append(t.words, word), append(t.counts, 0)
						last, canCount = append(last, -1), append(canCount, canLabel(word))
						t.beside, lastBeside = append(t.beside, 0), append(lastBeside, 0)
					}
					text.by.ids[local] = id
				}
				words = append(words, id)
			}
			first := len(t.ids)
			for _, id := range words {
				if last[id] < first {
					last[id] = len(t.ids)
					t.ids = append(t.ids, id)
				}
			}
			t.starts = append(t.starts, int64(len(t.ids)))
			if !forLabels {
				continue
			}
			t.counted = append(t.counted, make([]bool, len(t.ids)-first)...)
			pair := "" // the previous word, if it is a pair of characters
			for j, id := range words {
				if text.beside[j] && lastBeside[id] < len(t.starts) {
					lastBeside[id] = len(t.starts)
					t.beside[id]++
				}
				switch word, at := t.words[id], last[id]; {
				case isUnspacedWord(word):
					parts = appendCharacters(parts, word, pair, characters)
					pair = word
					continue
				case !canCount[id] || text.inAddress[j] || text.beside[j] || seen.contains(words, j):
					parts = append(parts, gap)
				default:
					parts = append(parts, id)
					if !t.counted[at] {
						t.counted[at] = true
						t.counts[id]++
					}
				}
				pair = ""
			}
			parts = append(parts, endOfText)
			seen.add(words)
		}
	}
	t.single = len(t.words)
	if forLabels {
		t.addPhrases(parts, characters)
	}
	return t
}

// batchTexts is the number of texts that all processors together split into words in one step.
const batchTexts = 1 << 12

// unknownWord is the id of a word that no earlier batch contains.
const unknownWord = math.MaxUint32

// A tokenizer splits texts into words and assigns local ids to them. Global ids are assigned later, in the order
// of the texts, so that they don't depend on the number of tokenizers.
type tokenizer struct {
	forLabels bool
	idOf      map[string]uint32 // local ids
	words     []string          // by local id
	ids       []uint32          // global ids by local id, or unknownWord
}

// tokens lists the words of a text, by local ids.
type tokens struct {
	by        *tokenizer
	ids       []uint32
	inAddress []bool // if forLabels
	beside    []bool // if forLabels: up to three words before a mail address, or four after it
}

// tokenize splits the first maxTextBytes of a text.
func (t *tokenizer) tokenize(text string, to *tokens) {
	*to = tokens{t, to.ids[:0], to.inAddress[:0], to.beside[:0]}
	fields := strings.Fields(text[:min(len(text), maxTextBytes)])
	const before, after = 3, 4
	until, next := -1, 0 // last field beside a mail address, first field not yet looked at
	for i, field := range fields {
		address := t.forLabels && isAddress(field)
		for ; t.forLabels && next < len(fields) && next <= i+before; next++ {
			if isMailAddress(fields[next]) {
				until = next + after
			}
		}
		for _, word := range tokenize(field) {
			id, ok := t.idOf[word]
			if !ok {
				id = uint32(len(t.words))
				t.idOf[word] = id
				t.words, t.ids = append(t.words, word), append(t.ids, unknownWord)
			}
			to.ids, to.inAddress, to.beside = append(to.ids, id), append(to.inAddress, address), append(to.beside, i <= until)
		}
	}
}

// passages is a set of sequences of passageWords words in earlier texts, such as quotes and signatures. It sets
// a bit at the hash of each sequence. At most one in 16 new sequences has the hash of an earlier one.
type passages []uint64

const passageWords = 4

// newPassages returns an empty set with 16 bits per passage.
func newPassages(n int) passages { return make(passages, 1<<max(10, bits.Len(uint(n/4)))) }

// has reports whether the set contains a hash.
func (p passages) has(h uint64) bool { return p[h>>32%uint64(len(p))]&(1<<(h>>58)) != 0 }

func (p passages) set(h uint64) { p[h>>32%uint64(len(p))] |= 1 << (h >> 58) }

func hashWords(words []uint32) uint64 {
	h := uint64(0)
	for _, id := range words {
		h = (bits.RotateLeft64(h, 23) ^ uint64(id)) * 0x9e3779b97f4a7c15 // 2⁶⁴ / golden ratio
	}
	return h
}

// contains reports whether the passage around word j of a text is in an earlier text, too.
func (p passages) contains(words []uint32, j int) bool {
	if len(words) < passageWords {
		return false
	}
	lo := min(max(j-passageWords/2, 0), len(words)-passageWords)
	return p.has(hashWords(words[lo : lo+passageWords]))
}

func (p passages) add(words []uint32) {
	for lo := 0; lo+passageWords <= len(words); lo++ {
		p.set(hashWords(words[lo : lo+passageWords]))
	}
}

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

// canLabel reports whether a label can contain a word. The word must contain letters or emoji, at least two per
// digit, must not begin with a digit, and has at most 40 characters. It isn't a single ASCII letter.
func canLabel(word string) bool {
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

// tokenize returns the words of a text in lower case: runs of letters, marks, digits, and apostrophes between
// them. Scripts without spaces yield pairs of adjacent characters, as in search engines without a dictionary
// for them. An emoji is a word. Marks and joiners belong to the previous character.
func tokenize(text string) []string {
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
		var characters []string // of a script without spaces
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

// isUnspacedWord reports whether a word is of a script without spaces. In such scripts tokenize returns pairs of
// characters.
func isUnspacedWord(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return isUnspaced(r)
}

func isEmoji(r rune) bool { return r >= 0x2600 && unicode.Is(unicode.So, r) }

// isMark reports whether a character modifies the previous one: marks, joiners and skin tones.
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

// appendPairs appends the pairs of adjacent characters, or a single character.
func appendPairs(words, characters []string) []string {
	if len(characters) == 1 {
		return append(words, characters[0])
	}
	for i := 1; i < len(characters); i++ {
		words = append(words, characters[i-1]+characters[i])
	}
	return words
}
