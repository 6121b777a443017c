package text

import (
	"cmp"
	"slices"
	"strings"
)

// Postings lists the texts of each word, in row order. It uses 4 bytes per distinct word of a text, and 4 per text.
type Postings struct {
	sorted []uint32 // ids of words, without phrases, in alphabetical order
	starts []int64  // start of each word's rows in texts
	texts  []int32  // rows

	Lengths    []int32 // number of distinct words of each text, without phrases
	MeanLength float64
}

func NewPostings(t *Terms) *Postings {
	p := &Postings{
		sorted: make([]uint32, t.Single), starts: make([]int64, len(t.Words)+1),
		texts: make([]int32, len(t.IDs)), Lengths: make([]int32, len(t.Starts)-1),
	}
	for i := range p.sorted {
		p.sorted[i] = uint32(i)
	}
	slices.SortFunc(p.sorted, func(a, b uint32) int { return cmp.Compare(t.Words[a], t.Words[b]) })
	for _, id := range t.IDs {
		p.starts[id+1]++
	}
	for id := range t.Words {
		p.starts[id+1] += p.starts[id]
	}
	next := slices.Clone(p.starts)
	for i := range len(t.Starts) - 1 {
		for _, id := range t.IDs[t.Starts[i]:t.Starts[i+1]] {
			p.texts[next[id]] = int32(i)
			next[id]++
			if int(id) < t.Single {
				p.Lengths[i]++
			}
		}
		p.MeanLength += float64(p.Lengths[i]) / float64(len(p.Lengths))
	}
	return p
}

// With returns the rows of the texts that contain a word.
func (p *Postings) With(id uint32) []int32 { return p.texts[p.starts[id]:p.starts[id+1]] }

// Lookup returns the id of a word. If no text contains it, Lookup returns the ids of up to 200 words that begin with it,
// in alphabetical order.
func (p *Postings) Lookup(t *Terms, word string) []uint32 {
	const most = 200
	i, found := slices.BinarySearchFunc(p.sorted, word, func(id uint32, word string) int { return cmp.Compare(t.Words[id], word) })
	if found {
		return p.sorted[i : i+1]
	}
	n := 0
	for n < most && i+n < len(p.sorted) && strings.HasPrefix(t.Words[p.sorted[i+n]], word) {
		n++
	}
	return p.sorted[i : i+n]
}
