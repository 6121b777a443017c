package interpret

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/internal/text"
)

const (
	labelWords = 3  // largest number of words of a label
	maxWords   = 20 // largest number of words that describe a group, including its label

	// The score of a word must be at least this share of the largest score in the group.
	minLabelScore = 0.1  // for words of the label
	minScore      = 0.01 // for the other words of a description

	// A word can describe every range of groups in which its score is at least sharedScore times its largest score.
	sharedScore = 0.6

	// labelWeight is the weight of κ_l in the second formula of GroupLabels. A weight of 1 favours words that many
	// labels could have. A weight of 0 favours words that resemble the other words of the label.
	labelWeight = 0.9

	// If the words of a label occur in a smaller share of a group's texts than minReach, scores are lowered.
	minReach = 0.15
)

// GroupLabels returns a label for each group of rows: up to n > 0 words, best first. The half-open intervals ranges say
// which groups are nested: ranges[g] contains the intervals of the groups within g. If ranges is nil, no group contains
// another. A word can label the group where its score is largest, the groups that contain that group, and groups where its
// score is at least 0.6 times the largest. It can label another group only if that group would otherwise have no words.
//
// If rows are texts, the words are common in the group, rare outside, and occur together. The first word
// has the largest score
//
//	κ · √(t_w / t_g)
//
// κ is Cohen's kappa of "the text is in the group" and "the text contains the word". It is the F1 of the
// word as a classifier of the group, corrected for chance. The tightness of a set of texts is the mean cosine
// of the codes of all its pairs, minus the mean over the pairs of all texts: t_w for the texts that contain the
// word, and t_g for the group. The ratio is limited to the range from 0.02 to 1. It is small for stop words of
// any language, headers and signatures, which all kinds of texts contain.
//
// The other words of the label maximise
//
//	(κ′ − 0.9·κ_l) · √(t_w / t_g) · (1 + NPMI)⁶
//
// κ′ is the κ of "the text contains the word or an earlier word of the label", and κ_l the κ of "the text contains an
// earlier word of the label". NPMI is the mean normalised pointwise mutual information of the word and each earlier word
// (Bouma 2009). The words of a label thus cover most texts of the group, and occur together. If only a
// share r < 0.15 of the group's texts contains the new word or an earlier one, the first formula is multiplied by
// r/0.15, and the second by (r/0.15)⁸.
//
// A phrase of two words that are often adjacent, such as "hard drive", replaces these if its score is at least 0.9 times
// the lower of their scores and at least 0.5 times the higher. If a group has no words, its label is the beginning of
// its first text. If two labels would be the same, another word replaces the last word of one. If there is no other
// word, the labels stay the same, and [Distinct] can number them. GroupLabels counts words in at most 20,000 texts.
//
// If rows are words, the label consists of the words nearest to the sum of the group's codes.
//
// GroupLabels also returns the share of each group's texts that contain a word of the label. It is 1 if rows are words or
// the label is the beginning of a text.
func (x *Index) GroupLabels(groups [][]int32, ranges [][2]int32, n int) (labels [][]string, reach []float64) {
	if ranges == nil {
		for g := range int32(len(groups)) {
			ranges = append(ranges, [2]int32{g, g + 1})
		}
	}
	labels, reach = make([][]string, len(groups)), slices.Repeat([]float64{1}, len(groups))
	if x.Codes.Texts == nil {
		parallel.Each(context.Background(), len(groups), func(g int) { labels[g] = x.centralWords(groups[g], n) })
		return labels, reach
	}
	descriptions := x.sample().describe(x.sampled(groups), ranges, n, x.isStop)
	for g, d := range descriptions {
		if d.label == 0 && len(groups[g]) > 0 {
			d = describeBy(x.Codes.Texts.Text[groups[g][0]])
		}
		labels[g], reach[g] = d.words[:d.label], d.reach
	}
	return labels, reach
}

// centralWords returns the n words among rows whose codes have the largest cosines with the sum of the rows'
// normalised codes.
func (x *Index) centralWords(rows []int32, n int) []string {
	found := x.newRanking(4 * n)
	for j, product := range Centrality(x, rows) {
		found.add(int(rows[j]), product)
	}
	words := []string{}
	for _, i := range found.sorted() {
		if word := x.Codes.IDs[i.Index]; len(words) < n && !sharesPrefix(word, words) {
			words = append(words, word)
		}
	}
	return words
}

// A candidate is a word that can describe a group.
type candidate struct {
	id       uint32
	score    float64 // κ · tight
	tight    float64 // √(t_w / t_g), see GroupLabels
	cohesion float64 // sum of the NPMI with each word of the label
}

// A description lists up to maxWords words for a group. The first words are the label.
type description struct {
	words []string
	label int     // number of words of the label
	reach float64 // share of the group's texts that contain a word of the label
}

