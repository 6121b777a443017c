package paper

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/cpu"
	"overcomplete/internal/atomicfile"
	"overcomplete/internal/printing"
	"overcomplete/lab/eval"
	"overcomplete/lab/figure"
	"overcomplete/lab/intrusion"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/evaltest"
	"overcomplete/train"
	"overcomplete/vectors"
)

func TestChoose(t *testing.T) {
	setting := func(sparsity, score float64) Setting {
		return Setting{Sparsity: sparsity, Score: eval.Result{Score: printing.Number(score)}}
	}
	for _, tt := range []struct {
		settings []Setting
		want     int
		sparse   bool
	}{
		{[]Setting{setting(.8, 70), setting(.9, 50), setting(.95, 60)}, 2, true},
		{[]Setting{setting(.95, 60), setting(.99, 50), setting(.8999, 90)}, 0, true},
		{[]Setting{setting(.5, 60), setting(.91, 20), setting(.89, 90)}, 1, true},
		{[]Setting{setting(.5, 60), setting(.8, 20), setting(.7, 90)}, 1, false},
		{[]Setting{setting(.91, 60), setting(.92, 60)}, 0, true}, // the first of equals
		{[]Setting{setting(1, 60), setting(.91, 20)}, 1, true},   // never codes that are all zero
		{[]Setting{setting(1, 60), setting(.8, 20)}, 1, false},
	} {
		tuning := Tuning{Settings: tt.settings}
		if tuning.choose(); tuning.Chosen != tt.want || tuning.Sparse != tt.sparse {
			t.Errorf("chose %d, sparse %v of %v, want %d, %v", tuning.Chosen, tuning.Sparse, tt.settings, tt.want, tt.sparse)
		}
	}
}

func TestHeatMapRows(t *testing.T) {
	codes := &vectors.Sparse{IDs: []string{"write", "close", "color"}, CSR: vectors.CSR{
		Rows: 3, Cols: 5, Ptr: []int64{0, 2, 4, 5}, Index: []int32{0, 3, 0, 2, 2}, Value: []float32{2, .5, 1, -3, 4},
	}}
	// Means over the first group: 1.5 in dimension 0, .25 in 3, −1.5 in 2; 1 and 4 are not used.
	rows, columns := heatMapRows(codes, [][]int{{1, 0}, {2}})
	want := []figure.Row{{Name: "close", Values: []float64{1, 0, -3}}, {Name: "write", Values: []float64{2, .5, 0}}, {}, {Name: "color", Values: []float64{0, 0, 4}}}
	if columns != 3 || !reflect.DeepEqual(rows, want) {
		t.Errorf("%d columns: %v, want %v", columns, rows, want)
	}
}

func experiments(t *testing.T) *Experiments {
	t.Helper()
	data, x := evaltest.Write(t)
	for _, folder := range []string{"20news-bydate", "trec", "sst2"} { // the rest is quick
		testonly.Must(t, os.RemoveAll(filepath.Join(data, folder)))
	}
	tasks, missing, err := ReadTasks(data)
	if err != nil || len(tasks) != 3 || len(missing) != 5 {
		t.Fatalf("%d tasks, %q are missing, %v", len(tasks), missing, err)
	}
	return &Experiments{
		Dir: filepath.Join(t.TempDir(), "out"), X: x, Source: &vectors.Source{Name: "x", SHA256: strings.Repeat("0", 64)},
		Recipe: train.Paper(), Lambdas: []float64{0.1, 0.5}, Factors: []int{2, 5}, Lengths: []int{1, 2}, Groups: []string{"aa,ab,?", "?", "ba"},
		Tasks: tasks, Device: cpu.Device{},
		Log:  t.Logf,
		Show: func(model.Recipe) (train.Options, func()) { return train.Options{}, func() {} },
	}
}

