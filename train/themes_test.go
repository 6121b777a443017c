package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"overcomplete/internal/float32s"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// Atoms of themes have norm 1. Rows that are blank texts or equal to the mean change nothing, nor does the order of rows.
func TestLearnThemes(t *testing.T) {
	x, _, err := vectors.Read(t.Context(), []string{"../testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{MaxRows: 1000})
	testonly.Must(t, err)
	x.Texts = &vectors.Texts{Text: x.IDs}
	d := &model.Dictionary{Dim: x.Dim, Mean: make([]float32, x.Dim)}
	atoms, themes, err := learnThemes(t.Context(), x, d, 0)
	if err != nil || themes.Len() != 75 || len(atoms) != 75*x.Dim || themes.Topics < 2 || themes.Topics > 64 { // 2.4·√1000
		t.Fatalf("%d atoms, %+v, %v", len(atoms)/x.Dim, themes, err)
	}
	for c := range 75 {
		if norm := float32s.Squares(atoms[c*x.Dim:][:x.Dim]); math.Abs(norm-1) > 1e-5 {
			t.Errorf("theme %d has norm² %g", c, norm)
		}
	}
	more := x.Slice(0, 1000)
	more.Append(&vectors.Dense{IDs: []string{"mean", "blank"}, Texts: &vectors.Texts{Text: []string{"mean", " \n"}}, Dim: x.Dim,
		Data: append(make([]float32, x.Dim), x.Row(17)...)})
	again, splits, err := learnThemes(t.Context(), more, d, 0)
	if err != nil || !slices.Equal(again, atoms) || !slices.Equal(splits.Splits, themes.Splits) {
		t.Errorf("with a row of zeros and an empty text: %d atoms, %v", len(again)/x.Dim, err)
	}
	shuffled := &vectors.Dense{Dim: x.Dim, Texts: new(vectors.Texts)}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(x.Len()) {
		shuffled.Append(x.Slice(i, i+1))
	}
	again, splits, err = learnThemes(t.Context(), shuffled, d, 0)
	if err != nil || !slices.Equal(again, atoms) || !slices.Equal(splits.Splits, themes.Splits) {
		t.Errorf("of rows in another order: other themes, %v", err)
	}
	for name, x := range map[string]*vectors.Dense{"none": more.Slice(0, 0), "the mean": more.Slice(1000, 1001), "empty": more.Slice(1001, 1002)} {
		if atoms, themes, err := learnThemes(t.Context(), x, d, 3); err != nil || atoms != nil || themes != nil {
			t.Errorf("%s: %v, %v, %v", name, atoms, themes, err)
		}
	}
	for _, tt := range []struct{ rows, topics, themes, want int }{{1, 0, 1, 1}, {2, 0, 2, 2}, {2, 9, 2, 2}, {5, 1, 2, 1}, {400, 7, 48, 7}, {400, 90, 90, 90}} {
		_, themes, err := learnThemes(t.Context(), x.Slice(0, tt.rows), d, tt.topics)
		if err != nil || themes.Len() != tt.themes || themes.Topics != tt.want {
			t.Errorf("%+v: %d themes, %d topics, %v", tt, themes.Len(), themes.Topics, err)
		}
	}
}
