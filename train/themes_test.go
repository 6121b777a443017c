package train

import (
	"math"
	"testing"

	"overcomplete/model"
	"overcomplete/vectors"
)

// Themes of the sample vectors are stable: their tree is a tree, their atoms have norm 1, and rows that
// are left out, zero or copies don't matter.
func TestLearnThemes(t *testing.T) {
	x, _, err := vectors.Read(t.Context(), []string{"../testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{MaxWords: 1000})
	if err != nil {
		t.Fatal(err)
	}
	d := &model.Dictionary{Dim: x.Dim, Mean: make([]float32, x.Dim)}
	atoms, tree, topics, err := learnThemes(t.Context(), x.Data, d, 40, nil)
	if err != nil || len(atoms) != 40*x.Dim || len(tree) != 39 || topics < 2 || topics > 39 {
		t.Fatalf("%d atoms, %d merges, %d topics, %v", len(atoms)/x.Dim, len(tree), topics, err)
	}
	for c := range 40 {
		if norm := squares(atoms[c*x.Dim:][:x.Dim]); math.Abs(norm-1) > 1e-5 {
			t.Errorf("theme %d has norm² %g", c, norm)
		}
	}
	joined := make(map[int32]bool)
	for j, m := range tree {
		if m.A < 0 || m.B < 0 || int(max(m.A, m.B)) >= 40+j || joined[m.A] || joined[m.B] || m.A == m.B {
			t.Fatalf("merge %d is of %d and %d", j, m.A, m.B)
		}
		if j > 0 && m.Height < tree[j-1].Height {
			t.Errorf("merge %d is lower than the one before", j)
		}
		joined[m.A], joined[m.B] = true, true
	}

	more := append(append([]float32(nil), x.Data...), make([]float32, x.Dim)...) // and the mean
	again, _, _, err := learnThemes(t.Context(), more, d, 40, nil)
	if err != nil || len(again) != len(atoms) || again[0] != atoms[0] {
		t.Errorf("with a row of zeros: %d atoms, %v", len(again)/x.Dim, err)
	}
	for name, x := range map[string][]float32{"none": nil, "the mean": make([]float32, x.Dim)} {
		if atoms, tree, topics, err := learnThemes(t.Context(), x, d, 40, nil); err != nil || atoms != nil || tree != nil || topics != 0 {
			t.Errorf("%s: %v, %v, %d, %v", name, atoms, tree, topics, err)
		}
	}
	two, tree, topics, err := learnThemes(t.Context(), x.Data[:2*x.Dim], d, 40, nil)
	if err != nil || len(two) != 2*x.Dim || len(tree) != 1 || topics != 2 {
		t.Errorf("two rows: %d atoms, %d merges, %d topics, %v", len(two)/x.Dim, len(tree), topics, err)
	}
	one, tree, topics, err := learnThemes(t.Context(), x.Data, d, 1, nil)
	if err != nil || len(one) != x.Dim || len(tree) != 0 || topics != 1 {
		t.Errorf("one theme: %d atoms, %d merges, %d topics, %v", len(one)/x.Dim, len(tree), topics, err)
	}
}
