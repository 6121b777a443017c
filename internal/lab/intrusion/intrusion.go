// Package intrusion scores codes by word intrusion without people, beside controls. The
// question is what dimensions mean (§4.1 of the paper): of five words, four are of a dimension
// and one is not. Other vectors of the same words are asked for that one; see
// [interpret.Intrusion.OddOneOut]. A score alone says little, for the top words of any
// direction in good vectors are alike: [Score] has those of controls that learned nothing.
package intrusion

import (
	"context"
	"errors"
	"slices"
	"strings"

	"overcomplete/encode"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

var (
	// ErrNoWords is returned if no word has codes, a dense vector and one to judge by.
	ErrNoWords = errors.New("intrusion: no word has codes, a dense vector and a reference")

	// ErrSameVectors is returned if the reference is what was learned from.
	ErrSameVectors = errors.New("intrusion: the reference has the same vectors as those that were learned from")
)

// A Test is what to play word intrusion with: the words that have codes in all models, a dense
// vector and one to judge by, in the order of the first model.
type Test struct {
	X, Reference *vectors.Dense // of these words
	Seed         uint64         // of questions and controls
	Name         string         // of the reference, for results
	rows         [][]int        // of these words, in each model
}

// NewTest returns a test of models that have codes of these words, learned from x. A word that
// the reference does not have as it stands is looked up in lower case, where that is no word
// itself: words must differ in the reference, too. The error is [ErrNoWords] or
// [ErrSameVectors].
func NewTest(x, reference *vectors.Dense, models ...[]string) (*Test, error) {
	inX, inReference := rowsByWord(x.Words), rowsByWord(reference.Words)
	inModel := make([]map[string]int, len(models))
	for i, words := range models {
		inModel[i] = rowsByWord(words)
	}
	referenceRow := func(word string) (int, bool) {
		row, ok := inReference[word]
		if lower := strings.ToLower(word); !ok && lower != word {
			if _, taken := inModel[0][lower]; !taken {
				row, ok = inReference[lower]
				delete(inReference, lower) // of "May" and "MAY" the first has it
			}
		}
		return row, ok
	}
	t := &Test{rows: make([][]int, len(models))}
	var xRows, referenceRows []int
words:
	for i, word := range models[0] {
		if inModel[0][word] != i {
			continue // a repetition
		}
		rows := make([]int, len(models))
		for m := range models {
			row, ok := inModel[m][word]
			if !ok {
				continue words
			}
			rows[m] = row
		}
		xRow, ok := inX[word]
		if !ok {
			continue
		}
		row, ok := referenceRow(word)
		if !ok {
			continue
		}
		xRows, referenceRows = append(xRows, xRow), append(referenceRows, row)
		for m, row := range rows {
			t.rows[m] = append(t.rows[m], row)
		}
	}
	t.X, t.Reference = rowsOf(x, xRows), rowsOf(reference, referenceRows)
	switch {
	case t.X.Len() == 0:
		return nil, ErrNoWords
	case slices.Equal(t.X.Data, t.Reference.Data):
		return nil, ErrSameVectors
	}
	return t, nil
}

func rowsByWord(words []string) map[string]int {
	rows := make(map[string]int, len(words))
	for i, w := range words {
		if _, ok := rows[w]; !ok {
			rows[w] = i
		}
	}
	return rows
}

func rowsOf(x *vectors.Dense, rows []int) *vectors.Dense {
	s := &vectors.Dense{Dim: x.Dim, Data: make([]float32, 0, len(rows)*x.Dim)}
	for _, i := range rows {
		s.Words, s.Data = append(s.Words, x.Words[i]), append(s.Data, x.Row(i)...)
	}
	return s
}

// Codes returns the test's words of the codes of a model, which is the given one of [NewTest].
func (t *Test) Codes(model int, codes *vectors.Sparse) *vectors.Sparse {
	return interpret.SelectRows(codes, t.rows[model])
}

// Play plays the test with codes of its words.
func (t *Test) Play(ctx context.Context, codes *vectors.Sparse) (interpret.Coherence, error) {
	c, err := interpret.NewIntrusion(interpret.NewIndex(codes)).OddOneOut(ctx, t.Reference, t.Seed)
	c.Reference = t.Name
	return c, err
}

// A Result is what was found of a model, of a control for it, or of dense vectors. Dimensions
// have scores of their own only where a model's are.
type Result struct {
	Name    string  `json:"name"`
	Control Control `json:"control,omitempty"` // for the model of that name
	interpret.Coherence
}

// Score plays the test with the codes of a model, which is the given one of [NewTest], also
// with their negative sides if they have some, and with controls like them: of as many dimensions, of the same sign, and as sparse. The error
// is [train.ErrAllSame] if the frequent ones of the dense vectors cannot be told apart.
func (t *Test) Score(ctx context.Context, name string, i int, m *model.Model, device encode.Device, controls ...Control) ([]Result, error) {
	codes := t.Codes(i, m.Codes)
	c, err := t.Play(ctx, codes)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(codes.Value, func(v float32) bool { return v < 0 }) {
		negative, err := t.Play(ctx, interpret.Opposite(codes))
		if err != nil {
			return nil, err
		}
		c.Negative = &negative
	}
	results := []Result{{Name: name, Coherence: c}}
	y, err := Standardise(t.X, codes.Cols)
	if err != nil {
		return nil, err
	}
	method := m.Info.Training.Recipe.Base().Method
	for _, control := range controls {
		var made *vectors.Sparse
		if control == RandomDirections {
			centred := &vectors.Dense{Words: t.X.Words, Dim: t.X.Dim, Data: make([]float32, len(t.X.Data))}
			m.Dictionary.Center(centred.Data, t.X.Data)
			made, err = interpret.RandomProjection(ctx, centred, &codes.CSR, method == model.Nonnegative, t.Seed)
		} else {
			most := model.Nonzeros(1-float64(codes.Nonzeros())/float64(codes.Rows*codes.Cols), codes.Cols)
			var encoded *model.Model
			if encoded, err = y.Encode(ctx, control, codes.Cols, most, method, t.Seed, device); err == nil {
				made = encoded.Codes
			}
		}
		if err != nil {
			return nil, err
		}
		if c, err = t.Play(ctx, made); err != nil {
			return nil, err
		}
		c.Scores = nil
		results = append(results, Result{name, control, c})
	}
	return results, nil
}

// ScoreDense plays the test with the dense vectors, in which no value is 0.
func (t *Test) ScoreDense(ctx context.Context, name string) (Result, error) {
	c, err := t.Play(ctx, interpret.FromDense(t.X))
	c.Scores = nil
	return Result{Name: name, Coherence: c}, err
}
