package interpret

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"strings"

	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
)

const (
	labelWords = 3  // words of a label
	maxWords   = 20 // words that describe a group, its label first

	// Least score of a word, as a share of the group's best.
	minLabelScore = 0.25
	minScore      = 0.01
)

// GroupLabels returns a label for each group of rows: up to n words, best first. Group g consists of
// the rows i with groups[i] = g; a row of −1 belongs to none. Two groups share a word only
// if one would have none otherwise.
//
// If rows are texts, the words are common in the group and rare outside, and occur together. The first
// has the largest score
//
//	κ · √(t_w / t_g)
//
// κ is Cohen's kappa of "the text is in the group" and "the text contains the word", the F1 with which
// the word finds the group, corrected for chance. t is the mean cosine of the codes of any two texts
// that contain the word, or are in the group, above that of all texts; the ratio is at most 1. It is
// small for stop words of any language, headers and signatures, which all kinds of texts contain. Other
// words of the label maximise score · (1 + NPMI)⁵, with the mean normalised pointwise mutual
// information of the word and those before (Bouma 2009). A phrase such as "hard drive", of words that are
// often adjacent, takes the place of its words if its score is at least 0.9 times that of one of them and half
// of that of the other. The beginning of a text is the label of a group without words, and the name of a row
// takes the place of a word in a label that another group has. Of more than 20,000 texts a sample is counted.
//
// If rows are words, the label consists of those nearest to the sum of the group's codes.
func (x *Index) GroupLabels(groups []int32, n int) [][]string {
	count := slices.Max(append(slices.Clone(groups), -1)) + 1
	rows := rowsOf(groups, int(count))
	labels := make([][]string, len(rows))
	if x.Codes.Texts == nil {
		parallel.Each(context.Background(), len(rows), func(g int) { labels[g] = x.centralWords(rows[g], n) })
		return labels
	}
	s := x.sample()
	sampled := make([]int32, len(s.rows))
	for i, row := range s.rows {
		sampled[i] = groups[row]
	}
	inSample := rowsOf(sampled, len(rows))
	for g, d := range s.describe(inSample, n, true) {
		if len(inSample[g]) == 0 && len(rows[g]) > 0 {
			d = x.nameOnly(int(rows[g][0]))
		}
		labels[g] = d.words[:d.label]
	}
	return labels
}

// rowsOf returns the rows of each of n groups.
func rowsOf(groups []int32, n int) [][]int32 {
	rows := make([][]int32, n)
	for i, g := range groups {
		if g >= 0 {
			rows[g] = append(rows[g], int32(i))
		}
	}
	return rows
}

// centralWords returns the n words among rows whose codes have the largest cosines with the sum of all
// their codes, each divided by its norm.
func (x *Index) centralWords(rows []int32, n int) []string {
	sums := make([]float64, x.Codes.Cols)
	for _, i := range rows {
		code := x.Code(int(i))
		for j, k := range code.Index {
			sums[k] += float64(code.Value[j]) / x.norms[i]
		}
	}
	found := x.newRanking(4 * n)
	for _, i := range rows {
		product := 0.0
		code := x.Code(int(i))
		for j, k := range code.Index {
			product += sums[k] * float64(code.Value[j]) / x.norms[i]
		}
		found.add(int(i), product)
	}
	words := []string{}
	for _, i := range found.sorted() {
		if word := x.Codes.Words[i.Index]; len(words) < n && !sharesPrefix(word, words) {
			words = append(words, word)
		}
	}
	return words
}

// A candidate is a word that can describe a group.
type candidate struct {
	id       uint32
	score    float64
	cohesion float64 // sum of the NPMI with the words of the label
}

// A description is up to maxWords words for a group, the label first.
type description struct {
	words []string
	label int // the number of its words
}

// nameOnly returns a description that consists of the beginning of a text and the name of its row.
func (x *Index) nameOnly(row int) description {
	return description{[]string{beginning(x.Codes.Texts.Text[row]), x.Codes.Words[row]}, 2}
}

