package text

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A phrase is a pair of words that are often adjacent, such as "hard drive". In scripts without spaces, a phrase is a
// word that is joined from adjacent characters. The parts of a text are its words, or its characters in such scripts.
// The affinity of two adjacent parts a and b is their NPMI, ln(n·n_ab/(n_a·n_b)) / ln(n/n_ab). Here n_a and n_b are their
// numbers of occurrences among n parts, and n_ab is the number of times that b follows a. A round joins a and b if their
// affinity is at least minAffinity and at least the affinity of b and the next part. Characters joined in one round are
// one part in the next. Runs of Katakana are always joined, because most are one loanword.
const (
	minAffinity = 0.4
	minJoined   = 2 // smallest number of occurrences of two adjacent characters
	minPhrase   = 3 // smallest number of occurrences of two adjacent words
	joinRounds  = 4 // yields words of up to 2⁴ characters

	// A Chinese part is frequent if it occurs more than functionShare times the number of texts. It joins a neighbour
	// only if they are adjacent in at least functionShare of its occurrences. Function characters, such as 在, therefore
	// stay apart from rare words that stand beside them by chance.
	functionShare = 0.02
)

// Special values among the parts of texts.
const (
	gap       = math.MaxUint32 - 1 // replaces words that don't count for labels
	endOfText = math.MaxUint32
)

// character is the bit that marks a part as the index of a character. A part without the bit is the id of a word.
// addPhrases replaces the indices by ids.
const character = 1 << 31

// addPhrases finds the phrases among the parts of all texts, and adds them to the terms of each text.
func (t *Terms) addPhrases(parts []uint32, characters map[string]uint32) {
	idOf := make(map[string]uint32)
	for _, c := range slices.SortedFunc(maps.Keys(characters), func(a, b string) int { return cmp.Compare(characters[a], characters[b]) }) {
		t.wordID(c, idOf)
	}
	for i, part := range parts {
		if part < gap && part&character != 0 {
			parts[i] = uint32(t.Single) + part&^character
		}
	}
	for round := range joinRounds {
		if round == 0 || len(characters) > 0 {
			parts = t.joinParts(parts, round, idOf)
		}
	}
	old := *t
	t.Starts, t.IDs, t.Counted = []int64{0}, make([]uint32, 0, len(old.IDs)), make([]bool, 0, len(old.IDs))
	last := make([]int, len(t.Words)) // number, from 1, of the last text that contains each term
	i := 0
	for text := 1; text < len(old.Starts); text++ {
		lo, hi := old.Starts[text-1], old.Starts[text]
		t.IDs, t.Counted = append(t.IDs, old.IDs[lo:hi]...), append(t.Counted, old.Counted[lo:hi]...)
		for ; parts[i] != endOfText; i++ {
			if id := parts[i]; id != gap && int(id) >= t.Single && last[id] < text {
				last[id] = text
				t.IDs, t.Counted = append(t.IDs, id), append(t.Counted, true)
				t.Counts[id]++
			}
		}
		i++
		t.Starts = append(t.Starts, int64(len(t.IDs)))
	}
}

// A pair counts the occurrences of two adjacent parts.
type pair struct {
	count    int
	affinity float64 // NPMI; 1 for two parts in Katakana; 0 for rare pairs
	joined   uint32  // id of the phrase, 0 before its first use
}

func pairOf(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

// joinParts replaces pairs of parts by phrases, in place, and adds new phrases to the words. It joins characters in each
// round, and words in round 0 only.
func (t *Terms) joinParts(parts []uint32, round int, idOf map[string]uint32) []uint32 {
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
			separator := " "
			if IsUnspaced(t.Words[parts[i]]) {
				separator = ""
			}
			p.joined = t.wordID(t.Words[parts[i]]+separator+t.Words[parts[i+1]], idOf)
		}
		joined = append(joined, p.joined)
		i++
		next = find(i + 1)
	}
	return joined
}

// countPairs counts the pairs of adjacent characters in scripts without spaces. If words is set, it also counts the pairs
// of adjacent words. It skips pairs with a rare hash, which removes most of the rare pairs at little cost.
func (t *Terms) countPairs(parts []uint32, words bool) map[uint64]*pair {
	unspaced, katakana := make([]bool, len(t.Words)), make([]bool, len(t.Words))
	for id, word := range t.Words {
		unspaced[id] = IsUnspaced(word)
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
	hashed := make([]uint8, 1<<width) // number of pairs with each hash, at most minPhrase
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
	counts, n := make([]float64, len(t.Words)), 0.0
	for _, a := range parts {
		if a < gap {
			counts[a]++
			n++
		}
	}
	frequent := functionShare * float64(len(t.Starts)-1)
	for key, p := range pairs {
		a, b := uint32(key>>32), uint32(key)
		common := a
		if counts[b] > counts[a] {
			common = b
		}
		switch least := least(key); {
		case least == 1:
			p.affinity = 1
		case isHan(t.Words[common]) && counts[common] > frequent && float64(p.count) < functionShare*counts[common]:
		case p.count >= int(least):
			p.affinity = NPMI(float64(p.count)/n, counts[a]/n, counts[b]/n)
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

// appendCharacters appends a gap and the characters of a pair. The argument before is the previous pair. If it overlaps
// the pair, appendCharacters appends only the second character.
func appendCharacters(parts []uint32, pair, before string, numbers map[string]uint32) []uint32 {
	characters := splitCharacters(pair)
	if len(characters) == 2 && before != "" && strings.HasSuffix(before, characters[0]) {
		characters = characters[1:]
	} else {
		parts = append(parts, gap)
	}
	for _, c := range characters {
		if _, ok := numbers[c]; !ok {
			numbers[c] = uint32(len(numbers))
		}
		parts = append(parts, character|numbers[c])
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

// NPMI returns the normalised pointwise mutual information of two events with probabilities a and b: −1 if
// they never occur together, 0 if they are independent, 1 if neither occurs alone.
func NPMI(both, a, b float64) float64 {
	switch both {
	case 0:
		return -1
	case 1:
		return 1
	}
	return math.Log(both/(a*b)) / -math.Log(both)
}
