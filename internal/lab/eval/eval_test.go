package eval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"overcomplete/internal/testonly/evaltest"
	"overcomplete/internal/testonly/realdata"
	"overcomplete/vectors"
)

func readTasks(t *testing.T, dir string) (tasks []Task) {
	t.Helper()
	for _, name := range TaskNames() {
		task, err := ReadTask(name, dir)
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	return tasks
}

func mustEvaluate(t *testing.T, r *Representation, tasks []Task, o Options) []Result {
	t.Helper()
	results, err := Run(context.Background(), r, tasks, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

var defaults = Options{OOV: Skip, Case: Fallback, Seed: 1}

func TestRun(t *testing.T) {
	dir, x := evaltest.Write(t)
	tasks := readTasks(t, dir)
	results := mustEvaluate(t, sparsified(x), tasks, defaults)
	for i, r := range results {
		// The data are made so that vectors help: chance is 0, ½ or ⅙.
		name := tasks[i].Name()
		chance := map[string]float64{"WS-353": 0, "SimLex-999": 0, "TREC": 100. / 6}
		worst, ok := chance[name]
		if !ok {
			worst = 50
		}
		if r.Score < worst+3*r.Stderr {
			t.Errorf("%s is %.1f ± %.1f, no better than chance", name, r.Score, r.Stderr)
		}
		if r.Covered <= 0 || r.Covered >= r.Total || r.Note != "" {
			t.Errorf("%s: %+v", name, r)
		}
		if r.Unit == "tokens" {
			// The standard deviation of a share of n, by the binomial.
			n := map[string]float64{"SST": 80, "TREC": 90, "NP": 180}[name]
			if n == 0 {
				n = 80
			}
			// That of 1000 samples has a standard error of 1/√2000 = 2.2 % itself.
			if want := 100 * math.Sqrt(r.Score/100*(1-r.Score/100)/n); math.Abs(r.Stderr-want) > 0.1*want {
				t.Errorf("%s: standard error %v, want about %v", name, r.Stderr, want)
			}
		}
	}

	// Neither the number of processors nor the other tasks matter.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if again := mustEvaluate(t, sparsified(x), tasks, defaults); !reflect.DeepEqual(again, results) {
		t.Errorf("on one processor:\n%+v\nwas\n%+v", again, results)
	}
	if alone := mustEvaluate(t, sparsified(x), tasks[3:4], defaults); !reflect.DeepEqual(alone, results[3:4]) {
		t.Errorf("alone: %+v, was %+v", alone, results[3])
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, sparsified(x), tasks, defaults, nil); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestUnknownWords(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pairs.txt")
	var lines strings.Builder
	x := &vectors.Dense{Dim: 2}
	for i := range 12 {
		w := string(rune('a' + i))
		x.Words = append(x.Words, w)
		x.Data = append(x.Data, float32(math.Cos(float64(i)/8)), float32(math.Sin(float64(i)/8)))
		// Less similar in the order of the words, and so judged.
		lines.WriteString("A " + w + " " + string(rune('9'-i/2)) + "." + string(rune('9'-i%2)) + "\r\n")
	}
	lines.WriteString("\na unknown 9.99\nunknown unheard-of 9.98\n")
	if err := os.WriteFile(path, []byte(lines.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	task, err := ReadWordSimilarity("pairs", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		oov     OOV
		look    Case
		covered int
		exact   bool // the pairs with vectors are ordered as people do
	}{
		{Skip, Fallback, 12, true},
		{Skip, Lower, 12, true},
		{Skip, Exact, 0, false},
		{Zero, Fallback, 12, false},
		{Mean, Fallback, 12, false},
	} {
		r := mustEvaluate(t, NewDense("x", x), []Task{task}, Options{OOV: tt.oov, Case: tt.look})[0]
		if r.Covered != tt.covered || r.Total != 14 {
			t.Errorf("%s, %s: %d of %d pairs covered, want %d of 14", tt.oov, tt.look, r.Covered, r.Total, tt.covered)
		}
		if tt.covered < fewest {
			if r.Note == "" || !math.IsNaN(r.Score) {
				t.Errorf("%s, %s: %+v, want a note", tt.oov, tt.look, r)
			}
		} else if exact := math.Abs(r.Score-100) < 1e-9; exact != tt.exact {
			t.Errorf("%s, %s: ρ is %v", tt.oov, tt.look, r.Score)
		}
	}
}

// Fits that are ended before their optimum are said to be.
func TestUnconverged(t *testing.T) {
	dir, x := evaltest.Write(t)
	defer func(most int) { mostProducts = most }(mostProducts)
	mostProducts = 2
	r := NewDense("x", x)
	results := mustEvaluate(t, r, []Task{readTask(t, "Comp", dir)}, defaults)
	got := results[0].Unconverged
	// Where the penalty is strong, two products are enough for the coarse fits.
	if len(got) < 5 || got[len(got)-1] != 1e6 {
		t.Errorf("two steps converged but for C of %v", got)
	}
	table := &Table{Tasks: []string{"Comp"}, Rows: []Row{{"x", results}}, Options: defaults}
	var text, asJSON strings.Builder
	if err := cmp.Or(table.WriteText(&text, false), table.WriteJSON(&asJSON)); err != nil {
		t.Fatal(err)
	}
	if want := "1e+06 were ended before their optimum, after 2 steps."; !strings.Contains(text.String(), want) {
		t.Errorf("the table lacks %q:\n%s", want, text.String())
	}
	if !strings.Contains(asJSON.String(), `"unconverged": [`) {
		t.Errorf("JSON lacks it:\n%s", asJSON.String())
	}
}

func TestMalformedData(t *testing.T) {
	for _, tt := range []struct {
		task, file, content string
		want                string // after the file's path
	}{
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "a b 1\na b\n", ":2: 2 fields"},
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "a b high\n", `:1: score is "high"`},
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "a b NaN\n", `:1: score is "NaN"`},
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "\n", ": holds no pairs"},
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "a \xff 1\n", ":1: is not UTF-8"},
		{"SST", "sst2/stsa.binary.dev", "1 good\n2 so so\n", `:2: label is "2"`},
		{"SST", "sst2/stsa.binary.test", "1 good\n", `/stsa.binary.train:1: label "0" is here, but not in `},
		{"SST", "sst2/stsa.binary.train", "", ": holds no texts"},
		{"TREC", "trec/raw.TREC.train", "Who was it ?\n", ":1: does not begin with CLASS:kind"},
		{"TREC", "trec/raw.TREC.test", "C0:x a\nC1:x a\nC2:x a\nC3:x a\nC4:x a\nC5:x a\nNEW:x a b\n", `:7: label "NEW" is here, but not in `},
		{"Sports", "20news-bydate/20news-bydate-test/rec.sport.hockey/1000", "From: me\n", ": no blank line"},
		{"NP", "np-bracketing/dataset.txt", "0\ta-n_b-n_c-n\tL\n", `:1: begins with "0", want a header line`},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\n0\ta-n_b-n_c-n\n", ":2: 2 fields"},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\nx\ta-n_b-n_c-n\tL\n", `:2: fold is "x"`},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\n0\ta-n_b-n\tL\n", `:2: phrase "a-n_b-n" has 2 words`},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\n0\ta-n_b-n_c-n\tM\n", `:2: bracketing is "M"`},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\n0\ta-n_b-n_c-n\tL\n", ": want fold 0 and two or more others"},
	} {
		dir, _ := evaltest.Write(t)
		path := filepath.Join(dir, filepath.FromSlash(tt.file))
		if err := os.WriteFile(path, []byte(tt.content), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := ReadTask(tt.task, dir)
		if err == nil {
			t.Errorf("%s with %q in %s is read", tt.task, tt.content, tt.file)
			continue
		}
		want := path + tt.want
		if strings.HasPrefix(tt.want, "/") { // another file of the folder
			want = filepath.Dir(path) + filepath.FromSlash(tt.want)
		}
		if got := err.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%s with %q: %q, want %q", tt.file, tt.content, got, want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTask(tt.task, dir); !strings.HasPrefix(tt.file, "20news") && (err == nil || !strings.HasPrefix(err.Error(), path+": ")) {
			t.Errorf("without %s: %v", tt.file, err)
		}
	}
}