// describe returns words for each group of texts, with a label of up to n words. If exclusive, a word
// describes only the group for which its score is largest, unless another would have no words. Labels differ.
func (x *Index) describe(groups [][]int32, n int, exclusive bool) []description {
	t, p := x.terms(), x.postings()
	counters := make([]*counter, runtime.GOMAXPROCS(0))
	for w := range counters {
		counters[w] = &counter{counts: make([]int32, len(t.words)), marked: make([]bool, x.Codes.Rows), sums: make([]float64, x.Codes.Cols)}
	}
	candidates := make([][]candidate, len(groups))
	parallel.With(counters, len(groups), func(c *counter, g int) {
		if candidates[g] = c.candidates(t, p, groups[g], false); len(candidates[g]) == 0 {
			candidates[g] = c.candidates(t, p, groups[g], true) // of texts that repeat earlier ones
		}
	})

	tightness := make([]float64, len(t.words))
	var ids []uint32
	for _, list := range candidates {
		for _, c := range list {
			if tightness[c.id] == 0 {
				tightness[c.id] = 1 // is among ids
				ids = append(ids, c.id)
			}
		}
	}
	parallel.With(counters, len(ids), func(c *counter, i int) { tightness[ids[i]] = x.tightness(p.with(ids[i]), c.sums) })
	parallel.With(counters, len(groups), func(c *counter, g int) {
		whole := x.tightness(groups[g], c.sums)
		for i := range candidates[g] {
			c := &candidates[g][i]
			if t := tightness[c.id]; whole > 0 && t < whole {
				c.score *= math.Sqrt(max(t/whole, minTightness))
			}
		}
		candidates[g] = keepPhrases(t, candidates[g])
		slices.SortFunc(candidates[g], func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
		})
	})
	if exclusive {
		divideWords(candidates)
	}
	descriptions := make([]description, len(groups))
	parallel.With(counters, len(groups), func(c *counter, g int) { descriptions[g] = c.choose(t, p, candidates[g], n) })
	taken := map[string]bool{}
	for g := range descriptions {
		x.distinguish(&descriptions[g], groups[g], n, taken)
	}
	return descriptions
}

// divideWords leaves a word to the group for which it has the largest score, unless another group has
// no words then.
func divideWords(candidates [][]candidate) {
	type claim struct {
		group int
		score float64
	}
	best := map[uint32]claim{}
	for g, list := range candidates {
		for _, c := range list {
			if c.score > best[c.id].score {
				best[c.id] = claim{g, c.score}
			}
		}
	}
	for g, list := range candidates {
		var own []candidate
		for _, c := range list {
			if best[c.id].group == g {
				own = append(own, c)
			}
		}
		if len(own) > 0 {
			candidates[g] = own
		}
	}
}

// distinguish makes a label differ from those taken, and adds it to them: by another last word or, for
// want of words, by the name of a row. A group of texts without words is labelled by the beginning of one.
func (x *Index) distinguish(d *description, group []int32, n int, taken map[string]bool) {
	if d.label == 0 && len(group) > 0 {
		d.words, d.label = []string{beginning(x.Codes.Texts.Text[group[0]])}, 1
	}
	label := func() string { return strings.Join(d.words[:d.label], " ") }
	last := min(d.label, n-1) // its place in the words
	for i := d.label; i < len(d.words) && taken[label()]; i++ {
		d.words[last], d.words[i] = d.words[i], d.words[last]
		d.label = last + 1
	}
	described := d.words
	for i := 0; i < len(group) && taken[label()]; i++ {
		d.words = slices.Insert(slices.Clone(described), last, x.Codes.Words[group[i]])
		d.label = last + 1
	}
	taken[label()] = true
}

