package cli

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// alike is readable with two words whose cosine is 0.6·0.8 = 0.48.
func alike(t *testing.T) clitest.Dir {
	t.Helper()
	codes := slices.Clone(readableCodes)
	codes[0], codes[1] = []float32{6, 8, 0}, []float32{8, 0, 6}
	return clitest.Save(t, clitest.NewModel(readableWords, codes))
}

func TestCompare(t *testing.T) {
	t.Parallel()
	dir := alike(t)
	checkOutput(t, dir, "compare model read WRITE", `read, write: cosine 0.480

shared: 0.480
   part      %  dimension  label                read  write
 0.4800  100.0          0  write, read, close  0.600  0.800

apart: 0.520
   part     %  dimension  label                read  write
 0.3200  61.5          1  read, month, week   0.800  0.000
 0.1800  34.6          2  write, day          0.000  0.600
 0.0200   3.8          0  write, read, close  0.600  0.800
`)
	got := runJSON[struct {
		Words         []string
		Pairs         []struct{ Cosine float64 }
		Shared, Apart struct {
			Sum, Rest  float64
			Others     int
			Dimensions []struct {
				Part   float64
				Values []float64
			}
		}
	}](t, dir, "compare model read write close --json --dimensions 1")
	mean := (0.48 + 0.6 + 0.8) / 3
	if len(got.Pairs) != 3 || math.Abs(got.Shared.Sum-mean) > 1e-7 || math.Abs(got.Apart.Sum-(1-mean)) > 1e-7 || got.Apart.Others != 2 || len(got.Apart.Dimensions) != 1 ||
		math.Abs(got.Apart.Dimensions[0].Part+got.Apart.Rest-got.Apart.Sum) > 1e-7 || len(got.Shared.Dimensions[0].Values) != 3 {
		t.Errorf("%+v", got)
	}
	checkRefusals(t, dir, "", map[string]string{
		"compare model read":                       `"read" is not a model; compare accepts two models, or a model and at least two words`,
		"compare model read wriet":                 `"wriet" is not among the 6 rows; similar ones are write`,
		"compare model read write --dimensions -1": "--dimensions is -1, want a whole number from 0 to",
	})
}

func TestNearest(t *testing.T) {
	t.Parallel()
	dir := alike(t)
	checkOutput(t, dir, "nearest model read -n 2 --dimensions 1", `read
cosine  word  dimensions, % of the cosine
 0.800  month  read, month, week (1) 100 · 0 others 0
 0.800  week  read, month, week (1) 100 · 0 others 0
`)
	// read − month is (0.6, −0.2).
	checkTable(t, dir, "nearest model read - month", `read − month
cosine  word  dimensions, % of the cosine
 0.949  close  write, read, close (0) 100 · 0 others 0
 0.759  write  write, read, close (0) 100 · 0 others 0
`)
	checkTable(t, dir, "nearest model the months: month, month and day! -n 1 --dimensions 1", `2·month day
not in the model: the, months:, and
cosine  word  dimensions, % of the cosine
 0.968  week  read, month, week (1) 100 · 0 others 0
`)
	got := runJSON[neighbourhood](t, dir, "nearest model day - #1 --json")
	if !slices.Equal(got.Without, []int{1}) || len(got.Nearest) != 1 || got.Nearest[0].Word != "write" {
		t.Errorf("%+v", got)
	}
	checkOutput(t, dir, "nearest model month - month", "0·month\nno word is near\n")
	checkRefusals(t, dir, "", map[string]string{
		"nearest model":             "one argument is given",
		"nearest model mnoth":       `"mnoth" is not among the 6 rows; similar ones are month`,
		"nearest model month -":     "no word after the last -",
		"nearest model 2":           `"2" is a dimension, not a word: see overcomplete top`,
		"nearest model a b c d e f": "no word of this text is in the model",
	})
}

func TestCompareModels(t *testing.T) {
	t.Parallel()
	m := clitest.NewModel(readableWords, readableCodes)
	m.Dictionary = model.Dictionary{Dim: 2, Atoms: []float32{1, 0, 0, 2, 3, 4}}
	dir := clitest.Save(t, m)
	// The same dimensions in another order, except one, at cosines of 1, 1 and 0.8.
	other := *m
	other.Dictionary.Atoms = []float32{0, 1, 24, 7, 2, 0}
	testonly.Must(t, other.Save(dir.Path("other"), false))
	checkOutput(t, dir, "compare model other --dimensions 2", `3 dimensions of model, 3 of other
  mean cosine  0.933
  above 0.9    66.7 %
lowest cosines:
dimension  label               other  cosine  its label
        2  day, write              1   0.800  month, week, day
        0  close, write, read      2   1.000  day, write
`)
	got := runJSON[struct {
		Matches []struct{ Dimension int }
		Lowest  []any
	}](t, dir, "compare model other --json --dimensions 1")
	if fmt.Sprint(got.Matches) != "[{2} {0} {1}]" || len(got.Lowest) != 1 {
		t.Errorf("JSON has %+v", got)
	}

	// If atoms are opposite, the stronger pole of one is the weaker pole of the other.
	signed := clitest.NewModel(readableWords, [][]float32{{1}, {-3}, {0}, {0}, {0}, {0}})
	signed.Dictionary = model.Dictionary{Dim: 2, Atoms: []float32{1, 0}}
	testonly.Must(t, signed.Save(dir.Path("signed"), false))
	signed.Dictionary.Atoms[0], signed.Codes.Value[0], signed.Codes.Value[1] = -1, -1, 3
	testonly.Must(t, signed.Save(dir.Path("opposite"), false))
	checkOutput(t, dir, "compare signed opposite", `1 dimensions of signed, 1 of opposite
  mean cosine  -1.000
  above 0.9    0.0 %
lowest cosines:
dimension  label   other  cosine  its label
        0  −write      0  -1.000  write
`)

	wide := *m
	wide.Info.Training.Input.Dim, wide.Info.Encoding.Input.Dim = 3, 3
	wide.Dictionary = model.Dictionary{Dim: 3, Atoms: make([]float32, 9)}
	testonly.Must(t, wide.Save(dir.Path("wide"), false))
	dir.Write(t, "x.txt", []byte("a 1 2\nb 3 4\n"))
	checkRefusals(t, dir, "", map[string]string{
		"compare model wide":  "atoms of model have 2 numbers and atoms of wide 3; the models are of different spaces",
		"compare model x.txt": `"x.txt" is not a model`,
	})
}
