package cli

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"overcomplete/lab/paper"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// paperDir returns a directory with the vectors x.txt and the data of the fast tasks.
func paperDir(t *testing.T) clitest.Dir {
	t.Helper()
	dir, _ := evalDir(t)
	for _, folder := range []string{"20news-bydate", "trec", "sst2", "np-bracketing"} {
		testonly.Must(t, os.RemoveAll(dir.Path("data/"+folder)))
	}
	return dir
}

// paper tune tries the paper's grid, with the models and scores of "paper train" and eval.
func TestPaperTune(t *testing.T) {
	t.Parallel()
	dir := paperDir(t)
	stdout, stderr := dir.MustRun(t, "paper tune x.txt --data data -o out --json")
	var got paper.Tuning
	testonly.Must(t, json.Unmarshal([]byte(stdout), &got))
	for i, s := range got.Settings {
		if s.Lambda != []float64{.1, .5, 1}[i%3] || s.Atoms != 12*[]int{10, 20}[i/3] {
			t.Errorf("setting %d is %+v", i, s)
		}
	}
	if len(got.Settings) != 6 || !got.Sparse || !strings.Contains(stderr, "warning: data has no data for SST, TREC, Sports, Comp, Relig, NP, which are skipped\n") {
		t.Errorf("%+v\n%s", got, stderr)
	}
	dir.MustRun(t, "paper train x.txt -o m --lambda 0.5 --factor 10 --quiet")
	if dir.Learned(t, "m") != dir.Learned(t, "out/A-k120-lambda0.5") {
		t.Error("paper train learns another model")
	}
	checkPrints(t, dir, "eval m --data data --tasks WS-353 --quiet", got.Settings[1].Score.String(), "")
}

// A report that is interrupted and resumed has the same files as an uninterrupted one.
func TestPaperReportResumes(t *testing.T) {
	t.Parallel()
	dir := paperDir(t)
	const line = "paper report x.txt --data data --lambda 0.1,1 --factor 2 --length 1,2,3 -o "
	_, stderr := interruptAt(t, dir, line+"parts", 3, "model ")
	checkParts(t, line, stderr, "\novercomplete: interrupted; the same command continues with the models in parts\n")
	checkOutput(t, dir, line+"parts", "parts/report.md\n")
	dir.MustRun(t, line+"whole")
	whole, parts := clitest.Dir(dir.Path("whole")).Tree(t), clitest.Dir(dir.Path("parts")).Tree(t)
	for _, tree := range []clitest.Tree{whole, parts} {
		maps.DeleteFunc(tree, func(path, _ string) bool { return strings.HasSuffix(path, "model.json") }) // model.json contains times
	}
	if changed := whole.Differences(parts); changed != nil {
		t.Errorf("these differ: %q", changed)
	}
}

func TestPaperRefuses(t *testing.T) {
	t.Parallel()
	dir := paperDir(t)
	dir.Write(t, "strange.txt", []byte("nobody 1 2\nnowhere 2 1\n"))
	dir.Write(t, "bad/wordsim/EN-WS-353-ALL.txt", []byte("a b\n"))
	dir.MustRun(t, "paper tune x.txt --data data -o done --lambda 0.1 --factor 1 --quiet")
	checkRefusals(t, dir, "paper ", map[string]string{
		"": "paper requires a subcommand",
		"tune x.txt --data data -o out --quiet --lambda 0":                               "--lambda is [0]",
		"tune x.txt --data data -o out --quiet --factor 0":                               "--factor is [0]",
		"report x.txt --data data -o out --quiet --length 1,100000":                      "--length is [1 100000]",
		"tune x.txt --data nowhere -o out --quiet":                                       "nowhere",
		"tune x.txt --data bad -o out --quiet":                                           "EN-WS-353-ALL.txt:1",
		"tune strange.txt --data data -o out --quiet":                                    "strange.txt: no score in WS-353",
		"tune x.txt --max-rows 80 --data data -o done --quiet --lambda 0.1 --factor 1":   "remove it or choose another directory",
		"report x.txt --data data -o out --quiet --reference x.txt":                      "x.txt has the same vectors as x.txt",
		"report x.txt --data data -o out --quiet --reference strange.txt":                "no word is in all of x.txt and strange.txt",
		"report x.txt --data data -o done/A-k12-lambda0.1 --quiet --lambda 1 --factor 1": "is in the directory of a model",
	})
}