func TestLabelled(t *testing.T) {
	dir, x := evaltest.Write(t)
	var parts [3]strings.Builder
	for i, word := range x.Words {
		label := "first half"
		if i >= x.Len()/2 {
			label = "second"
		}
		parts[i%3].WriteString(label + "\t" + word + " " + word + "\n")
	}
	var paths []string
	for i := range parts {
		paths = append(paths, filepath.Join(dir, string(rune('a'+i))))
		if err := os.WriteFile(paths[i], []byte(parts[i].String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, paths := range [][]string{paths[:2], paths} {
		task, err := ReadLabelled("halves", paths)
		if err != nil {
			t.Fatal(err)
		}
		if r := mustEvaluate(t, NewDense("x", x), []Task{task}, defaults)[0]; r.Score < 75 || r.Total != 80*len(paths) {
			t.Errorf("%+v", r)
		}
	}
	if err := os.WriteFile(paths[0], []byte("first half\ta\nsecond b\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLabelled("halves", paths); err == nil || !strings.HasPrefix(err.Error(), paths[0]+":2: ") {
		t.Errorf("a line without a tab: %v", err)
	}
}

func TestTransforms(t *testing.T) {
	x := &vectors.Dense{Words: []string{"a", "b"}, Dim: 3, Data: []float32{-3, 0, 1, 3, -1, 0.5}}
	// The positive mean is 1.5, the negative one −2.
	for name, want := range map[string][]float32{"thresh1": {0, 0, 1, 1, 0, 1}, "thresh2": {-1, 0, 0, 1, 0, 0}} {
		s := Transforms[name](x)
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		got := make([]float32, 6)
		for i := range s.Rows {
			index, value := s.Row(i)
			for n, j := range index {
				got[3*i+int(j)] = value[n]
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s gives %v, want %v", name, got, want)
		}
	}
	for _, v := range []float32{0, 1} { // no negative values, no positive ones either
		s := threshold2(&vectors.Dense{Words: []string{"a"}, Dim: 1, Data: []float32{v}})
		if s.Nonzeros() != int(v) {
			t.Errorf("of %v: %v", v, s.Value)
		}
	}
}

func TestTable(t *testing.T) {
	result := func(score, stderr float64) Result {
		return Result{Score: score, Stderr: stderr, Covered: 9, Total: 10, Unit: "tokens"}
	}
	table := &Table{
		Tasks: []string{"WS-353", "SST", "TREC", "NP", "spam"},
		Rows: []Row{
			{"x_1", []Result{result(50, 4), result(70, 3), result(81.04, 4), result(60, 1), result(99, 1)}},
			{"model", []Result{result(60, 4), result(72, 3), result(80.96, 4), Result{Covered: 3, Total: 10, Unit: "tokens"}.left("too few"), result(98, 1)}},
		},
		Options: defaults,
	}
	if got, want := table.Averaged(), []string{"SST", "TREC"}; !reflect.DeepEqual(got, want) {
		t.Errorf("averaged over %q, want %q", got, want)
	}
	write := func(f func(b *bytes.Buffer) error) string {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		got  string
		want []string
	}{
		"text": {write(func(b *bytes.Buffer) error { return table.WriteText(b, false) }), []string{
			"          WS-353        SST       TREC         NP       spam    Average\n" +
				"x_1    50.0 ±4.0  70.0 ±3.0  81.0 ±4.0  60.0 ±1.0  99.0 ±1.0  75.5 ±2.5\n" +
				"model  60.0 ±4.0  72.0 ±3.0  81.0 ±4.0          –  98.0 ±1.0  76.5 ±2.5\n",
			"Average over SST, TREC.\n", "model has no score in NP: too few.\n", "NP 3 of 10 tokens", "seed 1",
		}},
		"bold": {write(func(b *bytes.Buffer) error { return table.WriteText(b, true) }), []string{
			"  \x1b[1m81.0 ±4.0\x1b[0m  \x1b[1m60.0 ±1.0\x1b[0m  \x1b[1m99.0 ±1.0\x1b[0m  75.5 ±2.5\n",
		}},
		"Markdown": {write(func(b *bytes.Buffer) error { return table.WriteMarkdown(b) }), []string{
			"|---|---:|---:|---:|---:|---:|---:|\n",
			"| model | **60.0 ±4.0** | **72.0 ±3.0** | **81.0 ±4.0** | – | 98.0 ±1.0 | **76.5 ±2.5** |\n",
		}},
		"LaTeX": {write(func(b *bytes.Buffer) error { return table.WriteLaTeX(b) }), []string{
			"\\begin{tabular}{lrrrrrr}\n",
			`x\_1 & 50.0 $\pm$4.0 & 70.0 $\pm$3.0 & \textbf{81.0 $\pm$4.0} & \textbf{60.0 $\pm$1.0} & \textbf{99.0 $\pm$1.0} & 75.5 $\pm$2.5 \\` + "\n",
		}},
	} {
		for _, want := range tt.want {
			if !strings.Contains(tt.got, want) {
				t.Errorf("%s lacks\n%s\nin\n%s", name, want, tt.got)
			}
		}
	}
	var got struct {
		AverageOver []string `json:"average_over"`
		Rows        []struct {
			Name  string
			Tasks map[string]struct {
				Score, Stderr  *float64
				Covered, Total int
				Note           string
			}
			Average struct{ Score, Stderr float64 }
		}
	}
	if err := json.Unmarshal([]byte(write(func(b *bytes.Buffer) error { return table.WriteJSON(b) })), &got); err != nil {
		t.Fatal(err)
	}
	if sst := got.Rows[1].Tasks["SST"]; *sst.Score != 72 || *sst.Stderr != 3 || sst.Covered != 9 || sst.Total != 10 {
		t.Errorf("SST of model in JSON: %+v", sst)
	}
	if np := got.Rows[1].Tasks["NP"]; np.Score != nil || np.Note != "too few" {
		t.Errorf("NP of model in JSON: %+v", np)
	}
	if got.Rows[0].Name != "x_1" || math.Abs(got.Rows[1].Average.Score-76.48) > 1e-9 {
		t.Errorf("in JSON: %+v", got)
	}
}

// rankWithSciPy computes the tasks of word similarity from the files.
const rankWithSciPy = `
import gzip, json, sys
import numpy as np
from scipy.stats import spearmanr
given = json.load(sys.stdin)
vectors = {}
for line in gzip.open(given["vectors"], "rt", encoding="utf8"):
    word, *values = line.split(" ")
    vectors[word] = np.array(values, float)
def find(word):
    return vectors.get(word, vectors.get(word.lower()))
out = []
for path in given["pairs"]:
    scores, cosines = [], []
    for line in open(path):
        a, b, score = line.split()
        x, y = find(a), find(b)
        if x is not None and y is not None:
            scores.append(float(score))
            cosines.append(x @ y / np.sqrt((x @ x) * (y @ y)))
    out.append([100 * spearmanr(scores, cosines).statistic, len(scores)])
print(json.dumps(out))
`

func TestRealDataWordSimilarity(t *testing.T) {
	path, data := realdata.Path(t, "vectors/googlenews.300d.8000.txt.gz"), realdata.Path(t, "eval")
	x, _, err := vectors.Read(context.Background(), path, vectors.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := mustEvaluate(t, NewDense("x", x), readTasks(t, data)[:2], defaults)
	want := pythonOutput[[][2]float64](t, rankWithSciPy, map[string]any{"vectors": path,
		"pairs": []string{filepath.Join(data, "wordsim/EN-WS-353-ALL.txt"), filepath.Join(data, "wordsim/EN-SIMLEX-999.txt")}})
	for i, r := range got {
		// Values are float32 here: cosines that differ by 1e-7 may change places.
		if math.Abs(r.Score-want[i][0]) > 1e-3 || r.Covered != int(want[i][1]) {
			t.Errorf("%s: %v over %d pairs, SciPy has %v", TaskNames()[i], r.Score, r.Covered, want[i])
		}
	}
	// What others measured with these vectors.
	if got[0].Score < 69.9 || got[0].Score > 70.3 {
		t.Errorf("WS-353 is %v, want 70.1", got[0].Score)
	}
}

func TestResultAsJSON(t *testing.T) {
	for _, r := range []Result{
		{Score: 71.5, Stderr: 0.7, Covered: 12, Total: 14, Unit: "tokens", C: 1e6, Unconverged: []float64{1e5, 1e6}},
		Result{Covered: 3, Total: 14, Unit: "pairs"}.left("too few"),
	} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if null := strings.Contains(string(text), `"score":null,"stderr":null`); null != math.IsNaN(r.Score) {
			t.Errorf("%+v is %s", r, text)
		}
		var back Result
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%+v", back) != fmt.Sprintf("%+v", r) {
			t.Errorf("%+v came back as %+v", r, back)
		}
	}
}
