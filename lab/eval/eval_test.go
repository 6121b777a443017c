package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"overcomplete/internal/printing"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/testonly/evaltest"
	"overcomplete/vectors"
)

func mustEvaluate(t *testing.T, r *Representation, tasks ...Task) []Result {
	t.Helper()
	results, err := Run(t.Context(), r, tasks, 1, nil)
	testonly.Must(t, err)
	return results
}

func TestRun(t *testing.T) {
	dir, x := evaltest.Write(t)
	var tasks []Task
	for _, name := range TaskNames() {
		task, err := ReadTask(name, dir)
		testonly.Must(t, err)
		tasks = append(tasks, task)
	}
	results := mustEvaluate(t, sparsified(x), tasks...)
	for i, r := range results {
		// Vectors help in these tasks: chance is 0, ½ or ⅙.
		name := tasks[i].Name()
		chance := map[string]printing.Number{"TREC": 100. / 6, "SST": 50, "Sports": 50, "Comp": 50, "Relig": 50, "NP": 50}[name]
		if r.Score < chance+3*r.Stderr {
			t.Errorf("%s is %.1f ± %.1f, no better than chance", name, r.Score, r.Stderr)
		}
		if r.Covered <= 0 || r.Covered >= r.Total || r.Note != "" {
			t.Errorf("%s: %+v", name, r)
		}
		if r.Unit == "tokens" {
			// want is the standard deviation of a share of n texts by the binomial distribution.
			n := cmp.Or(map[string]float64{"TREC": 90, "NP": 180}[name], 80)
			// An estimate from 1000 samples has a relative standard error of 1/√2000 = 2.2 %.
			share := float64(r.Score) / 100
			if want := 100 * math.Sqrt(share*(1-share)/n); math.Abs(float64(r.Stderr)-want) > 0.1*want {
				t.Errorf("%s: standard error %v, want about %v", name, r.Stderr, want)
			}
		}
	}

	// Neither the number of processors nor the other tasks matter.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if again := mustEvaluate(t, sparsified(x), tasks...); !reflect.DeepEqual(again, results) {
		t.Errorf("on one processor:\n%+v\nwas\n%+v", again, results)
	}
	if alone := mustEvaluate(t, sparsified(x), tasks[3:4]...); !reflect.DeepEqual(alone, results[3:4]) {
		t.Errorf("alone: %+v, was %+v", alone, results[3])
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, sparsified(x), tasks, 1, nil); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

// Pairs of words without vectors are dropped, and words are looked up in lower case, too.
func TestUnknownWords(t *testing.T) {
	var lines strings.Builder
	x := &vectors.Dense{Dim: 2}
	for i := range 12 {
		w := string(rune('a' + i))
		x.IDs = append(x.IDs, w)
		x.Data = append(x.Data, float32(math.Cos(float64(i)/8)), float32(math.Sin(float64(i)/8)))
		// Both the cosine of the pair and its judged score decrease with i.
		lines.WriteString("A " + w + " " + string(rune('9'-i/2)) + "." + string(rune('9'-i%2)) + "\r\n")
	}
	dir := t.TempDir()
	writeData(t, dir, "pairs", lines.String()+"\na unknown 9.99\nunknown unheard-of 9.98")
	task, err := ReadWordSimilarity("pairs", filepath.Join(dir, "pairs"))
	testonly.Must(t, err)
	if r := mustEvaluate(t, NewDense("x", x), task)[0]; r.Covered != 12 || r.Total != 14 || math.Abs(float64(r.Score)-100) > 1e-9 {
		t.Errorf("%+v, want ρ = 1 over 12 of 14 pairs", r)
	}
}

