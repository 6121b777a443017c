package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/lab/experiment"
	"overcomplete/internal/testonly/clitest"
	"overcomplete/model"
)

// timelessTree is tree without the seconds that trainings took.
func timelessTree(t *testing.T, dir clitest.Dir, name string) clitest.Tree {
	all := clitest.Dir(dir.Path(name)).Tree(t)
	seconds := regexp.MustCompile(`"seconds": [^\n]*`)
	for path, content := range all {
		all[path] = seconds.ReplaceAllString(content, "")
	}
	return all
}

func TestTune(t *testing.T) {
	t.Parallel()
	dir, x := evalDir(t)
	stdout, _ := dir.MustRun(t, "tune x.txt --data data -o out --json")
	var got experiment.Tuned
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	// The choice, found in another way, and its score and sparsity by other commands.
	var best *experiment.Record
	enough := 0
	for i, r := range got.Tried {
		if h := r.Paper(); h.Lambda != []float64{.1, .5, 1}[i%3] || h.Atoms != x.Dim*[]int{10, 20}[i/3] {
			t.Errorf("point %d has λ = %v, K = %d", i, h.Lambda, h.Atoms)
		}
		if r.Metrics.Sparsity < 0.9 {
			continue
		}
		enough++
		if best == nil || r.Scores["WS-353"].Score > best.Scores["WS-353"].Score {
			best = r
		}
	}
	if len(got.Tried) != 6 || enough < 2 || !got.Reached || got.Best.Training != best.Training {
		t.Errorf("chose %+v of %d, want %+v", got.Best.Training, enough, best.Training)
	}
	m := dir.Model(t, got.Model)
	if m.Info.Training.Recipe != best.Training.Recipe || best.Metrics.Sparsity != m.Info.Training.Epochs[19].Sparsity {
		t.Errorf("%s is of %+v", got.Model, m.Info.Training.Recipe)
	}
	stdout, _ = dir.MustRun(t, "eval "+got.Model+" --data data --tasks WS-353 --json")
	var evaluated struct {
		Rows []struct {
			Tasks map[string]struct{ Score, Stderr float64 }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &evaluated); err != nil {
		t.Fatal(err)
	}
	if s, want := best.Scores["WS-353"], evaluated.Rows[0].Tasks["WS-353"]; s.Score != want.Score || s.Stderr != want.Stderr {
		t.Errorf("WS-353 is %v ± %v, want %v ± %v", s.Score, s.Stderr, want.Score, want.Stderr)
	}

	// Nothing is done twice.
	before := clitest.Dir(dir.Path("out")).Tree(t)
	text, stderr := dir.MustRun(t, "tune x.txt --data data -o out")
	if strings.Contains(stderr, "training") || strings.Contains(stderr, "evaluating") || !maps.Equal(before, clitest.Dir(dir.Path("out")).Tree(t)) {
		t.Errorf("the same again:\n%s", stderr)
	}
	if strings.Count(text, "chosen") != 1 || !strings.HasSuffix(text, "model: "+got.Model+"\n") {
		t.Errorf("it prints\n%s", text)
	}
	if _, err := png.Decode(bytes.NewReader(dir.Read(t, "out/tune.png"))); err != nil {
		t.Error(err)
	}

	// The search goes on from what the grid has left.
	stdout, stderr = dir.MustRun(t, "tune x.txt -o out --sparsity 0.7 --json")
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	trained := strings.Count(stderr, "training A-k")
	if s := dir.Model(t, got.Model).Info.Training.Epochs[19].Sparsity; !got.Reached || math.Abs(s-0.7) > 0.005 || trained == 0 || len(got.Tried) != 3+trained || trained > 6 {
		t.Errorf("%v zeros after %d trainings, %d tried\n%s", s, trained, len(got.Tried), stderr)
	}
}

// Of method B, the binary vectors count.
// A model that tune names is there and whole, whatever became of it since it was trained.
func TestTuneOpensWhatItNames(t *testing.T) {
	t.Parallel()
	dir, _ := evalDir(t)
	const line = "tune x.txt -o out --sparsity 0.6 --quiet"
	stdout, _ := dir.MustRun(t, line+" --json")
	var got experiment.Tuned
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	want := dir.Model(t, got.Model)
	if err := os.RemoveAll(dir.Path(got.Model)); err != nil {
		t.Fatal(err)
	}
	dir.MustRun(t, line)
	if m := dir.Model(t, got.Model); !slices.Equal(m.Codes.Value, want.Codes.Value) {
		t.Error("trained again, it is another model")
	}
	whole := dir.Read(t, got.Model+"/codes.npz")
	dir.Write(t, got.Model+"/codes.npz", whole[:100])
	checkRefused(t, dir, line, []string{got.Model, "codes.npz", "remove it to have it trained again"}, dir.Tree(t))
}

func TestTuneB(t *testing.T) {
	t.Parallel()
	dir, _ := evalDir(t)
	stdout, _ := dir.MustRun(t, "tune x.txt --data data -o out --method B --center --sparsity 0.9 -k 40 --json")
	var got experiment.Tuned
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	dir.MustRun(t, "train --recipe paper x.txt -o b --method B --center -k 40 --quiet --lambda "+fmt.Sprint(got.Best.Paper().Lambda))
	if dir.Learned(t, "b") != dir.Learned(t, got.Model) {
		t.Error("train --recipe paper learns another model")
	}
	stdout, _ = dir.MustRun(t, "eval b:binary --data data --tasks WS-353 --json")
	if want := fmt.Sprint(got.Best.Scores["WS-353"].Score); !strings.Contains(stdout, `"score": `+want) {
		t.Errorf("WS-353 is %v, not that of\n%s", want, stdout)
	}
}

// The recipe best is tuned by shares of zeros, and makes the models of train. They take as many as
// are wanted, without a search.
func TestTuneBest(t *testing.T) {
	t.Parallel()
	dir, x := evalDir(t)
	const line = "tune x.txt --data data -o out --recipe best --anchor 1 --seed 2"
	stdout, _ := dir.MustRun(t, line+" --json")
	var got experiment.Tuned
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	for i, r := range got.Tried {
		if h := r.Training.Recipe.(model.Best); h.Nonzeros != model.Nonzeros([]float64{.9, .95, .97}[i%3], h.Atoms) || h.Atoms != x.Dim*[]int{10, 20}[i/3] || h.Anchor != 1 || h.Seed != 2 {
			t.Errorf("point %d is of %+v", i, h)
		}
	}
	h := got.Best.Training.Recipe.(model.Best)
	dir.MustRun(t, fmt.Sprintf("train x.txt -o m --anchor 1 --seed 2 --quiet --nonzeros %d -k %d", h.Nonzeros, h.Atoms))
	if len(got.Tried) != 6 || !got.Reached || dir.Model(t, "m").Info.Training.Recipe != model.Recipe(h) || dir.Learned(t, "m") != dir.Learned(t, got.Model) {
		t.Errorf("chose %s of %d, with another model than train's", got.Model, len(got.Tried))
	}
	before := clitest.Dir(dir.Path("out")).Tree(t)
	text, stderr := dir.MustRun(t, line)
	if strings.Contains(stderr, "training") || !strings.Contains(text, "vectors  nonzeros    K") || !maps.Equal(before, clitest.Dir(dir.Path("out")).Tree(t)) {
		t.Errorf("the same again:\n%s\n%s", stderr, text)
	}
	text, stderr = dir.MustRun(t, "tune x.txt -o out --recipe best --anchor 1 --seed 2 --nonzeros 5 -k 50")
	if want := "nonzeros = 5, K = 50: 90.00 % zeros\nmodel: out/A-best-k50-n5\n"; strings.Count(stderr, "training A-best") != 1 || !strings.HasSuffix(text, want) {
		t.Errorf("%s\nwant %s", text, want)
	}
}

func TestTuneNotSparseEnough(t *testing.T) {
	t.Parallel()
	dir, x := evalDir(t)
	for i := range x.Data { // RDA knows no scale: long vectors have codes that are hardly sparse
		x.Data[i] *= 30
	}
	dir.Write(t, "x.txt", clitest.Text(x))
	stdout, _ := dir.MustRun(t, "tune x.txt --data data -o out --quiet")
	if !strings.Contains(stdout, "no point has 90 % zeros; the sparsest is λ = ") {
		t.Errorf("it prints\n%s", stdout)
	}
}

// Each length has the share of zeros that is wanted, by either recipe.
func TestSweepSparsity(t *testing.T) {
	t.Parallel()
	dir, _ := evalDir(t)
	for _, folder := range []string{"20news-bydate", "trec", "sst2", "np-bracketing"} {
		if err := os.RemoveAll(dir.Path("data/" + folder)); err != nil {
			t.Fatal(err)
		}
	}
	for _, recipe := range []string{"best", "paper"} {
		out := "out." + recipe
		stdout, _ := dir.MustRun(t, "sweep x.txt --data data --factors 5,10 --sparsity 0.8 --recipe "+recipe+" -o "+out)
		if !regexp.MustCompile(`(?m)^5·L = 60 \((79\.[5-9]|80\.[0-5]) % zeros\) .*\n10·L = 120 \((79\.[5-9]|80\.[0-5]) % zeros\) `).MatchString(stdout) {
			t.Errorf("%s:\n%s", recipe, stdout)
		}
		before := clitest.Dir(dir.Path(out)).Tree(t)
		if _, stderr := dir.MustRun(t, "sweep x.txt --data data --factors 5,10 --sparsity 0.8 --recipe "+recipe+" -o "+out); strings.Contains(stderr, "training") || !maps.Equal(before, clitest.Dir(dir.Path(out)).Tree(t)) {
			t.Errorf("%s: the same again:\n%s", recipe, stderr)
		}
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("trains and evaluates many models")
	}
	dir, x := evalDir(t)
	for _, folder := range []string{"20news-bydate", "trec"} { // the rest is quicker
		if err := os.RemoveAll(dir.Path("data/" + folder)); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr := dir.MustRun(t, "sweep x.txt --data data -o out --lambda 0.2 --json")
	for _, task := range []string{"TREC", "Sports", "Comp", "Relig"} {
		if !strings.Contains(stderr, "warning: left out: "+task) || strings.Contains(stdout, task) {
			t.Errorf("%s is not left out", task)
		}
	}
	var got struct {
		AverageOver []string `json:"average_over"`
		Rows        []struct {
			Name    string
			Tasks   map[string]struct{ Score, Stderr float64 }
			Average struct{ Score, Stderr float64 }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if want := []string{"SimLex-999", "SST", "NP"}; !slices.Equal(got.AverageOver, want) || len(got.Rows) != 8 {
		t.Fatalf("averages over %v in %d rows", got.AverageOver, len(got.Rows))
	}
	dir.MustRun(t, "train --recipe paper x.txt --lambda 0.2 --factor 3 -o m --quiet")
	if dir.Learned(t, "m") != dir.Learned(t, "out/"+experiment.Name(dir.Model(t, "m").Info.Training.Recipe.(model.Paper))) {
		t.Error("train --recipe paper learns another model")
	}
	for i, r := range got.Rows {
		var sum, variances float64
		for _, task := range got.AverageOver {
			sum, variances = sum+r.Tasks[task].Score, variances+r.Tasks[task].Stderr*r.Tasks[task].Stderr
		}
		// Sums of three in another order differ by some 1e-14.
		if math.Abs(r.Average.Score-sum/3) > 1e-9 || math.Abs(r.Average.Stderr-math.Sqrt(variances)/3) > 1e-9 {
			t.Errorf("%s: average is %+v", r.Name, r.Average)
		}
		if want := "X"; i == 0 && r.Name != want {
			t.Errorf("first row is %s", r.Name)
		}
	}
	if want := "15·L = 180 ("; !strings.HasPrefix(got.Rows[6].Name, want) || x.Dim != 12 {
		t.Errorf("row 6 is %s, want %s…", got.Rows[6].Name, want)
	}
	if svg := string(dir.Read(t, "out/sweep.svg")); !strings.Contains(svg, ">15</text>") || !strings.Contains(svg, "average of 3 tasks") {
		t.Errorf("the figure has no ticks or label")
	}
}

// checkResumes checks that a command that is interrupted time and again ends with the files of a
// run that was not, which it returns. The first interruption is after so many lines, each other
// one a part of all further, so that it would end even if nothing were kept. Each, if not nil, is
// called after all but the first.
func checkResumes(t *testing.T, dir clitest.Dir, line string, after, parts int, each func()) clitest.Tree {
	t.Helper()
	_, stderr := dir.MustRun(t, line+"whole")
	want, lines, interruptions := timelessTree(t, dir, "whole"), strings.Count(stderr, "\n"), 0
	for ; ; after += lines/parts + 1 {
		code, _, stderr := clitest.Output(t, interruptedAt(dir.Command(strings.Fields(line+"parts")...), after, "\n"))
		if code == 0 {
			break
		}
		if want := "overcomplete: interrupted; the same command goes on with what is finished in parts\n"; code != exitInterrupted || !strings.HasSuffix(stderr, want) {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		if interruptions++; interruptions > 1 && each != nil {
			each()
		}
	}
	got := timelessTree(t, dir, "parts")
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s differs", path)
		}
	}
	if interruptions < 2 || len(got) != len(want) {
		t.Errorf("after %d interruptions there are\n%q\nwant\n%q", interruptions, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	return want
}

func TestPaperResumes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("trains and evaluates many models")
	}
	dir, x := evalDir(t)
	for _, folder := range []string{"20news-bydate", "trec", "sst2"} { // the rest is quicker
		if err := os.RemoveAll(dir.Path("data/" + folder)); err != nil {
			t.Fatal(err)
		}
	}
	x.Dim, x.Data = 6, x.Data[:6*x.Len()]
	dir.Write(t, "small.txt", clitest.Text(x))
	const line = "paper x.txt small.txt --data data -o "
	want := checkResumes(t, dir, line, 3, 6, nil)
	report := want["report.md"]
	for _, part := range []string{"- Sports (data/20news-bydate", "## Hyperparameters", "## Results", "## Alternative transformations", "| thresh2 |",
		"## Length of the vectors", "(x/sweep.svg)", "(small/tune.svg)"} {
		if !strings.Contains(report, part) {
			t.Errorf("the report has no %q", part)
		}
	}
}

func TestPaperWithoutWordSimilarity(t *testing.T) {
	t.Parallel()
	dir, _ := evalDir(t)
	for _, folder := range []string{"wordsim", "20news-bydate", "sst2", "trec"} {
		if err := os.RemoveAll(dir.Path("data/" + folder)); err != nil {
			t.Fatal(err)
		}
	}
	stdout, _ := dir.MustRun(t, "paper x.txt --data data -o out --quiet")
	report := string(dir.Read(t, strings.TrimSpace(stdout)))
	for _, part := range []string{"Not tuned: there are no data of WS-353", "- WS-353 (", "| x | 120 | 12 | 0.5 | 1e-05 | 120 |"} {
		if !strings.Contains(report, part) {
			t.Errorf("no %q in\n%s", part, report)
		}
	}
}

func TestExperimentsRefuse(t *testing.T) {
	t.Parallel()
	dir, x := evalDir(t)
	dir.MustRun(t, "tune x.txt -o done --sparsity 0.6 --quiet")
	x.Data[0]++
	dir.Write(t, "y.txt", clitest.Text(x))
	for i := range x.Words {
		x.Words[i] += "?"
	}
	dir.Write(t, "strange.txt", clitest.Text(x))
	dir.Write(t, "nan.txt", []byte("a 1 2\nb 1 NaN\n"))
	dir.Write(t, "bad/wordsim/EN-WS-353-ALL.txt", []byte("a b\n"))
	dir.Write(t, "sub/x.txt", []byte("a 1 2\n"))
	before := dir.Tree(t)
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"tune x.txt -o out", []string{"--data", "--sparsity"}},
		{"tune x.txt --data data", []string{`"output"`}},
		{"tune x.txt --data data -o out -k 30", []string{"-k and --factor go with --sparsity"}},
		{"tune x.txt -o out --sparsity 1", []string{"--sparsity is 1"}},
		{"tune x.txt -o out --sparsity NaN", []string{"--sparsity is NaN"}},
		{"tune x.txt -o out --sparsity 92", []string{"--sparsity is 92"}},
		{"tune x.txt -o out --sparsity 0.9 --method C", []string{`--method is "C"`}},
		{"tune x.txt -o out --sparsity 0.9 -k 0", []string{"--atoms is 0"}},
		{"tune x.txt -o out --data nowhere", []string{"nowhere", "no such file"}},
		{"tune x.txt -o out --data bad", []string{"EN-WS-353-ALL.txt:1", "2 fields"}},
		{"tune strange.txt -o out --data data", []string{"strange.txt can't be tuned on WS-353", "too few"}},
		{"tune nan.txt -o out --data data", []string{"nan.txt:2", "NaN"}},
		{"tune x.txt --sparsity 0.9 -o data", []string{"data: is not empty"}},
		{"tune x.txt --sparsity 0.9 -o x.txt", []string{"x.txt: not a directory"}},
		{"tune x.txt --sparsity 0.9 -o no/where", []string{"no/where: ", "no such file"}},
		{"tune y.txt --sparsity 0.6 -o done", []string{"done: ", "SHA-256", "another directory"}},
		{"tune x.txt --sparsity 0.6 -o done --center", []string{"done: ", "--center was false and is true"}},
		{"tune x.txt --sparsity 0.6 -o done --recipe best", []string{"done: ", "--recipe was paper and is best"}},
		{"tune x.txt --sparsity 0.6 -o out --lambda 1", []string{"give --lambda, or --sparsity"}},
		{"tune x.txt --data data -o out --lambda 1", []string{"--lambda is what tune chooses"}},
		{"tune x.txt --data data -o out --recipe best --tau 1", []string{"--tau is of --recipe paper"}},
		{"tune x.txt -o out --nonzeros 61 -k 60", []string{"--nonzeros is 61, want 1 to 60"}},
		{"sweep x.txt --data data -o out --recipe worst", []string{`--recipe is "worst"`}},
		{"tune x.txt --sparsity 0.6 -o done --max-words 50", []string{"done: ", "number of words was 120 and is 50"}},
		{"sweep x.txt -o out", []string{`"data"`}},
		{"sweep x.txt -o out --data sub", []string{"--data sub has none of the paper's data"}},
		{"sweep x.txt -o out --data data --lambda -1", []string{"--lambda is -1"}},
		{"sweep y.txt -o done --data data", []string{"done: ", "SHA-256"}},
		{"sweep x.txt -o out --data bad", []string{"EN-WS-353-ALL.txt:1"}},
		{"paper -o out --data data", []string{"arg"}},
		{"paper nowhere.txt -o out --data data", []string{"nowhere.txt", "no such file"}},
		{"paper x.txt sub/x.txt -o out --data data", []string{"x.txt and sub/x.txt", "rename"}},
		{"paper x.txt -o data --data data", []string{"data: is not empty"}},
		{"paper x.txt -o done --data data", []string{"done: is not empty", "paper.json"}},
		{"paper x.txt -o out --data bad", []string{"EN-WS-353-ALL.txt:1"}},
	} {
		checkRefused(t, dir, tt.args, tt.want, before)
	}
}
