package interpret

import (
	"context"
	"math"
	"slices"
	"unicode"

	"gonum.org/v1/gonum/floats"

	"overcomplete/internal/parallel"
)

// A Pole is the positive or the negative end of a dimension. The two poles have different meanings.
type Pole struct {
	Dimension int
	Negative  bool
}

// An Entry is the value of a row in a dimension.
type Entry struct {
	Row   int
	Value float32
}

// Poles returns the poles of dimension k that have nonzeros, first the pole with the largest absolute value.
func (x *Index) Poles(k int) []Pole {
	largest, smallest := float32(0), float32(0)
	for _, v := range x.Values(k) {
		largest, smallest = max(largest, v), min(smallest, v)
	}
	var poles []Pole
	if largest > 0 {
		poles = append(poles, Pole{k, false})
	}
	if smallest < 0 {
		poles = append(poles, Pole{k, true})
	}
	if -smallest > largest {
		slices.Reverse(poles)
	}
	return poles
}

// Top returns up to n rows with the largest absolute values at a pole, largest first, and equal values in
// row order. The frequent words of [Index.Known] come before the others.
func (x *Index) Top(p Pole, n int) []Entry {
	return x.rank(p, n, func(row int, value float32) float64 { return math.Abs(float64(value)) })
}

// Distinctive returns up to n rows with the largest relevance to a pole. The relevance of row i to dimension
// k is defined as in LDAvis (Sievert and Shirley 2014), with nonzeros instead of counts:
//
//	λ log|a_ik| + (1−λ) log(|a_ik| / Σ_j|a_ij|),  λ = 0.8
//
// It favours words with few other nonzero dimensions.
func (x *Index) Distinctive(p Pole, n int) []Entry {
	return x.rank(p, n, func(row int, value float32) float64 { return math.Abs(float64(value)) * x.scale[row] })
}

// rank returns the n rows of a pole with the largest scores, and their values.
func (x *Index) rank(p Pole, n int, score func(row int, value float32) float64) []Entry {
	found := x.newRanking(n)
	for i, v := range x.nonzeros(p.Dimension) {
		if v != 0 && v < 0 == p.Negative {
			found.add(i, score(i, v))
		}
	}
	entries := []Entry{}
	for _, i := range found.sorted() {
		entries = append(entries, Entry{i.Index, x.Code(i.Index).At(p.Dimension)})
	}
	return entries
}

// valueWeight is λ of LDAvis's relevance (Sievert and Shirley 2014, §3.1). A weight of 1 ranks rows by value, a weight
// of 0 by the value's share of Σ|a| of the row. LDAvis recommends 0.6 for counts. For codes, 0.6 prefers words with
// only small values, such as "usually" and "addi", to words with large values, such as "rate" and "mutex".
const valueWeight = 0.8

// relevanceScale returns the factor that turns a value into exp(relevance), given Σ|a| of its row.
func relevanceScale(sum float64) float64 {
	if sum == 0 {
		return 0
	}
	return math.Pow(sum, valueWeight-1)
}

// Strongest returns all K dimensions in decreasing order of the sum of their n largest positive values.
func (x *Index) Strongest(n int) []int {
	weakness, dimensions := make([]float64, x.Codes.Cols), make([]int, x.Codes.Cols)
	parallel.Each(context.Background(), len(weakness), func(k int) {
		for _, e := range x.Top(Pole{Dimension: k}, n) {
			weakness[k] -= float64(e.Value)
		}
	})
	floats.ArgsortStable(weakness, dimensions)
	return dimensions
}

// topTexts is the smallest number of texts that the words of a pole describe, if the pole has that many texts.
const topTexts = 20

// Words returns up to n words for a pole. If rows are words, Words returns the words with the largest values. If rows
// are texts, it returns the label and up to 17 other words, in decreasing order of the score of [Index.GroupLabels].
// These words describe the texts whose value is at least half of the largest value, but at least the twenty strongest
// texts. They are counted in a sample of up to 20,000 texts. If these texts have no words, the beginning of the
// strongest text describes the pole.
func (x *Index) Words(p Pole, n int) []string {
	words := []string{}
	if x.Codes.Texts == nil {
		for _, e := range x.Top(p, n) {
			words = append(words, x.Codes.IDs[e.Row])
		}
		return words
	}
	all, _ := x.poleWords()
	of := all[p.index()]
	return append(words, of[:min(n, len(of))]...)
}

// index returns the pole's index among the 2·K poles of all dimensions.
func (p Pole) index() int {
	if p.Negative {
		return 2*p.Dimension + 1
	}
	return 2 * p.Dimension
}

