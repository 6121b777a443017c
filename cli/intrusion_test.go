package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"overcomplete/interpret"
	"overcomplete/lab/intrusion"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// A test for people with two conditions is written, answered by two judges, and scored.
func TestIntrusion(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o model --epochs 5 --quiet")
	make := "intrusion make X=in.txt A=model A=model -n 3 -o test.tsv"
	dir.MustRun(t, make)
	test, key := dir.Read(t, "test.tsv"), dir.Read(t, "test.key.json")
	dir.MustRun(t, make+" --force")
	if !bytes.Equal(dir.Read(t, "test.tsv"), test) || !bytes.Equal(dir.Read(t, "test.key.json"), key) {
		t.Error("the same command made another test")
	}
	var sheet intrusion.Sheet
	testonly.Must(t, json.Unmarshal(key, &sheet))
	// The test has the three dimensions of the highest variance of each condition, in mixed order. In two of 84 orders,
	// all questions of X are at one end. The order of this seed is neither.
	variance := func(k int) float64 {
		var values []float64
		for i, x := 0, clitest.Vectors(60, 8); i < x.Len(); i++ {
			values = append(values, float64(x.Row(i)[k]))
		}
		return stat.Variance(values, nil)
	}
	highest := []int{0, 1, 2, 3, 4, 5, 6, 7}
	slices.SortFunc(highest, func(a, b int) int { return cmp.Compare(variance(b), variance(a)) })
	highest = highest[:3]
	slices.Sort(highest)
	order := ""
	var dimensions []int
	ann, ben := sheet.ID+"\tanswer\n", sheet.ID+"\n"
	for i, q := range sheet.Questions {
		order += q.Condition
		if q.Condition == "X" {
			dimensions = append(dimensions, q.Dimension)
			ben += fmt.Sprintf("%d\t%d\n", i+1, q.Intruder+1)
		}
		ann += fmt.Sprintf("%d\t%d\n", i+1, q.Intruder+1)
	}
	if strings.Count(order, "X") != 3 || len(order) != 9 || order == "XXXAAAAAA" || order == "AAAAAAXXX" {
		t.Errorf("conditions are %s", order)
	}
	if slices.Sort(dimensions); !slices.Equal(dimensions, highest) {
		t.Errorf("dimensions %v of the vectors, want %v", dimensions, highest)
	}
	dir.Write(t, "ann.tsv", []byte(ann))
	dir.Write(t, "ben.tsv", []byte(ben))
	checkTable(t, dir, "intrusion score test.key.json ann.tsv ben.tsv", `condition  questions  accuracy  agreement  kappa
A                  6     100.0          –      –
X                  3     100.0      100.0      –
`)
}

func TestIntrusionUsage(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.Write(t, "same.txt", []byte("read 1 2\nwrite 2 1\n"))
	dir.Write(t, "same2.txt", []byte("read 1 2\nwrite 2 1\n"))
	dir.Write(t, "other.txt", []byte("zzz 1 2\nyyy 1 3\n"))
	dir.Write(t, "equal.txt", []byte("read 1 2\nwrite 1 2\n"))
	dir.MustRun(t, "paper train same.txt -o model -k 3 --epochs 1 --quiet")
	dir.MustRun(t, "intrusion make X=in.txt -n 2 -o test.tsv")
	checkRefusals(t, dir, "", map[string]string{
		"intrusion":                                                   "make, score or auto",
		"intrusion mark":                                              `"mark"`,
		"intrusion make model -o t.tsv":                               `"model" … CONDITION=MODEL … A=model`,
		"intrusion make =model -o t.tsv":                              "CONDITION=MODEL … such as A=model\n",
		"intrusion make A=nowhere -o t.tsv":                           "nowhere: no such file",
		"intrusion make X=in.txt -o t.tsv":                            "in.txt: too few dimensions … got 8, want --dimensions 25",
		"intrusion make X=in.txt -n 0 -o t.tsv":                       "-n is 0",
		"intrusion make X=in.txt -n 2 -o t.txt":                       "t.txt … .tsv",
		"intrusion make X=in.txt -n 2 -o test.tsv":                    "test.tsv: already exists … --force",
		"intrusion make X=in.txt -n 2 -o model/t.tsv":                 "in the directory of a model",
		"intrusion score test.tsv in.txt":                             "test.tsv: not the key",
		"intrusion score test.key.json in.txt":                        "in.txt: no answers to this test",
		"intrusion score test.key.json test.tsv test.tsv":             `file "test.tsv" is given twice`,
		"intrusion auto model --input in.txt --reference other.txt":   "in.txt: wrong length of vectors for model (got 8, want 2)",
		"intrusion auto model --input other.txt --reference in.txt":   "no word is in all of",
		"intrusion auto model --input same.txt --reference same2.txt": "same2.txt has the same vectors as same.txt",
		"intrusion auto in.txt --input in.txt --reference in.txt":     "in.txt: ",
		"intrusion auto model --input equal.txt --reference same.txt": "equal.txt: the first 2 words that all files have share one vector",
	})
}

