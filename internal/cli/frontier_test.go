package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/lab/experiment"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/internal/testonly/clitest"
	"overcomplete/interpret"
	"overcomplete/model"
)

// frontierDir makes a directory with vectors, x.txt, others of the same words, ref.txt, and
// the data of word similarity, which takes little time.
func frontierDir(t *testing.T) clitest.Dir {
	t.Helper()
	dir, x := evalDir(t)
	for _, folder := range []string{"20news-bydate", "trec", "sst2", "np-bracketing"} {
		if err := os.RemoveAll(dir.Path("data/" + folder)); err != nil {
			t.Fatal(err)
		}
	}
	reference := clitest.Vectors(x.Len(), 5)
	reference.Words = x.Words
	dir.Write(t, "ref.txt", clitest.Text(reference))
	return dir
}

const frontierLine = "frontier x.txt --data data --reference ref.txt --seeds 2 --nonzeros 12,4 --lambda 0.1"

// All numbers are those that train, eval and intrusion auto give for the same model.
func TestFrontier(t *testing.T) {
	t.Parallel()
	dir := frontierDir(t)
	stdout, stderr := dir.MustRun(t, frontierLine+" -o out --json")
	var got struct {
		AverageOver []string `json:"average_over"`
		Dense       *experiment.Record
		Points      []*experiment.Record
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	// Methods A and B of best with and without anchor with both numbers of nonzeros, of paper
	// from random numbers and from words with one λ, and both controls: with two seeds.
	if len(got.Points) != 2*(2*2*2+2*2+2*2) || !slices.Equal(got.AverageOver, []string{"SimLex-999"}) {
		t.Fatalf("%d points, average over %v", len(got.Points), got.AverageOver)
	}
	if !strings.Contains(stderr, "warning: left out: TREC") {
		t.Errorf("says\n%s", stderr)
	}
	compare := func(name string, r *experiment.Record, c interpret.Coherence, evaluated string) {
		t.Helper()
		c.Scores, c.Negative = nil, nil // a frontier keeps the positive sides' means
		if !reflect.DeepEqual(*r.Intrusion, c) {
			t.Errorf("%s: intrusion is %+v, want %+v", name, *r.Intrusion, c)
		}
		if evaluated == "" {
			return
		}
		stdout, _ := dir.MustRun(t, "eval "+evaluated+" --data data --tasks WS-353,SimLex-999 --json")
		var want struct {
			Rows []struct{ Tasks map[string]any }
		}
		if err := json.Unmarshal([]byte(stdout), &want); err != nil {
			t.Fatal(err)
		}
		var scores map[string]any
		text, _ := json.Marshal(r.Scores)
		if err := json.Unmarshal(text, &scores); err != nil || !reflect.DeepEqual(scores, want.Rows[0].Tasks) {
			t.Errorf("%s: scores are %v, want %v", name, scores, want.Rows[0].Tasks)
		}
	}
	scored := func(model string) []intrusion.Result {
		stdout, _ := dir.MustRun(t, "intrusion auto "+model+" --input x.txt --reference ref.txt --json")
		var r autoResult
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		return r.Sets
	}
	for i, r := range got.Points {
		h := r.Training.Base()
		best, isBest := r.Training.Recipe.(model.Best)
		name := fmt.Sprint("p", i)
		if r.Control != "" {
			if h.Seed == 1 { // all words are in the reference, so that the controls are those of a model as sparse
				dir.MustRun(t, fmt.Sprintf("train x.txt -o %s --quiet --nonzeros %d", name, best.Nonzeros))
				for _, s := range scored(name) {
					if s.Control == r.Control {
						compare(name+" "+string(r.Control), r, s.Coherence, "")
					}
				}
			}
			continue
		}
		flags := fmt.Sprintf("train x.txt -o %s --quiet -k 60 --method %s --seed %d --recipe %s", name, h.Method, h.Seed, r.Training)
		evaluated := name
		if h.Method == "B" {
			evaluated += ":binary"
		}
		if isBest {
			flags += fmt.Sprintf(" --nonzeros %d --anchor %v", best.Nonzeros, best.Anchor)
		} else {
			paper := r.Paper()
			flags += fmt.Sprintf(" --lambda %v --init %s --center=%v", paper.Lambda, paper.Init, paper.Center)
		}
		dir.MustRun(t, flags)
		m := dir.Model(t, name)
		want := r.Training.Recipe
		if isBest { // which settles them, and finds the words in order of the alphabet
			best.TrainWords, best.Order = m.Info.Words(), model.None
			want = best
		}
		if m.Info.Training.Recipe != want {
			t.Errorf("%s is of %+v, want %+v", name, m.Info.Training.Recipe, want)
		}
		measured, sparsity := m.Info.Encoding.Error, 1-float64(m.Codes.Nonzeros())/float64(m.Codes.Rows*60)
		if r.Metrics.Error != measured || math.Abs(r.Metrics.Sparsity-sparsity) > 1e-12 { // a share of 7,200 values
			t.Errorf("%s: error %v and %v zeros, want %v and %v", flags, r.Metrics.Error, r.Metrics.Sparsity, measured, sparsity)
		}
		// The points of seed 2 are those of seed 1 in the same order.
		if n := len(got.Points) / 2; i >= n {
			var matched struct {
				Mean float64 `json:"mean_cosine"`
			}
			stdout, _ := dir.MustRun(t, fmt.Sprintf("match p%d %s --json", i-n, name))
			if err := json.Unmarshal([]byte(stdout), &matched); err != nil || matched.Mean == 0 || r.Stability == nil || math.Abs(*r.Stability-matched.Mean) > 1e-12 {
				t.Errorf("%s: stability %v, and match says %s", flags, r.Stability, stdout)
			}
		} else if r.Stability != nil {
			t.Errorf("%s: stability %v of the seed that others are matched with", flags, *r.Stability)
		}
		sets := scored(name)
		compare(flags, r, sets[0].Coherence, evaluated)
		if i == 0 {
			compare("X", got.Dense, sets[len(sets)-1].Coherence, "x.txt")
		}
	}

	// Nothing is done twice, and the table has means and standard deviations over seeds.
	before := clitest.Dir(dir.Path("out")).Tree(t)
	text, stderr := dir.MustRun(t, frontierLine+" -o out")
	if strings.Contains(stderr, "making") || strings.Contains(stderr, "evaluating") || !maps.Equal(before, clitest.Dir(dir.Path("out")).Tree(t)) {
		t.Errorf("the same again:\n%s", stderr)
	}
	a, b := got.Points[0].Scores["WS-353"].Score, got.Points[16].Scores["WS-353"].Score
	fields := strings.Split(strings.Split(string(dir.Read(t, "out/frontier.md")), "\n")[9], " | ")
	want := fmt.Sprintf("%.1f ±%.1f", (a+b)/2, math.Abs(a-b)/math.Sqrt2)
	if len(fields) < 7 || fields[0] != "| A, best" || fields[2] != "2" || fields[6] != want {
		t.Errorf("the first row of the table is %q, want WS-353 of %s", fields, want)
	}
	if !strings.Contains(text, "\nword rows ") || !strings.HasSuffix(text, "\nfigure: out/frontier.png\n") {
		t.Errorf("it prints\n%s", text)
	}
	if rows := strings.Count(string(dir.Read(t, "out/frontier.tsv")), "\n"); rows != 1+1+32 {
		t.Errorf("%d rows", rows)
	}
	if _, err := png.Decode(bytes.NewReader(dir.Read(t, "out/frontier.png"))); err != nil {
		t.Error(err)
	}
	for _, part := range []string{"nonzeros a word", "word rows (control)", "reconstruction error", "guessing"} {
		if !bytes.Contains(dir.Read(t, "out/frontier.svg"), []byte(part)) {
			t.Errorf("the figure has no %q", part)
		}
	}
}

// However often it is interrupted, it ends with the files of a run that was not, and has
// drawn what there was before.
func TestFrontierResumes(t *testing.T) {
	t.Parallel()
	dir := frontierDir(t)
	checkResumes(t, dir, frontierLine+" -o ", 4, 4, func() {
		if rows := strings.Count(string(dir.Read(t, "parts/frontier.tsv")), "\n"); rows < 3 || rows > 1+1+32 {
			t.Errorf("%d rows after an interruption", rows)
		}
	})
}

func TestFrontierRefuses(t *testing.T) {
	t.Parallel()
	dir := frontierDir(t)
	const short = " --seeds 1 --nonzeros 4 --lambda 0.1 --quiet"
	dir.MustRun(t, "frontier x.txt --data data --reference ref.txt -o done"+short)
	dir.MustRun(t, "tune x.txt -o tuned --sparsity 0.6 --quiet")
	dir.Write(t, "other.txt", bytes.ToUpper(dir.Read(t, "ref.txt")))
	dir.Write(t, "strange.txt", []byte("nobody 1 2\nnowhere 2 1\n"))
	dir.Write(t, "same.txt", []byte("aa 1 2\nab 1 2\n"))
	record := "done/A-best-k60-n4-seed1.json"
	whole := dir.Read(t, record)
	before := dir.Tree(t)
	const line = "frontier x.txt --data data --reference ref.txt -o "
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"frontier x.txt --data data -o out", []string{`"reference"`}},
		{"frontier x.txt --reference ref.txt -o out", []string{`"data"`}},
		{line + "out --seeds 0", []string{"--seeds is 0"}},
		{line + "out --nonzeros 0,3", []string{"--nonzeros is [0 3]"}},
		{line + "out --nonzeros 3,60", []string{"--nonzeros has 60", "K, which is 60"}},
		{line + "out --lambda 0", []string{"--lambda is [0]"}},
		{line + "out --lambda 1,NaN", []string{"--lambda is", "NaN"}},
		{line + "out --lambda 1e-60", []string{"--lambda is [1e-60]"}},
		{line + "data", []string{"data: is not empty"}},
		{line + "tuned", []string{"tuned: ", "the reference's SHA-256"}},
		{"tune x.txt -o done --sparsity 0.6", []string{"done: ", "the reference's SHA-256"}},
		{line + "done --max-words 50" + short, []string{"done: ", "number of words was 120 and is 50"}},
		{"frontier x.txt --data data --reference other.txt -o done" + short, []string{"no word is in all of x.txt and other.txt"}},
		{"frontier x.txt --data data --reference strange.txt -o out", []string{"no word is in all of x.txt and strange.txt"}},
		{"frontier x.txt --data data --reference x.txt -o out", []string{"x.txt has the same vectors as x.txt"}},
		{"frontier same.txt --data data --reference ref.txt -o out", []string{"same.txt: ", "the vectors to learn from are all the same"}},
		{"frontier x.txt --data data --reference nowhere.txt -o out", []string{"nowhere.txt", "no such file"}},
	} {
		checkRefused(t, dir, tt.args, tt.want, before)
	}
	for from, to := range map[string]string{`"nonzeros": 4`: `"nonzeros": 6`, `"mean": 0.`: `"mean": 7.`, `"seed": 1`: `"seed": 2`} {
		damaged := strings.ReplaceAll(string(whole), from, to)
		if damaged == string(whole) {
			t.Fatalf("no %s in\n%s", from, whole)
		}
		dir.Write(t, record, []byte(damaged))
		checkRefused(t, dir, line+"done"+short, []string{record, "remove it"}, dir.Tree(t))
	}
}