// describeBy returns the description of a group without words, by the beginning of one of its texts.
func describeBy(text string) description { return description{[]string{beginning(text)}, 1, 1} }

// Distinct returns the labels, and numbers repeated labels. A label is a list of words, and the number follows the last
// word: "rain", "rain (2)", "rain (3)". Empty labels get no numbers.
func Distinct(labels [][]string) [][]string {
	distinct := slices.Clone(labels)
	uses := map[string]int{}
	for i, words := range labels {
		if len(words) == 0 {
			continue
		}
		last, label := len(words)-1, strings.Join(words, ", ")
		name := label
		for uses[name] > 0 {
			uses[label]++
			distinct[i] = append(slices.Clone(words[:last]), fmt.Sprintf("%s (%d)", words[last], uses[label]))
			name = strings.Join(distinct[i], ", ")
		}
		uses[name]++
	}
	return distinct
}

// describe returns a description of each group of texts, with a label of up to n words. Labels differ if the groups
// have enough words. If ranges isn't nil, ranges[g] is the range of group g, and divideWords selects the groups that a
// word can describe. Words for which isStop returns true describe no group.
func (x *Index) describe(groups [][]int32, ranges [][2]int32, n int, isStop func(word string) bool) []description {
	t, p := x.terms(), x.postings()
	counters := make([]*counter, min(runtime.GOMAXPROCS(0), maxCounters))
	for w := range counters {
		counters[w] = &counter{isStop: isStop, counts: make([]int32, len(t.Words)), all: make([]int32, len(t.Words)), inGroup: make([]bool, x.Codes.Rows), labelled: make([]bool, x.Codes.Rows), marked: make([]bool, x.Codes.Rows), sums: make([]float64, x.Codes.Cols)}
	}
	candidates := make([][]candidate, len(groups))
	parallel.With(counters, len(groups), func(c *counter, g int) {
		if candidates[g] = c.candidates(t, p, groups[g], false); len(candidates[g]) == 0 {
			candidates[g] = c.candidates(t, p, groups[g], true) // for a group whose texts repeat earlier texts
		}
	})

	tightness := make([]float64, len(t.Words))
	var ids []uint32
	for _, list := range candidates {
		for _, c := range list {
			if tightness[c.id] == 0 {
				tightness[c.id] = 1 // marks the id as an element of ids
				ids = append(ids, c.id)
			}
		}
	}
	parallel.With(counters, len(ids), func(c *counter, i int) { tightness[ids[i]] = x.tightness(p.With(ids[i]), c.sums) })
	parallel.With(counters, len(groups), func(c *counter, g int) {
		ofGroup := x.tightness(groups[g], c.sums)
		for i := range candidates[g] {
			c := &candidates[g][i]
			if t := tightness[c.id]; ofGroup > 0 && t < ofGroup {
				c.tight = math.Sqrt(max(t/ofGroup, minTightness))
				c.score *= c.tight
			}
		}
		candidates[g] = keepPhrases(t, candidates[g])
		slices.SortFunc(candidates[g], func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
		})
	})
	order := make([]int, len(groups))
	for g := range order {
		order[g] = g
	}
	if ranges != nil {
		divideWords(candidates, ranges)
		slices.SortStableFunc(order, func(a, b int) int { // wide ranges first, so that they keep their labels
			return cmp.Compare(ranges[b][1]-ranges[b][0], ranges[a][1]-ranges[a][0])
		})
	}
	descriptions := make([]description, len(groups))
	parallel.With(counters, len(groups), func(c *counter, g int) { descriptions[g] = c.choose(t, p, groups[g], candidates[g], n) })
	taken := map[string]bool{}
	for _, g := range order {
		distinguish(&descriptions[g], n, taken)
	}
	return descriptions
}

// divideWords keeps a word only in the group where the word's score is largest, in groups whose ranges contain the
// range of that group, and in groups where the score is at least sharedScore times as large. A group that would lose all words keeps them.
func divideWords(candidates [][]candidate, ranges [][2]int32) {
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
			home := ranges[best[c.id].group]
			if c.score >= sharedScore*best[c.id].score || ranges[g][0] <= home[0] && home[1] <= ranges[g][1] {
				own = append(own, c)
			}
		}
		if len(own) > 0 {
			candidates[g] = own
		}
	}
}

// distinguish replaces the last word of a label by another word until no label in taken has the same words. It then
// adds the label to taken.
func distinguish(d *description, n int, taken map[string]bool) {
	label := func() string { return strings.Join(slices.Sorted(slices.Values(d.words[:d.label])), " ") }
	last := min(d.label, n-1) // index of the last word
	for i := d.label; i < len(d.words) && taken[label()]; i++ {
		d.words[last], d.words[i] = d.words[i], d.words[last]
		d.label = last + 1
	}
	taken[label()] = true
}