// beginning returns the first characters of a text on one line, or "(empty)".
func beginning(text string) string {
	const most = 20
	runes := []rune(strings.Join(strings.Fields(text[:min(len(text), maxTextBytes)]), " "))
	switch {
	case len(runes) == 0:
		return "(empty)"
	case len(runes) > most:
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// maxTightTexts is the number of texts of a word or group whose codes are compared.
const maxTightTexts = 200

// minTightness is the least share of a group's tightness that counts for a word.
const minTightness = 0.02

// tightness returns the mean cosine of the codes of any two rows above that of all, and 0 for fewer than
// two rows.
func (x *Index) tightness(rows []int32, sums []float64) float64 {
	if len(rows) < 2 {
		return 0
	}
	if n := len(rows); n > maxTightTexts {
		sample := make([]int32, maxTightTexts)
		for i := range sample {
			sample[i] = rows[i*n/maxTightTexts]
		}
		rows = sample
	}
	return x.meanCosineOf(rows, -1, sums) - x.meanCosine()
}

// A counter counts words of texts and texts of words.
type counter struct {
	counts []int32 // of each word
	seen   []uint32
	marked []bool // rows
	sums   []float64
}

// maxCandidates is the number of words of a group that tightness and NPMI are computed of.
const maxCandidates = 60

// candidates returns the words with the largest κ for a group of texts. A word of a larger group is in
// two of its texts or more. If repeated, words in repeated passages and addresses count, too.
func (c *counter) candidates(t *terms, p *postings, group []int32, repeated bool) []candidate {
	c.seen = c.seen[:0]
	for _, i := range group {
		for at := t.starts[i]; at < t.starts[i+1]; at++ {
			if id := t.ids[at]; repeated || t.counted[at] {
				if c.counts[id]++; c.counts[id] == 1 {
					c.seen = append(c.seen, id)
				}
			}
		}
	}
	minCount := int32(1)
	if len(group) >= 4 {
		minCount = 2
	}
	found := ranking.Ranking{N: maxCandidates}
	total, inside := float64(len(c.marked)), float64(len(group))
	for _, id := range c.seen {
		both, with := float64(c.counts[id]), float64(t.counts[id])
		if repeated {
			with = float64(len(p.with(id)))
		}
		kappa := 2 * (both*total - inside*with) / (inside*(total-with) + with*(total-inside))
		if c.counts[id] >= minCount && kappa > 0 && canLabel(t.words[id]) {
			found.Add(ranking.Item{Index: int(id), Score: kappa})
		}
		c.counts[id] = 0
	}
	var list []candidate
	for _, i := range found.Items() {
		list = append(list, candidate{id: uint32(i.Index), score: i.Score})
	}
	return list
}

// choose returns a label of up to n words and, after them, others in decreasing order of score.
func (c *counter) choose(t *terms, p *postings, candidates []candidate, n int) description {
	var d description
	for len(d.words) < maxWords {
		inLabel := d.label == len(d.words) && d.label < n
		best, bestValue := -1, 0.0
		for i, w := range candidates {
			value, least := w.score, minScore
			if inLabel {
				value *= math.Pow(1+w.cohesion/float64(max(d.label, 1)), 5)
				least = minLabelScore
			}
			if value > bestValue && w.score >= least*candidates[0].score && !sharesWord(t.words[w.id], d.words) {
				best, bestValue = i, value
			}
		}
		if best >= 0 {
			best = phraseOf(t, candidates, best)
		}
		switch {
		case best >= 0:
			d.words = append(d.words, t.words[candidates[best].id])
			if inLabel {
				d.label++
				c.addCohesion(p, candidates, candidates[best].id)
			}
		case inLabel:
			n = d.label // the label is complete
		default:
			return d
		}
	}
	return d
}

// keepPhrases returns the candidates without the phrases that have a word that isn't a candidate, or a score
// less than nine tenths of that of their worse word or half of that of the better one.
func keepPhrases(t *terms, candidates []candidate) []candidate {
	scores := make(map[string]float64, len(candidates))
	for _, c := range candidates {
		scores[t.words[c.id]] = c.score
	}
	return slices.DeleteFunc(candidates, func(c candidate) bool {
		first, second, isPhrase := strings.Cut(t.words[c.id], " ")
		a, b := scores[first], scores[second]
		return isPhrase && (a == 0 || b == 0 || c.score < max(0.9*min(a, b), 0.5*max(a, b)))
	})
}

// phraseOf returns the first candidate that is a phrase with the word of candidate i, or i.
func phraseOf(t *terms, candidates []candidate, i int) int {
	word := t.words[candidates[i].id]
	for j, c := range candidates {
		if a, b, isPhrase := strings.Cut(t.words[c.id], " "); isPhrase && (a == word || b == word) {
			return j
		}
	}
	return i
}

// sharesWord reports whether a word of a phrase begins like one of the others or, in a script without spaces,
// is part of another or the reverse.
func sharesWord(phrase string, others []string) bool {
	for _, other := range others {
		if isPair(phrase) && (strings.Contains(phrase, other) || strings.Contains(other, phrase)) {
			return true
		}
		for part := range strings.FieldsSeq(phrase) {
			if sharesPrefix(part, strings.Fields(other)) {
				return true
			}
		}
	}
	return false
}

// addCohesion adds the NPMI of each candidate and a word.
func (c *counter) addCohesion(p *postings, candidates []candidate, word uint32) {
	texts := p.with(word)
	for _, i := range texts {
		c.marked[i] = true
	}
	total := float64(len(c.marked))
	for i := range candidates {
		both := 0
		with := p.with(candidates[i].id)
		for _, text := range with {
			if c.marked[text] {
				both++
			}
		}
		candidates[i].cohesion += npmi(float64(both)/total, float64(len(texts))/total, float64(len(with))/total)
	}
	for _, i := range texts {
		c.marked[i] = false
	}
}

// npmi returns the normalised pointwise mutual information of two events: −1 if they never occur
// together, 0 by chance, 1 if neither occurs alone.
func npmi(both, a, b float64) float64 {
	switch both {
	case 0:
		return -1
	case 1:
		return 1
	}
	return math.Log(both/(a*b)) / -math.Log(both)
}