// A report has the numbers of separate trainings and evaluations, and each model is trained once.
func TestReport(t *testing.T) {
	t.Parallel()
	e := experiments(t)
	reference := &vectors.Dense{IDs: e.X.IDs, Dim: 6}
	for i := range e.X.IDs {
		reference.Data = append(reference.Data, e.X.Row(i)[:6]...)
	}
	var err error
	e.Test, err = intrusion.NewTest(e.X, reference, e.X.IDs)
	testonly.Must(t, err)
	testonly.Must(t, e.Report(t.Context()))
	files := read(t, e.Dir)
	tuning, err := e.Tune(t.Context())
	testonly.Must(t, err)
	chosen := tuning.Settings[tuning.Chosen]
	h := train.Paper()
	h.Method, h.Lambda, h.Atoms = model.Nonnegative, chosen.Lambda, chosen.Atoms
	m, err := train.Fit(t.Context(), e.X, h, cpu.Device{}, train.Options{})
	testonly.Must(t, err)
	results, err := eval.Run(t.Context(), eval.NewSparse("B", m.Codes.Binary()), e.Tasks, evalSeed, nil)
	testonly.Must(t, err)
	for i, r := range results {
		line := strings.Join([]string{"B", e.Tasks[i].Name(), number(float64(r.Score)), number(float64(r.Stderr))}, "\t")
		if !strings.Contains(files["scores.tsv"], line) {
			t.Errorf("no line %q in\n%s", line, files["scores.tsv"])
		}
	}
	if want := fmt.Sprintf("%v\t%d\t%v\t", chosen.Lambda, chosen.Atoms, chosen.Sparsity); !strings.Contains(files["tune.tsv"], want) {
		t.Errorf("no line %q in\n%s", want, files["tune.tsv"])
	}
	for _, part := range []string{"| thresh2 |", "K = 2·L", "Sparsity: ", tuning.Verdict(), "| guessing |", "| dimension ", "| k-means ", "](heatmap.svg)"} {
		if !strings.Contains(files[ReportFile], part) {
			t.Errorf("the report has no %q", part)
		}
	}
	if svg := files["heatmap.svg"]; !strings.Contains(svg, ">aa<") || strings.Contains(svg, ">?<") {
		t.Errorf("the heat map does not have the words that have vectors")
	}

	before, err := os.Stat(filepath.Join(e.Dir, "A-k24-lambda0.5", "codes.npz"))
	testonly.Must(t, err)
	testonly.Must(t, e.Report(t.Context()))
	after, err := os.Stat(filepath.Join(e.Dir, "A-k24-lambda0.5", "codes.npz"))
	if err != nil || !os.SameFile(before, after) || !maps.Equal(files, read(t, e.Dir)) {
		t.Error("the same report again trains again or differs")
	}
}

// read returns the files in dir that are not models.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	paths, _ := filepath.Glob(filepath.Join(dir, "*.[a-z]*"))
	for _, path := range paths {
		files[filepath.Base(path)] = string(testonly.ReadFile(t, path))
	}
	return files
}

// A model with other settings, with other vectors, or damaged, is refused in one short line.
func TestRefusesModels(t *testing.T) {
	t.Parallel()
	e := experiments(t)
	_, err := e.Tune(t.Context())
	testonly.Must(t, err)
	settings, vectors, words, renamed := *e, *e, *e, *e.X
	settings.Recipe.Center = true
	vectors.X = e.X.Slice(0, 100)
	words.X, renamed.IDs = &renamed, slices.Clone(e.X.IDs)
	renamed.IDs[len(renamed.IDs)-1] = "other"
	read := func(path string) string { return string(testonly.ReadFile(t, filepath.Join(e.Dir, path))) }
	codes, info := "A-k24-lambda0.1/codes.npz", "A-k24-lambda0.1/model.json"
	stored := read(info)
	encoding := strings.Index(stored, `"encoding"`)
	for _, damage := range []struct {
		of            *Experiments
		path, content string
	}{
		{&settings, info, stored}, {&vectors, info, stored}, {&words, info, stored},
		{e, info, stored[:encoding] + strings.Replace(stored[encoding:], `"error": 0`, `"error": 1`, 1)},
		{e, codes, read("A-k24-lambda0.5/codes.npz")}, {e, codes, read(codes)[:100]},
	} {
		original := read(damage.path)
		testonly.Must(t, os.WriteFile(filepath.Join(e.Dir, damage.path), []byte(damage.content), 0o666))
		_, err := damage.of.Tune(t.Context())
		if _, refused := errors.AsType[*atomicfile.OutputError](err); !refused || len(err.Error()) > 200+len(e.Dir) {
			t.Errorf("%s of %.60q: %v, want a short OutputError", damage.path, damage.content, err)
		}
		testonly.Must(t, os.WriteFile(filepath.Join(e.Dir, damage.path), []byte(original), 0o666))
	}
}
