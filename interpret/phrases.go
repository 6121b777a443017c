package interpret

import (
	"math"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A phrase is a pair of words that are often adjacent, such as "hard drive". In scripts without spaces it is a
// word, joined from adjacent characters. The parts of a text are its words and characters. The affinity of two
// adjacent parts a and b, which occur n_a and n_b times among n parts and n_ab times together, is their NPMI,
// ln(n·n_ab/(n_a·n_b)) / ln(n/n_ab). A round joins a and b if their affinity is large, and not less than the
// affinity of b and the next part. Characters joined in one round are parts in the next. Runs of Katakana are
// always joined, because most are one loanword.
const (
	minAffinity = 0.4
	minJoined   = 2 // smallest number of occurrences of two adjacent characters
	minPhrase   = 3 // smallest number of occurrences of two adjacent words
	joinRounds  = 4 // yields words of up to 2⁴ characters

	// A Chinese part with more occurrences than this share of the number of texts joins a neighbour only if they are
	// adjacent in at least this share of its occurrences. Function characters, such as 在, therefore stay apart from
	// rare words, which may stand only beside them by chance.
	functionShare = 0.02
)

// Marks among the parts of texts.
const (
	gap       = math.MaxUint32 - 1 // replaces words that don't count for labels
	endOfText = math.MaxUint32
)

// character is a bit of the parts that are indices of characters and not ids of words. addPhrases replaces these
// indices by ids.
const character = 1 << 31

// addPhrases finds the phrases among the parts of all texts, and adds them to the terms of each text.
func (t *terms) addPhrases(parts []uint32, characters map[string]uint32) {
	idOf := make(map[string]uint32)
	for c, n := range characters {
		idOf[c] = uint32(t.single) + n
	}
	t.words = append(t.words, make([]string, len(characters))...)
	t.counts = append(t.counts, make([]int32, len(characters))...)
	t.beside = append(t.beside, make([]int32, len(characters))...)
	for c, id := range idOf {
		t.words[id] = c
	}
	for i, part := range parts {
		if part < gap && part&character != 0 {
			parts[i] = uint32(t.single) + part&^character
		}
	}
	for round := range joinRounds {
		if round == 0 || len(characters) > 0 {
			parts = t.joinParts(parts, round, idOf)
		}
	}
	old := *t
	t.starts, t.ids, t.counted = []int64{0}, make([]uint32, 0, len(old.ids)), make([]bool, 0, len(old.ids))
	last := make([]int, len(t.words)) // last text, from 1, that contains the term
	i := 0
	for text := 1; text < len(old.starts); text++ {
		lo, hi := old.starts[text-1], old.starts[text]
		t.ids, t.counted = append(t.ids, old.ids[lo:hi]...), append(t.counted, old.counted[lo:hi]...)
		for ; parts[i] != endOfText; i++ {
			if id := parts[i]; id != gap && int(id) >= t.single && last[id] < text {
				last[id] = text
				t.ids, t.counted = append(t.ids, id), append(t.counted, true)
				t.counts[id]++
			}
		}
		i++
		t.starts = append(t.starts, int64(len(t.ids)))
	}
}

// A pair counts the occurrences of two adjacent parts.
type pair struct {
	count    int
	affinity float64 // NPMI, or 0 for rare pairs
	joined   uint32  // id of the phrase, 0 before its first use
}

func pairOf(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

// joinParts replaces joined parts by phrases, in place, and adds the phrases to the words. It joins words in
// the first round only.
func (t *terms) joinParts(parts []uint32, round int, idOf map[string]uint32) []uint32 {
	pairs := t.countPairs(parts, round == 0)
	none := new(pair)
	find := func(i int) *pair {
		if i+1 < len(parts) && parts[i] < gap && parts[i+1] < gap {
			if p := pairs[pairOf(parts[i], parts[i+1])]; p != nil {
				return p
			}
		}
		return none
	}
	joined := parts[:0]
	next := find(0)
	for i := 0; i < len(parts); i++ {
		p := next
		next = find(i + 1)
		if p.affinity < minAffinity || next.affinity > p.affinity {
			joined = append(joined, parts[i])
			continue
		}
		if p.joined == 0 {
			p.joined = t.phraseID(t.words[parts[i]], t.words[parts[i+1]], idOf)
		}
		joined = append(joined, p.joined)
		i++
		next = find(i + 1)
	}
	return joined
}

// phraseID returns the id of the phrase of two parts. It adds a new phrase to the words.
func (t *terms) phraseID(a, b string, idOf map[string]uint32) uint32 {
	phrase := a + " " + b
	if isUnspacedWord(a) {
		phrase = a + b
	}
	id, ok := idOf[phrase]
	if !ok {
		id = uint32(len(t.words))
		idOf[phrase] = id
		t.words, t.counts, t.beside = append(t.words, phrase), append(t.counts, 0), append(t.beside, 0)
	}
	return id
}

// countPairs counts pairs of adjacent parts of scripts without spaces and, if words is set, of other words. It
// skips pairs with a rare hash, which removes most of the rare pairs at little cost.
func (t *terms) countPairs(parts []uint32, words bool) map[uint64]*pair {
	unspaced, katakana := make([]bool, len(t.words)), make([]bool, len(t.words))
	for id, word := range t.words {
		unspaced[id] = isUnspacedWord(word)
		katakana[id] = unspaced[id] && !strings.ContainsFunc(word, func(r rune) bool { return !isKatakana(r) })
	}
	least := func(key uint64) uint8 {
		a, b := key>>32, uint32(key)
		switch {
		case katakana[a] && katakana[b]:
			return 1
		case unspaced[a]:
			return minJoined
		}
		return minPhrase
	}
	width := max(10, bits.Len(uint(len(parts))))
	hashed := make([]uint8, 1<<width) // occurrences of pairs by their hash, at most minPhrase
	each := func(found func(key uint64, hashed *uint8)) {
		for i, a := range parts {
			if a < gap && parts[i+1] < gap && unspaced[a] == unspaced[parts[i+1]] && (words || unspaced[a]) {
				key := pairOf(a, parts[i+1])
				found(key, &hashed[key*0x9e3779b97f4a7c15>>(64-width)]) // 2⁶⁴ / golden ratio
			}
		}
	}
	each(func(_ uint64, hashed *uint8) { *hashed = min(*hashed+1, minPhrase) })
	pairs := make(map[uint64]*pair)
	each(func(key uint64, hashed *uint8) {
		if *hashed >= least(key) {
			if pairs[key] == nil {
				pairs[key] = new(pair)
			}
			pairs[key].count++
		}
	})
	counts, n := make([]float64, len(t.words)), 0.0
	for _, a := range parts {
		if a < gap {
			counts[a]++
			n++
		}
	}
	frequent := functionShare * float64(len(t.starts)-1)
	for key, p := range pairs {
		a, b := uint32(key>>32), uint32(key)
		common := a
		if counts[b] > counts[a] {
			common = b
		}
		switch least := least(key); {
		case least == 1:
			p.affinity = 1
		case isHan(t.words[common]) && counts[common] > frequent && float64(p.count) < functionShare*counts[common]:
		case p.count >= int(least):
			p.affinity = npmi(float64(p.count)/n, counts[a]/n, counts[b]/n)
		}
	}
	return pairs
}

// isHan reports whether a word begins with a Chinese character.
func isHan(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.Is(unicode.Han, r)
}

func isKatakana(r rune) bool { return r == 'ー' || unicode.Is(unicode.Katakana, r) }

// appendCharacters appends the characters of a pair. Two pairs of one run share a character, which it appends
// once. A gap separates runs.
func appendCharacters(parts []uint32, pair, before string, numbers map[string]uint32) []uint32 {
	characters := splitCharacters(pair)
	if len(characters) == 2 && before != "" && strings.HasSuffix(before, characters[0]) {
		characters = characters[1:]
	} else {
		parts = append(parts, gap)
	}
	for _, c := range characters {
		n, ok := numbers[c]
		if !ok {
			n = uint32(len(numbers))
			numbers[c] = n
		}
		parts = append(parts, character|n)
	}
	return parts
}

// splitCharacters returns the characters of a text, each with its combining marks.
func splitCharacters(text string) (characters []string) {
	start := 0
	for i, r := range text {
		if i > 0 && !isMark(r) {
			characters = append(characters, text[start:i])
			start = i
		}
	}
	return append(characters, text[start:])
}