func TestMalformedData(t *testing.T) {
	dir, _ := evaltest.Write(t)
	for _, tt := range []struct {
		task, file, content string
		want                string // after the file's path
	}{
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "a b 1\na b\n", ":2: 2 fields"},
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "a b high\n", `:1: score is "high"`},
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "a b NaN\n", `:1: score is "NaN"`},
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "\n", ": no pairs"},
		{"WS-353", "wordsim/EN-WS-353-ALL.txt", "a \xff 1\n", ":1: not valid UTF-8"},
		{"SST", "sst2/stsa.binary.dev", "1 good\n2 so so\n", `:2: label is "2"`},
		{"SST", "sst2/stsa.binary.test", "1 good\n", `/stsa.binary.train:1: label "0" is missing in `},
		{"SST", "sst2/stsa.binary.train", "", ": no texts"},
		{"TREC", "trec/raw.TREC.train", "Who was it ?\n", ":1: want a line that begins with CLASS:kind"},
		{"TREC", "trec/raw.TREC.test", "C0:x a\nC1:x a\nC2:x a\nC3:x a\nC4:x a\nC5:x a\nNEW:x a b\n", `:7: label "NEW" is missing in `},
		{"Sports", "20news-bydate/20news-bydate-test/rec.sport.hockey/1000", "From: me\n", ": no blank line"},
		{"NP", "np-bracketing/dataset.txt", "0\ta-n_b-n_c-n\tL\n", `:1: first field is "0", want a header line`},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\n0\ta-n_b-n_c-n\n", ":2: 2 fields"},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\nx\ta-n_b-n_c-n\tL\n", `:2: fold is "x"`},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\n0\ta-n_b-n\tL\n", `:2: phrase "a-n_b-n" has 2 words`},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\n0\ta-n_b-n_c-n\tM\n", `:2: bracketing is "M"`},
		{"NP", "np-bracketing/dataset.txt", "Fold_id\n0\ta-n_b-n_c-n\tL\n", ": want fold 0 and two or more others"},
	} {
		path := filepath.Join(dir, filepath.FromSlash(tt.file))
		original := testonly.ReadFile(t, path)
		testonly.Must(t, os.WriteFile(path, []byte(tt.content), 0o666))
		_, err := ReadTask(tt.task, dir)
		if err == nil {
			t.Fatalf("%s with %q in %s is read", tt.task, tt.content, tt.file)
		}
		want := path + tt.want
		if strings.HasPrefix(tt.want, "/") { // another file of the folder
			want = filepath.Dir(path) + filepath.FromSlash(tt.want)
		}
		if got := err.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%s with %q: %q, want %q", tt.file, tt.content, got, want)
		}
		testonly.Must(t, os.Remove(path))
		if _, err := ReadTask(tt.task, dir); !strings.HasPrefix(tt.file, "20news") && (err == nil || !strings.HasPrefix(err.Error(), path+": ")) {
			t.Errorf("without %s: %v", tt.file, err)
		}
		testonly.Must(t, os.WriteFile(path, original, 0o666))
	}
}

func TestTransforms(t *testing.T) {
	x := &vectors.Dense{IDs: []string{"a", "b"}, Dim: 3, Data: []float32{-3, 0, 1, 3, -1, 0.5}}
	// The mean of the positive values is 1.5, of the negative values −2.
	for name, want := range map[string][][]float64{"thresh1": {{0, 0, 1}, {1, 0, 1}}, "thresh2": {{-1, 0, 0}, {1, 0, 0}}} {
		s := Transforms[name](x)
		testonly.Must(t, s.Validate())
		if got := clitest.Matrix(s); !reflect.DeepEqual(got, want) {
			t.Errorf("%s gives %v, want %v", name, got, want)
		}
	}
	for _, v := range []float32{0, 1} { // no nonzero values; no negative values
		s := Transforms["thresh2"](&vectors.Dense{IDs: []string{"a"}, Dim: 1, Data: []float32{v}})
		if s.Nonzeros() != int(v) {
			t.Errorf("of %v: %v", v, s.Value)
		}
	}
}

func TestTable(t *testing.T) {
	result := func(score, stderr printing.Number) Result {
		return Result{Score: score, Stderr: stderr, Covered: 9, Total: 10, Unit: "tokens"}
	}
	table := &Table{
		Tasks: []string{"WS-353", "SST", "TREC", "NP", "spam"},
		Rows: []Row{
			{"x_1", []Result{result(50, 4), result(70, 3), result(81.04, 4), result(60, 1), result(99, 1)}},
			{"model", []Result{result(60, 4), result(72, 3), result(80.96, 4), result(0, 0).withoutScore("too few"), result(98, 1)}},
		},
		Seed: 1,
	}
	if got, want := table.Averaged(), []string{"SST", "TREC"}; !reflect.DeepEqual(got, want) {
		t.Errorf("averaged over %q, want %q", got, want)
	}
	asJSON, err := json.Marshal(table)
	testonly.Must(t, err)
	for got, wanted := range map[string][]string{
		table.Text(): {
			"model  60.0 ±4.0  72.0 ±3.0  81.0 ±4.0          –  98.0 ±1.0  76.5 ±2.5\n",
			"Average over SST, TREC.\n", "model has no score in NP: too few.\n", "NP 9 of 10 tokens", "seed 1",
		},
		table.Markdown(): {
			"|---|---:|---:|---:|---:|---:|---:|\n",
			"| model | **60.0 ±4.0** | **72.0 ±3.0** | **81.0 ±4.0** | – | 98.0 ±1.0 | **76.5 ±2.5** |\n",
		},
		string(asJSON): {
			`"average_over":["SST","TREC"]`, `{"name":"model","tasks":{"NP":{"score":null,"stderr":null,`, `"note":"too few"`,
			`"SST":{"score":72,"stderr":3,"covered":9,"total":10,`, `"average":{"score":76.4799`,
		},
	} {
		for _, want := range wanted {
			if !strings.Contains(got, want) {
				t.Errorf("no\n%s\nin\n%s", want, got)
			}
		}
	}
}
