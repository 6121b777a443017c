// Package intrusion measures how interpretable dimensions are by word intrusion (§4.1 of the paper).
// A question shows five words: four top words of a dimension and one intruder. The accuracy is the
// share of questions whose intruder is identified.
//
// People answer the questions of a [Sheet]. In a [Test], reference vectors of the same words answer.
// The top words of any direction in good vectors are similar, which raises the accuracy without any
// training. A [Control] measures this effect.
//
//	test, err := intrusion.NewTest(x, reference, m.Codes.IDs)
//	a, err := test.Measure(ctx, test.Codes(0, m.Codes))
//	fmt.Println(a.Matched.Mean) // 0.57; chance is 0.2
package intrusion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"overcomplete/encode"
	"overcomplete/internal/memory"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

var (
	// ErrNoWords reports that no word has codes, a dense vector and a reference vector.
	ErrNoWords = errors.New("intrusion: no word has codes, a dense vector and a reference")

	// ErrSameVectors reports that the reference vectors are the dense ones.
	ErrSameVectors = errors.New("intrusion: the reference vectors are the dense vectors")
)

// A Test is a word intrusion test that reference vectors answer. Its words have codes in all models, a
// dense vector and a reference vector. They are in the order of the first model.
type Test struct {
	X, Reference *vectors.Dense // vectors of the test's words
	Name         string         // file of the reference vectors, for results
	Seed         uint64         // seed of questions and controls
	rows         [][]int        // rows of the test's words, by model
}

// NewTest returns a test of the words that x, reference and all models have; models lists the words of
// each model. A word without a reference vector is looked up in lower case, unless the lower-case word
// is in the model, too. The error is [ErrNoWords] or [ErrSameVectors], or says that memory is short.
func NewTest(x, reference *vectors.Dense, models ...[]string) (*Test, error) {
	var in []map[string]int // rows in each model, and last in x
	for _, words := range slices.Concat(models, [][]string{x.IDs}) {
		in = append(in, rowsByWord(words))
	}
	inReference := rowsByWord(reference.IDs)
	referenceRow := func(word string) (int, bool) {
		row, ok := inReference[word]
		if lower := strings.ToLower(word); !ok && lower != word {
			if _, taken := in[0][lower]; !taken {
				row, ok = inReference[lower]
				delete(inReference, lower) // "May" and "MAY" must not share a reference vector
			}
		}
		return row, ok
	}
	most := min(len(models[0]), x.Len(), reference.Len())
	if err := memory.Check(4 * uint64(most) * uint64(x.Dim+reference.Dim)); err != nil {
		return nil, fmt.Errorf("the vectors of %d words: %w", most, err)
	}
	t := &Test{rows: make([][]int, len(models))}
	t.X = &vectors.Dense{Dim: x.Dim, Data: make([]float32, 0, most*x.Dim)}
	t.Reference = &vectors.Dense{Dim: reference.Dim, Data: make([]float32, 0, most*reference.Dim)}
words:
	for i, word := range models[0] {
		if in[0][word] != i {
			continue // repeated
		}
		rows := make([]int, len(in))
		for m := range in {
			row, ok := in[m][word]
			if !ok {
				continue words
			}
			rows[m] = row
		}
		row, ok := referenceRow(word)
		if !ok {
			continue
		}
		t.X.IDs, t.X.Data = append(t.X.IDs, word), append(t.X.Data, x.Row(rows[len(models)])...)
		t.Reference.IDs, t.Reference.Data = append(t.Reference.IDs, reference.IDs[row]), append(t.Reference.Data, reference.Row(row)...)
		for m := range models {
			t.rows[m] = append(t.rows[m], rows[m])
		}
	}
	switch {
	case t.X.Len() == 0:
		return nil, ErrNoWords
	case slices.Equal(t.X.Data, t.Reference.Data):
		return nil, ErrSameVectors
	}
	return t, nil
}

// rowsByWord returns the first row of each word.
func rowsByWord(words []string) map[string]int {
	rows := make(map[string]int, len(words))
	for i, w := range slices.Backward(words) {
		rows[w] = i
	}
	return rows
}

// Codes selects the codes of the test's words. The argument codes holds all codes of the i-th model of [NewTest].
func (t *Test) Codes(i int, codes *vectors.Sparse) *vectors.Sparse {
	return interpret.SelectRows(codes, t.rows[i])
}

// A Result is the accuracy of a model, of one of its controls, or of dense vectors. Only a model's
// result has scores by dimension.
type Result struct {
	Name    string  `json:"name"`              // name of the model, or of the dense vectors
	Control Control `json:"control,omitempty"` // "" unless the result is of a control
	*Accuracy
}

// Score measures the codes of the i-th model of [NewTest] at both poles, and the [Controls] with the same
// number of dimensions, sign and sparsity. The error is [train.ErrIdenticalRows] if all frequent words have
// the same vector.
func (t *Test) Score(ctx context.Context, name string, i int, m *model.Model, device encode.Device) ([]Result, error) {
	codes := t.Codes(i, m.Codes)
	a, err := t.Measure(ctx, codes)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(codes.Value, func(v float32) bool { return v < 0 }) {
		opposite := *codes
		opposite.Value = make([]float32, len(codes.Value))
		for i, v := range codes.Value {
			opposite.Value[i] = -v
		}
		if a.Negative, err = t.Measure(ctx, &opposite); err != nil {
			return nil, err
		}
	}
	results := []Result{{Name: name, Accuracy: a}}
	n := model.Nonzeros(1-float64(codes.Nonzeros())/float64(codes.Rows*codes.Cols), codes.Cols)
	for _, control := range Controls {
		c, err := Encode(ctx, t.X, control, codes.Cols, n, m.Info.Training.Recipe.Base().Method, t.Seed, device)
		if err != nil {
			return nil, err
		}
		if a, err = t.Measure(ctx, c.Codes); err != nil {
			return nil, err
		}
		a.Scores = nil
		results = append(results, Result{name, control, a})
	}
	return results, nil
}

// MeasureDense returns the accuracy of the dense vectors.
func (t *Test) MeasureDense(ctx context.Context) (*Accuracy, error) {
	if err := memory.Check(8 * uint64(len(t.X.Data))); err != nil {
		return nil, fmt.Errorf("the nonzeros of %d dense vectors: %w", t.X.Len(), err)
	}
	return t.Measure(ctx, interpret.FromDense(t.X))
}