// describePoles returns the words of all poles, and their labels.
func (x *Index) describePoles() (words, labels [][]string) {
	groups := make([][]int32, 2*x.Codes.Cols)
	s := x.sample()
	parallel.Each(context.Background(), len(groups), func(i int) {
		p := Pole{i / 2, i%2 == 1}
		top := s.Top(p, topTexts)
		if len(top) == 0 {
			return
		}
		least := min(math.Abs(float64(top[0].Value))/2, math.Abs(float64(top[len(top)-1].Value)))
		for row, v := range s.nonzeros(p.Dimension) {
			if v != 0 && v < 0 == p.Negative && math.Abs(float64(v)) >= least {
				groups[i] = append(groups[i], int32(row))
			}
		}
	})
	for i, d := range s.describe(groups, nil, labelWords, x.isStop) {
		if d.label == 0 {
			for _, e := range x.Top(Pole{i / 2, i%2 == 1}, 1) {
				d = describeBy(x.Codes.Texts.Text[e.Row])
			}
		}
		words, labels = append(words, d.words), append(labels, d.words[:d.label])
	}
	return words, Distinct(labels)
}

// Label returns up to three distinctive words that name a pole. No two words share a prefix of five letters. If rows
// are texts, labels are [Distinct].
func (x *Index) Label(p Pole) []string {
	const candidates = 12
	if x.Codes.Texts != nil {
		_, labels := x.poleWords()
		return slices.Clone(labels[p.index()])
	}
	words := []string{}
	for _, e := range x.Distinctive(p, candidates) {
		word := x.Codes.IDs[e.Row]
		if len(words) < labelWords && !sharesPrefix(word, words) {
			words = append(words, word)
		}
	}
	return words
}

// sharesPrefix reports whether the word and an element of others begin with the same five letters, ignoring case. A
// word of three or four letters shares a prefix with every word that begins with all its letters.
func sharesPrefix(word string, others []string) bool {
	x, m := lowerPrefix(word)
	return slices.ContainsFunc(others, func(other string) bool {
		y, n := lowerPrefix(other)
		shorter := min(m, n)
		return (shorter >= 3 || m == n) && slices.Equal(x[:shorter], y[:shorter])
	})
}

// lowerPrefix returns the first five letters of a word in lower case, and their number.
func lowerPrefix(word string) (prefix [5]rune, n int) {
	for _, r := range word {
		if n == len(prefix) {
			break
		}
		prefix[n] = unicode.ToLower(r)
		n++
	}
	return prefix, n
}

// coherenceRows is the number of rows at a pole that Coherence compares.
const coherenceRows = 8

// Coherence returns how similar the strongest rows of a pole are in the other dimensions: the mean cosine of
// their codes without the pole's dimension, minus the mean cosine of all rows. It compares the eight strongest
// rows. The coherence of random rows is 0. For fewer than two rows, and for empty texts, it is NaN.
//
// Coherence requires no other vectors, but is less reliable than word intrusion accuracy. On 3,000 dimensions
// from GoogleNews, its rank correlation with the accuracy that GloVe vectors measure is 0.79 over both poles, and
// 0.43 over the positive poles.
func (x *Index) Coherence(p Pole) float64 {
	var rows []int32
	for _, e := range x.Top(p, coherenceRows) {
		rows = append(rows, int32(e.Row))
	}
	if len(rows) > 0 && x.Codes.Texts.Blank(int(rows[0])) {
		return math.NaN()
	}
	return x.meanCosineOf(rows, p.Dimension, make([]float64, x.Codes.Cols)) - x.meanCosine()
}

// meanCosineOf returns the mean cosine of the codes of all pairs of n rows. The argument without is a dimension to
// leave out, or −1. For codes u of norm 1 the mean is (‖Σu‖² − n)/(n² − n). A code of zeros has the cosine 0 with every
// other code. The argument sums, of length K, is scratch space.
func (x *Index) meanCosineOf(rows []int32, without int, sums []float64) float64 {
	n := float64(len(rows))
	if n < 2 {
		return math.NaN()
	}
	clear(sums)
	pairs := 0.0
	for _, row := range rows {
		code := x.Code(int(row))
		squares := 0.0
		for j, k := range code.Index {
			if int(k) != without {
				squares += float64(code.Value[j]) * float64(code.Value[j])
			}
		}
		for j, k := range code.Index {
			if int(k) != without && squares > 0 {
				u := float64(code.Value[j]) / math.Sqrt(squares)
				sums[k] += u
				pairs -= u * u // summed over k, this subtracts the cosine of the row with itself
			}
		}
	}
	for _, s := range sums {
		pairs += s * s
	}
	return pairs / (n * (n - 1))
}
