package cli

import (
	"encoding/json"
	"slices"
	"testing"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/model"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	m := clitest.NewModel(readableWords, readableCodes)
	m.Dictionary = model.Dictionary{Dim: 2, Atoms: []float32{1, 0, 0, 2, 3, 4}}
	dir := clitest.Save(t, m)
	// The same dimensions in another order, but for one, at cosines of 1, 1 and 0.8.
	other := *m
	other.Dictionary.Atoms = []float32{0, 1, 24, 7, 2, 0}
	if err := other.Save(dir.Path("other"), false); err != nil {
		t.Fatal(err)
	}
	checkOutput(t, dir, "match model other --dimensions 2", `3 dimensions of model, 3 of other
  mean cosine  0.933
  above 0.9    66.7 %
least in common:
dimension  label               other  cosine  its label
        2  day, write              1   0.800  month, week, day
        0  close, write, read      2   1.000  day, write
`)
	stdout, _ := dir.MustRun(t, "match model other --json --dimensions 0")
	var got struct {
		Matches []struct{ Dimension int }
		Least   []any `json:"least_common"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	matched := []int{}
	for _, m := range got.Matches {
		matched = append(matched, m.Dimension)
	}
	if slices.Sort(matched); !slices.Equal(matched, []int{0, 1, 2}) || len(got.Least) != 0 {
		t.Errorf("JSON has %+v", got)
	}

	// Of opposite atoms, the stronger side of the one is the weaker of the other.
	signed := clitest.NewModel(readableWords, [][]float32{{1}, {-3}, {0}, {0}, {0}, {0}})
	signed.Dictionary = model.Dictionary{Dim: 2, Atoms: []float32{1, 0}}
	if err := signed.Save(dir.Path("signed"), false); err != nil {
		t.Fatal(err)
	}
	signed.Dictionary.Atoms[0], signed.Codes.Value[0], signed.Codes.Value[1] = -1, -1, 3
	if err := signed.Save(dir.Path("opposite"), false); err != nil {
		t.Fatal(err)
	}
	checkOutput(t, dir, "match signed opposite", `1 dimensions of signed, 1 of opposite
  mean cosine  -1.000
  above 0.9    0.0 %
least in common:
dimension  label   other  cosine  its label
        0  −write      0  -1.000  write
`)

	wide := *m
	wide.Info.Training.Input.Dim, wide.Info.Encoding.Input.Dim = 3, 3
	wide.Dictionary = model.Dictionary{Dim: 3, Atoms: make([]float32, 9)}
	if err := wide.Save(dir.Path("wide"), false); err != nil {
		t.Fatal(err)
	}
	dir.Write(t, "x.txt", []byte("a 1 2\nb 3 4\n"))
	before := dir.Tree(t)
	for args, want := range map[string]string{
		"match model":                       "2 arg",
		"match model wide":                  "atoms of model have 2 numbers, and those of wide 3",
		"match model x.txt":                 "x.txt: ",
		"match model other --dimensions=-1": "--dimensions is -1",
	} {
		checkRefused(t, dir, args, []string{want}, before)
	}
}