// Models of both methods have the accuracies of the definition at both poles. The output also lists controls from the
// same input, and the input itself.
func TestIntrusionAuto(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	x, reference := clitest.Vectors(60, 8), clitest.Vectors(60, 5)
	dir.Write(t, "reference.txt", clitest.Text(reference))
	dir.MustRun(t, "paper train in.txt -o a --epochs 5 --quiet --center")
	dir.MustRun(t, "paper train in.txt -o b --epochs 5 --quiet --center --method B")
	line := "intrusion auto a b --input in.txt --reference reference.txt"
	before := dir.Tree(t)
	checkPrints(t, dir, line, "over 60 words … \na  … \n  negative poles  … \n  random dictionary  … \n  word rows  … \nin.txt  … \nchance ", "")
	dir.Unchanged(t, before) // without --save
	test, err := intrusion.NewTest(x, reference, x.IDs)
	testonly.Must(t, err)
	test.Name, test.Seed = "reference.txt", 2
	r := runJSON[autoResult](t, dir, line+" --save --json --seed 2")
	controls := map[string][]intrusion.Control{}
	for _, s := range r.Sets {
		if s.Control != "" {
			controls[s.Name] = append(controls[s.Name], s.Control)
			continue
		}
		codes := interpret.FromDense(x)
		if s.Name != "in.txt" {
			codes = dir.Model(t, s.Name).Codes
			_, accuracy, err := intrusion.Matched(dir.Path(s.Name+"/intrusion.json"), 80)
			if err != nil || accuracy[interpret.Pole{Dimension: s.Scores[0].Dimension}] != s.Scores[0].Matched {
				t.Errorf("%s: saved %v, %v", s.Name, accuracy, err)
			}
		}
		if want, err := test.Measure(t.Context(), codes); err != nil || s.Any != want.Any || s.Matched != want.Matched || (s.Negative != nil) != (s.Name == "a") { // signed
			t.Errorf("%s: %+v\nwant %+v, %v", s.Name, s.Accuracy, want, err)
		}
	}
	if all := intrusion.Controls; len(r.Sets) != 7 || !reflect.DeepEqual(controls, map[string][]intrusion.Control{"a": all, "b": all}) {
		t.Errorf("%d sets, controls are %v", len(r.Sets), controls)
	}
	dir.Write(t, "copy.txt", append(clitest.Text(x), clitest.Text(&vectors.Dense{IDs: []string{"more"}, Dim: 8, Data: make([]float32, 8)})...))
	checkPrints(t, dir, "intrusion auto a --input copy.txt --reference reference.txt", "over 60 words", "warning: a was trained on another file, in.txt, than copy.txt")
	// Replacing a model removes its accuracy.
	dir.MustRun(t, "paper train in.txt -o a --epochs 5 --quiet --force")
	if _, err := os.Stat(dir.Path("a/intrusion.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new model has the accuracy of the old one: %v", err)
	}
}
