// Package text analyses texts of any language: words, phrases, the texts of each word, excerpts, and words of similar
// spelling.
//
//	terms := text.NewTerms(texts, true)
//	postings := text.NewPostings(terms)
//	for _, id := range postings.Lookup(terms, "rain") {
//		fmt.Println(terms.Words[id], postings.With(id)) // "rain" and the texts that contain it
//	}
//	excerpt, _ := text.NewLines(texts).Excerpt(texts[0], []string{"rain"}, 200)
package text

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"

	"overcomplete/internal/parallel"
)

// Terms lists the distinct words of each text, and its phrases for labels. It uses 5 bytes per distinct word of
// a text and about 80 bytes per word of the vocabulary.
type Terms struct {
	Words   []string // words in the order of their first occurrence, then phrases
	Single  int      // number of words that aren't phrases
	Starts  []int64  // start of each text in IDs
	IDs     []uint32 // distinct words of each text, then its phrases
	Counted []bool   // if forLabels: Counted[i] reports whether IDs[i] counts for labels in its text
	Counts  []int32  // by word: number of texts that count it for labels
	Beside  []int32  // if forLabels: number of texts in which each word stands beside a mail address
}

// MaxBytes is the number of bytes of a text that this package reads. It ignores the rest.
const MaxBytes = 20000

// maxTokenizers limits the memory of NewTerms: each tokenizer lists the words that it reads.
const maxTokenizers = 8

// NewTerms lists the words of texts. If forLabels is true, it also finds phrases, and the words that count for labels.
// Numbers, single ASCII letters, parts of addresses and words beside mail addresses don't count. Words in a passage of
// four words that an earlier text contains don't count either. Pairs of characters don't count, but phrases joined from
// them do.
func NewTerms(texts []string, forLabels bool) *Terms {
	b := builder{Terms: &Terms{Starts: make([]int64, 1, len(texts)+1)}, idOf: make(map[string]uint32), characters: make(map[string]uint32)}
	if forLabels {
		size := 0
		for _, text := range texts {
			size += min(len(text), MaxBytes)
		}
		b.seen = newPassages(size / 6) // about 6 bytes per word
	}
	tokenizers := make([]*tokenizer, min(runtime.GOMAXPROCS(0), maxTokenizers))
	for w := range tokenizers {
		tokenizers[w] = &tokenizer{forLabels: forLabels, idOf: make(map[string]uint32)}
	}
	tokenized := make([]tokens, min(batchTexts, len(texts)))
	for batch := range slices.Chunk(texts, batchTexts) {
		parallel.With(tokenizers, len(batch), func(t *tokenizer, i int) { t.tokenize(batch[i], &tokenized[i]) })
		for _, text := range tokenized[:len(batch)] {
			b.add(text)
			if forLabels {
				b.count(text)
			}
		}
	}
	b.Single = len(b.Words)
	if forLabels {
		b.addPhrases(b.parts, b.characters)
	}
	return b.Terms
}

// A builder adds texts to terms, one after the other.
type builder struct {
	*Terms
	idOf       map[string]uint32
	last       []int    // index in IDs of each word's last occurrence
	lastBeside []int    // number, from 2, of the last text in which each word stands beside a mail address
	canCount   []bool   // whether a label can contain the word
	words      []uint32 // all words of the last text
	seen       passages
	parts      []uint32 // see addPhrases
	characters map[string]uint32
}

// add stores all words of a text in b.words, and appends the distinct ones to b.IDs.
func (b *builder) add(text tokens) {
	b.words = b.words[:0]
	first := len(b.IDs)
	for _, local := range text.ids {
		id := text.by.ids[local]
		if id == unknownWord {
			id = b.id(text.by.words[local])
			text.by.ids[local] = id
		}
		b.words = append(b.words, id)
		if b.last[id] < first {
			b.last[id] = len(b.IDs)
			b.IDs = append(b.IDs, id)
		}
	}
	b.Starts = append(b.Starts, int64(len(b.IDs)))
}

// id returns the id of a word, and adds a new word to the vocabulary.
func (b *builder) id(word string) uint32 {
	id := b.wordID(word, b.idOf)
	if len(b.last) < len(b.Words) {
		b.last, b.lastBeside, b.canCount = append(b.last, -1), append(b.lastBeside, 0), append(b.canCount, CanLabel(word))
	}
	return id
}

// wordID returns the id of a word or phrase, and adds a new one to the words.
func (t *Terms) wordID(word string, idOf map[string]uint32) uint32 {
	id, ok := idOf[word]
	if !ok {
		id = uint32(len(t.Words))
		idOf[word] = id
		t.Words, t.Counts, t.Beside = append(t.Words, word), append(t.Counts, 0), append(t.Beside, 0)
	}
	return id
}

// count determines which words of a text count for labels, and appends the text's parts. Call count after add.
func (b *builder) count(text tokens) {
	b.Counted = append(b.Counted, make([]bool, len(b.IDs)-len(b.Counted))...)
	pair := "" // the previous word, if it is a pair of characters
	for j, id := range b.words {
		if text.beside[j] && b.lastBeside[id] < len(b.Starts) {
			b.lastBeside[id] = len(b.Starts)
			b.Beside[id]++
		}
		word := b.Words[id]
		if IsUnspaced(word) {
			b.parts = appendCharacters(b.parts, word, pair, b.characters)
			pair = word
			continue
		}
		pair = ""
		if !b.canCount[id] || text.inAddress[j] || text.beside[j] || b.seen.contains(b.words, j) {
			b.parts = append(b.parts, gap)
			continue
		}
		b.parts = append(b.parts, id)
		if at := b.last[id]; !b.Counted[at] {
			b.Counted[at] = true
			b.Counts[id]++
		}
	}
	b.parts = append(b.parts, endOfText)
	b.seen.add(b.words)
}

// batchTexts is the number of texts that the tokenizers split into words before the builder adds them.
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
	inAddress []bool // if forLabels: whether the word is part of an address
	beside    []bool // if forLabels: whether the word is up to three fields before a mail address, or up to four after it
}

// tokenize splits the first MaxBytes of a text.
func (t *tokenizer) tokenize(text string, to *tokens) {
	*to = tokens{t, to.ids[:0], to.inAddress[:0], to.beside[:0]}
	fields := strings.Fields(text[:min(len(text), MaxBytes)])
	const before, after = 3, 4
	until, next := -1, 0 // until: last field beside a mail address; next: first unchecked field
	for i, field := range fields {
		address := t.forLabels && isAddress(field)
		for ; t.forLabels && next < len(fields) && next <= i+before; next++ {
			if isMailAddress(fields[next]) {
				until = next + after
			}
		}
		for _, word := range Tokenize(field) {
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

// passages is a set of sequences of passageWords words in earlier texts, such as quotes and signatures. It sets a bit at
// the hash of each sequence. At most one in 16 new sequences is mistaken for an earlier one.
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

// contains reports whether an earlier text contains the passage around word j of a text.
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
