package train

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"overcomplete/model"
	"overcomplete/vectors"
)

// DefaultSparsity is the share of zeros in codes of the recipe "best" whose Nonzeros are 0.
const DefaultSparsity = 0.97

// Best returns the recipe "best" that the command line has without flags. Atoms and Epochs are
// 0, for [DefaultAtoms] and [DefaultEpochs], and TrainWords for [DefaultTrainWords].
func Best() model.Best {
	return model.Best{
		Common: model.Common{Method: model.Signed, DictionarySteps: 128, Seed: 1},
		Lambda: 0.04,
		Anchor: 2,
	}
}

// Paper returns the recipe "paper" that the command line has without other flags. Atoms and
// Epochs are 0, for [DefaultAtoms] and [DefaultEpochs].
func Paper() model.Paper {
	return model.Paper{
		Common:    model.Common{Method: model.Signed, DictionarySteps: 128, Seed: 1},
		Algorithm: model.Minibatch,
		Init:      model.FromRandom,
		Lambda:    0.5,
		Tau:       1e-5,
		Rate:      0.05,
		Loss:      model.Squared,
		State:     model.Float32,
		Stop:      model.AfterEpochs,
	}
}

// DefaultAtoms returns K for vectors of length L: 10·L, as in the paper, but with the
// recipe "best" not more than half as many as there are words to learn from, whose rows
// they start from, unless that is fewer than L.
func DefaultAtoms(r model.Recipe, words, dim int) int {
	if best, is := r.(model.Best); is {
		if best.TrainWords > 0 {
			words = min(words, best.TrainWords)
		}
		return min(10*dim, max(dim, words/2))
	}
	return 10 * dim
}

// Settled returns r as [Fit] trains on x with it: its defaults, which depend on x, in place of
// what it has no value of.
func Settled(r model.Recipe, x *vectors.Dense) model.Recipe {
	c := r.Base()
	c.Atoms = cmp.Or(c.Atoms, DefaultAtoms(r, x.Len(), x.Dim))
	switch h := r.With(c).(type) {
	case model.Best:
		h.Order = cmp.Or(h.Order, DefaultOrder(x))
		h.Epochs = cmp.Or(h.Epochs, DefaultEpochs(h))
		h.Nonzeros = cmp.Or(h.Nonzeros, model.Nonzeros(DefaultSparsity, h.Atoms))
		h.TrainWords = min(cmp.Or(h.TrainWords, DefaultTrainWords(h, x.Len())), x.Len())
		return h
	case model.Paper:
		h.Epochs = cmp.Or(h.Epochs, DefaultEpochs(h))
		if h.Algorithm == model.Authors {
			h.DictionarySteps = 0 // a step a word
		}
		return h
	}
	return r
}

// frequentRows is how many rows a dictionary is learned from for each atom, of words that are
// in order of frequency: the rest of a whole vocabulary is mostly names and misspellings,
// whose mean and whose directions are not those of language.
const frequentRows = 20

// DefaultTrainWords returns how many of the rows D and μ are learned from, if h has its atoms:
// all, or the most frequent 20·K.
func DefaultTrainWords(h model.Best, words int) int {
	if h.Order == model.Frequency {
		return min(words, frequentRows*h.Atoms)
	}
	return words
}

// DefaultOrder says whether words are in order of frequency, as files of word vectors have
// them, or have none: where rows are texts, where most of the first words look like texts
// (they have spaces, or 24 bytes and more) or like ids (they have digits), or where they are
// sorted, up or down, but for some. (Words of one frequency often are: these are not so many.)
func DefaultOrder(x *vectors.Dense) model.Order {
	if x.Texts != nil {
		return model.None
	}
	words := x.Words
	words = words[:min(len(words), 10000)]
	const long, few = 24, 50
	others := 0
	for _, w := range words {
		if len(w) >= long || strings.ContainsFunc(w, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsDigit(r) }) {
			others++
		}
	}
	sorted := len(words) > 1 && slices.IsSorted(words)
	if len(words) >= few { // or else it may be by chance
		sorted = math.Abs(sortedness(words)) > 0.5
	}
	if 2*others > len(words) || sorted {
		return model.None
	}
	return model.Frequency
}

// sortedness is Spearman's ρ of the order of words with that of their letters: 1 if they are
// sorted, −1 if they are from z to a, and about 0 if neither.
func sortedness(words []string) float64 {
	order := make([]int, len(words))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(words[a], words[b]) })
	sum, n := 0.0, float64(len(words))
	for rank, i := range order {
		sum += float64(rank-i) * float64(rank-i)
	}
	return 1 - 6*sum/(n*(n*n-1))
}

// The authors' stop rules (their programs sparse and nonneg): at least 20
// epochs, then on while the mean error is above 0.05, still changes by more than
// a tolerance and a number of epochs is not reached.
const (
	authorsFewest    = 20
	authorsGoodError = 0.05
)

// authorsStop returns the tolerance and the most epochs of the authors' stop rule
// for a method.
func authorsStop(method model.Method) (tolerance float64, most int) {
	if method == model.Nonnegative {
		return 0.001, 75
	}
	return 0.005, 50
}

// DefaultEpochs returns the epochs of a recipe. Of "best" they are passes over the rows to learn
// from: 2, or 4 where these are in no order of frequency. Texts differ more than frequent words
// do, and there are fewer of them for each atom. Of "paper" they are 20 for method A and 30 for B,
// or the most that its stop rule allows.
func DefaultEpochs(r model.Recipe) int {
	switch r := r.(type) {
	case model.Best:
		if r.Order == model.None {
			return 4
		}
		return 2
	case model.Paper:
		if r.Stop == model.AuthorsRule {
			_, most := authorsStop(r.Method)
			return most
		}
	}
	if r.Base().Method == model.Nonnegative {
		return 30
	}
	return 20
}

// finished reports whether a training ends with the epochs that it has.
func finished(i *model.Training) bool {
	t := len(i.Epochs)
	if t >= i.Recipe.Base().Epochs {
		return true
	}
	switch h := i.Recipe.(type) {
	case model.Best:
		return t > 1 && i.Epochs[t-2].RunningLoss-i.Epochs[t-1].RunningLoss < littleGain*i.Epochs[t-2].RunningLoss
	case model.Paper:
		if h.Stop != model.AuthorsRule || t < authorsFewest {
			return false
		}
		running, before := i.Epochs[t-1].RunningLoss, i.Epochs[t-2].RunningLoss
		tolerance, _ := authorsStop(h.Method)
		return running <= authorsGoodError || math.Abs(running-before) <= tolerance
	}
	return false
}