// beginning returns up to 21 characters of s on one line, or "(empty)".
func beginning(s string) string {
	line := strings.Join(strings.Fields(s[:min(len(s), text.MaxBytes)]), " ")
	return cmp.Or(text.Truncate(line, 21), "(empty)")
}

// maxTightTexts is the largest number of texts that tightness compares.
const maxTightTexts = 200

// minTightness is the lower limit of t_w / t_g in scores; see GroupLabels.
const minTightness = 0.02

// tightness returns the mean cosine of all pairs of the given rows' codes, minus the mean cosine of all pairs of the
// index. It returns 0 for fewer than two rows. The argument sums, of length K, is scratch space.
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

// maxCounters limits the memory of describe: each counter needs 8 bytes per word.
const maxCounters = 8

// A counter is the scratch space of one goroutine that describes groups.
type counter struct {
	isStop func(word string) bool
	counts []int32  // by word: number of the group's texts in which the word counts for labels
	all    []int32  // by word: number of the group's texts that contain the word
	seen   []uint32 // words of the group
	marked []bool   // by row, for addCohesion: whether the text contains the word

	inGroup, labelled []bool    // by row, for chooseLabel: whether the text is in the group; has a word of the label
	sums              []float64 // by dimension, for tightness
}

// maxCandidates is the largest number of words of a group for which tightness and NPMI are computed.
const maxCandidates = 60

// A word of repeated passages counts, too, if a share above formulaShare of a group's texts and a share above
// formulaTexts of all texts contain it. Such a passage is a formula, as in financial news, not a quotation or a
// signature.
//
// A word is left out if less than minPrecision of its texts are in the group. If less than fullPrecision are, its score
// is lowered so much that it is chosen only if better words are lacking. If texts outside the group contain the word,
// its odds ratio, lowered by two standard errors, must be at least minOdds. This leaves out function words of any
// language, which all groups contain, and words that are frequent in a group of few texts by chance.
const (
	formulaShare  = 0.25
	formulaTexts  = 0.01
	minPrecision  = 0.15
	fullPrecision = 0.3
	minOdds       = 4
)

// candidates returns the words with the largest κ for a group of texts. If a group has four texts or more, a word must
// occur in at least two of them. Names (words that stand beside addresses in most of their texts) are left out. If
// repeated is true, names, words of repeated passages and words of addresses count, too.
func (c *counter) candidates(t *text.Terms, p *text.Postings, group []int32, repeated bool) []candidate {
	c.seen = c.seen[:0]
	for _, i := range group {
		for at := t.Starts[i]; at < t.Starts[i+1]; at++ {
			id := t.IDs[at]
			if c.all[id]++; c.all[id] == 1 {
				c.seen = append(c.seen, id)
			}
			if repeated || t.Counted[at] {
				c.counts[id]++
			}
		}
	}
	minCount := 1.
	if len(group) >= 4 {
		minCount = 2
	}
	found := ranking.Ranking{N: maxCandidates}
	total, inside := float64(len(c.marked)), float64(len(group))
	for _, id := range c.seen {
		both, with := float64(c.counts[id]), float64(t.Counts[id])
		if repeated {
			with = float64(len(p.With(id)))
		}
		if all := float64(len(p.With(id))); t.Counts[id] > 0 && float64(c.all[id]) > formulaShare*inside && all > formulaTexts*total {
			both, with = float64(c.all[id]), all
		}
		kappa := kappaOf(both, inside, with, total)
		isName := t.Beside[id] >= t.Counts[id] && t.Beside[id] > 1
		if both >= minCount && kappa > 0 && both >= minPrecision*with && distinguishes(both, inside, with, total) && (repeated || !isName) && text.CanLabel(t.Words[id]) && !c.isStop(t.Words[id]) {
			found.Add(ranking.Item{Index: int(id), Score: kappa * math.Pow(min(1, both/with/fullPrecision), 6)})
		}
		c.counts[id], c.all[id] = 0, 0
	}
	var list []candidate
	for _, i := range found.Items() {
		list = append(list, candidate{id: uint32(i.Index), score: i.Score, tight: 1})
	}
	return list
}

// distinguishes reports whether all texts with property b also have property a, or whether the odds ratio of a and b,
// lowered by two standard errors, is at least minOdds. The ratio is computed from four numbers of texts, each increased
// by 1/2 (Haldane 1956).
func distinguishes(both, a, b, total float64) bool {
	w, x, y, z := both+0.5, a-both+0.5, b-both+0.5, total-a-b+both+0.5
	return both == b || math.Log(w*z/(x*y))-2*math.Sqrt(1/w+1/x+1/y+1/z) >= math.Log(minOdds)
}

// kappaOf returns Cohen's κ of properties a and b. The arguments count the texts with both, with a, with b, and all.
func kappaOf(both, a, b, total float64) float64 {
	return 2 * (both*total - a*b) / (a*(total-b) + b*(total-a))
}

// choose returns a label of up to n words for a group, followed by other words in decreasing order of score.
func (c *counter) choose(t *text.Terms, p *text.Postings, group []int32, candidates []candidate, n int) description {
	d := c.chooseLabel(t, p, group, candidates, n)
	for i, w := range candidates {
		if len(d.words) < maxWords && w.score >= minScore*candidates[0].score && !sharesWord(t.Words[w.id], d.words) {
			d.words = append(d.words, t.Words[candidates[phraseOf(t, candidates, i)].id])
		}
	}
	return d
}

// chooseLabel returns a label of up to n words for a group.
func (c *counter) chooseLabel(t *text.Terms, p *text.Postings, group []int32, candidates []candidate, n int) (d description) {
	clear(c.labelled)
	clear(c.inGroup)
	for _, i := range group {
		c.inGroup[i] = true
	}
	total, inside := float64(len(c.marked)), float64(len(group))
	both, with, kappa := 0.0, 0.0, 0.0 // texts with a word of the label: in the group, in total; their κ
	for d.label < n {
		best, bestValue := -1, 0.0
		for i, w := range candidates {
			more, all := c.countNew(p.With(w.id))
			reach := min(1, (both+more)/(minReach*inside))
			value := w.score * reach
			if d.label > 0 {
				gain := kappaOf(both+more, inside, with+all, total) - labelWeight*kappa
				value = gain * w.tight * math.Pow(1+w.cohesion/float64(d.label), 6) * math.Pow(reach, 8)
			}
			if value > bestValue && w.score >= minLabelScore*candidates[0].score && !sharesWord(t.Words[w.id], d.words) {
				best, bestValue = i, value
			}
		}
		if best < 0 {
			break
		}
		id := candidates[phraseOf(t, candidates, best)].id
		d.words = append(d.words, t.Words[id])
		d.label++
		c.addCohesion(p, candidates, id)
		more, all := c.countNew(p.With(id))
		both, with = both+more, with+all
		kappa = kappaOf(both, inside, with, total)
		d.reach = both / inside
		for _, i := range p.With(id) {
			c.labelled[i] = true
		}
	}
	return d
}

// countNew counts the given texts that contain no word of the label, in the group and in total.
func (c *counter) countNew(texts []int32) (inGroup, all float64) {
	for _, i := range texts {
		if !c.labelled[i] {
			all++
			if c.inGroup[i] {
				inGroup++
			}
		}
	}
	return inGroup, all
}

// keepPhrases removes phrases that can't replace their words. Both words of a phrase must be candidates, and the
// phrase's score must be at least 0.9 times the lower of their scores and at least 0.5 times the higher.
func keepPhrases(t *text.Terms, candidates []candidate) []candidate {
	scores := make(map[string]float64, len(candidates))
	for _, c := range candidates {
		scores[t.Words[c.id]] = c.score
	}
	return slices.DeleteFunc(candidates, func(c candidate) bool {
		first, second, isPhrase := strings.Cut(t.Words[c.id], " ")
		a, b := scores[first], scores[second]
		return isPhrase && (a == 0 || b == 0 || c.score < max(0.9*min(a, b), 0.5*max(a, b)))
	})
}

// phraseOf returns the index of the first candidate that is a phrase and contains the word of candidate i. If there is
// no such phrase, it returns i.
func phraseOf(t *text.Terms, candidates []candidate, i int) int {
	word := t.Words[candidates[i].id]
	for j, c := range candidates {
		if a, b, isPhrase := strings.Cut(t.Words[c.id], " "); isPhrase && (a == word || b == word) {
			return j
		}
	}
	return i
}

// sharesWord reports whether a word of the phrase shares a prefix with a word of any element of others. In a script
// without spaces, it also returns true if the phrase contains an element of others, or an element contains the phrase.
func sharesWord(phrase string, others []string) bool {
	for _, other := range others {
		if text.IsUnspaced(phrase) && (strings.Contains(phrase, other) || strings.Contains(other, phrase)) {
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

// addCohesion adds the NPMI of each candidate and the given word to the candidate's cohesion.
func (c *counter) addCohesion(p *text.Postings, candidates []candidate, word uint32) {
	texts := p.With(word)
	for _, i := range texts {
		c.marked[i] = true
	}
	total := float64(len(c.marked))
	for i := range candidates {
		both := 0
		with := p.With(candidates[i].id)
		for _, text := range with {
			if c.marked[text] {
				both++
			}
		}
		candidates[i].cohesion += text.NPMI(float64(both)/total, float64(len(texts))/total, float64(len(with))/total)
	}
	for _, i := range texts {
		c.marked[i] = false
	}
}
