package experiment

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot"

	"overcomplete/encode"
	"overcomplete/internal/atomicfile"
	"overcomplete/internal/backend"
	"overcomplete/internal/lab/eval"
	"overcomplete/internal/table"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// curve is the share of zeros by λ.
type curve func(lambda float64) float64

// interpolated returns the curve through points, linear in log λ.
func interpolated(lambda, share []float64) curve {
	return func(l float64) float64 {
		i := 1
		for i < len(lambda)-1 && lambda[i] < l {
			i++
		}
		at := min(max(math.Log(l/lambda[i-1])/math.Log(lambda[i]/lambda[i-1]), 0), 1)
		return share[i-1] + at*(share[i]-share[i-1])
	}
}

var curves = map[string]curve{
	// Measured on GloVe 6B, 50 → 500; codes vanish soon after λ = 4.
	"GloVe": interpolated(
		[]float64{.02, .1, .133, .5, 1, 1.86, 2.09, 2.6, 2.98, 3.53, 3.86, 4.02, 4.24, 4.62, 5.33, 5.87, 7.86, 30},
		[]float64{.25, .438, .500, .729, .809, .874, .885, .903, .916, .931, .941, .947, .956, .971, .985, .992, 1, 1}),
	"logistic": func(l float64) float64 { return 1 / (1 + math.Exp(-2.4-1.1*math.Log(l))) },
}

// device is one whose trainings have the sparsity of a curve, and learn nothing. It
// keeps the λ of those that it has finished.
type device struct {
	encode.Device // none
	sparsity      curve
	trained       *[]float64
}

func (d device) Trainer(p backend.Problem) (backend.Trainer, error) {
	return trainer{device: d, problem: p}, nil
}

func (d device) Learner([]float32, *model.Dictionary, float64, encode.Options) (backend.Learner, error) {
	return nil, errors.New("learns nothing")
}

type trainer struct {
	backend.Trainer // none: nothing is saved
	device          device
	problem         backend.Problem
}

func (t trainer) Epoch(ctx context.Context, _, _ int) (backend.Sums, error) {
	if err := ctx.Err(); err != nil {
		return backend.Sums{}, err
	}
	h := t.problem.Hyperparameters
	*t.device.trained = append(*t.device.trained, h.Lambda)
	nonzeros := (1 - t.device.sparsity(h.Lambda)) * float64(t.problem.Len()*h.Atoms)
	return backend.Sums{Steps: 1, Nonzeros: int64(math.Round(nonzeros))}, nil
}

func (t trainer) Device() string { return "test" }
func (t trainer) Close() error   { return nil }

func (t trainer) Dictionary() ([]float32, error) {
	return make([]float32, t.problem.Hyperparameters.Atoms*t.problem.Dim), nil
}

func (t trainer) Codes() (*vectors.CSR, error) {
	rows := t.problem.Len()
	return &vectors.CSR{Rows: rows, Cols: t.problem.Hyperparameters.Atoms, Ptr: make([]int64, rows+1)}, nil
}

// open opens an experiment whose trainings have the sparsity of a curve.
func open(t *testing.T, dir string, sparsity curve, trained *[]float64) *Experiment {
	t.Helper()
	const words = 1000 // and as many atoms, so that the share of zeros is exact to a millionth
	e := &Experiment{
		Dir: dir, Log: io.Discard, Device: device{sparsity: sparsity, trained: trained},
		X: &vectors.Dense{Dim: 1, Data: make([]float32, words)}, Source: &vectors.Source{Name: "x", SHA256: "0"},
	}
	for i := range words {
		e.X.Words = append(e.X.Words, strconv.Itoa(i))
	}
	e.Setting.Input = model.Input{Name: "x", SHA256: "0", Words: words, Dim: 1}
	if err := Open(e, train.Paper(), ""); err != nil {
		t.Fatal(err)
	}
	return e
}

// wanting returns what is to have a share of zeros.
func wanting(share float64) model.Paper {
	h := hyper()
	h.Nonzeros = model.Nonzeros(share, h.Atoms)
	return h
}

func hyper() model.Paper {
	h := train.Paper()
	h.Atoms, h.Epochs = 1000, 1
	return h
}

func TestSparsity(t *testing.T) {
	for name, sparsity := range curves {
		for wanted := 0.3; wanted < 0.996; wanted += 0.05 {
			var trained []float64
			e := open(t, filepath.Join(t.TempDir(), "out"), sparsity, &trained)
			found, err := e.Sparsity(t.Context(), wanting(wanted), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := sparsity(found.Best.Paper().Lambda); !found.Reached || math.Abs(got-wanted) > 0.005+1e-6 || len(trained) > 6 || len(found.Tried) != len(trained) {
				t.Errorf("%s: wanted %.2f, %v, λ = %v has %v; trained with %v", name, wanted, found.Reached, found.Best.Paper().Lambda, got, trained)
			}
			// It is there now.
			before := len(trained)
			again, err := e.Sparsity(t.Context(), wanting(wanted), nil)
			if err != nil || again.Best.Training != found.Best.Training || len(trained) != before {
				t.Errorf("%s: wanted %.2f again: %v, λ = %v, not %v", name, wanted, err, again.Best.Paper().Lambda, found.Best.Paper().Lambda)
			}
		}
	}
}

// A search that is interrupted before any of its trainings, or between a training
// and its record, goes on as if it had not been.
func TestSparsityResumes(t *testing.T) {
	const wanted = 0.95
	var whole []float64
	e := open(t, filepath.Join(t.TempDir(), "out"), curves["GloVe"], &whole)
	if _, err := e.Sparsity(t.Context(), wanting(wanted), nil); err != nil {
		t.Fatal(err)
	}
	if len(whole) < 3 {
		t.Fatalf("trained %v, too few to interrupt", whole)
	}
	for stop := range whole {
		for _, recorded := range []bool{true, false} {
			var trained []float64
			dir := filepath.Join(t.TempDir(), "out")
			e := open(t, dir, curves["GloVe"], &trained)
			ctx, cancel := context.WithCancel(t.Context())
			e.Show = func(model.Recipe) (train.Options, func()) {
				if len(trained) == stop {
					cancel()
				}
				return train.Options{}, func() {}
			}
			if _, err := e.Sparsity(ctx, wanting(wanted), nil); !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted: %v", err)
			}
			if !recorded && stop > 0 {
				h := hyper()
				h.Lambda = whole[stop-1]
				if err := os.Remove(filepath.Join(dir, Name(h)+".json")); err != nil {
					t.Fatal(err)
				}
			}
			e = open(t, dir, curves["GloVe"], &trained)
			if _, err := e.Sparsity(t.Context(), wanting(wanted), nil); err != nil || !slices.Equal(trained, whole) {
				t.Errorf("stopped after %d: %v, trained with %v, uninterrupted %v", stop, err, trained, whole)
			}
		}
	}
}

func TestSparsityOutOfReach(t *testing.T) {
	var trained []float64
	e := open(t, filepath.Join(t.TempDir(), "out"), func(l float64) float64 { return 0.5 + 0.001*math.Log1p(l) }, &trained)
	for range 2 { // the second time there is nothing left to try
		found, err := e.Sparsity(t.Context(), wanting(0.9), nil)
		if err != nil || found.Reached || len(trained) > 6 {
			t.Fatalf("%v, %+v, trained with %v", err, found, trained)
		}
		if want := slices.Max(trained); found.Best.Paper().Lambda != want {
			t.Errorf("nearest has λ = %v, want the largest, %v", found.Best.Paper().Lambda, want)
		}
	}
}

func TestBest(t *testing.T) {
	point := func(sparsity, score float64) *Record {
		return &Record{Metrics: model.Epoch{Sparsity: sparsity}, Scores: map[string]eval.Result{"T": {Score: score, Stderr: score}}}
	}
	none := &Record{Metrics: model.Epoch{Sparsity: 0.95}, Scores: map[string]eval.Result{"T": {Score: math.NaN(), Stderr: math.NaN(), Note: "no"}}}
	for _, tt := range []struct {
		tried  []*Record
		best   int
		enough bool
	}{
		{[]*Record{point(.8, 70), point(.9, 50), point(.95, 60)}, 2, true},
		{[]*Record{point(.95, 60), point(.99, 50), point(.8999, 90)}, 0, true},
		{[]*Record{point(.5, 60), point(.91, 20), point(.89, 90)}, 1, true},
		{[]*Record{point(.5, 60), point(.8, 20), point(.7, 90)}, 1, false},
		{[]*Record{point(.91, 60), point(.92, 60)}, 0, true},
		{[]*Record{none, point(.91, -5)}, 1, true},
		{[]*Record{point(.5, 60), none}, 1, true},
		{[]*Record{point(1, 60), point(.91, 20)}, 1, true}, // all zeros say nothing
		{[]*Record{point(1, 60), point(.8, 20)}, 1, false},
	} {
		best, enough := Best(tt.tried, "T")
		if best != tt.tried[tt.best] || enough != tt.enough {
			t.Errorf("chose %d with enough %v, want %d and %v", slices.Index(tt.tried, best), enough, tt.best, tt.enough)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	base := t.TempDir()
	dir, data := filepath.Join(base, "out"), filepath.Join(base, "data")
	put := func(name, text string) {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("data/wordsim/a", "1")
	put("photos/cat", "a cat")
	opened := func(dir string, change func(s *Setting, h *model.Paper)) error {
		e := &Experiment{Dir: dir}
		e.Setting.Input = model.Input{SHA256: "0", Words: 1, Dim: 2}
		h := hyper()
		change(&e.Setting, &h)
		return Open(e, h, data)
	}
	same := func(*Setting, *model.Paper) {}
	if err := opened(dir, same); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want   string // "" if it is to be opened
		dir    string
		change func(s *Setting, h *model.Paper)
	}{
		{"", dir, same},
		{"", dir, func(_ *Setting, h *model.Paper) { h.Lambda, h.Atoms, h.Method, h.Epochs = 1, 9, "B", 30 }},
		{"SHA-256", dir, func(s *Setting, _ *model.Paper) { s.Input.SHA256 = "1" }},
		{"number of words", dir, func(s *Setting, _ *model.Paper) { s.Input.Words = 7 }},
		{"--center", dir, func(_ *Setting, h *model.Paper) { h.Center = true }},
		{`"seed":1`, dir, func(_ *Setting, h *model.Paper) { h.Seed = 2 }},
		{"protocol", dir, func(s *Setting, _ *model.Paper) { s.Protocol.Seed = 2 }},
		{"not empty", filepath.Join(base, "photos"), same},
		{"not a directory", filepath.Join(base, "photos", "cat"), same},
	} {
		err := opened(tt.dir, tt.change)
		if tt.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if _, refused := errors.AsType[*atomicfile.OutputError](err); !refused || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want an OutputError with %q", err, tt.want)
		}
	}
	if err := Open(&Experiment{Dir: dir, Setting: Setting{Input: model.Input{SHA256: "0", Words: 1, Dim: 2}}}, train.Best(), ""); err == nil || !strings.Contains(err.Error(), "--recipe was paper and is best") {
		t.Errorf("another recipe: %v", err)
	}
	// The first experiments did not say which recipe is theirs, which was paper, nor what it starts from.
	text, err := os.ReadFile(filepath.Join(dir, settingFile))
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`"(recipe|init)": .*\n *`).ReplaceAllString(string(text), "")
	if strings.Contains(old, "paper") || strings.Contains(old, "random") {
		t.Fatalf("it says\n%s", old)
	}
	put("out/"+settingFile, old)
	if err := opened(dir, same); err != nil {
		t.Errorf("an experiment of an older version: %v", err)
	}
	// Data may come, but not change.
	put("data/trec/b", "2")
	if err := opened(dir, same); err != nil {
		t.Error(err)
	}
	put("data/trec/b", "3")
	if err := opened(dir, same); err == nil || !strings.Contains(err.Error(), "trec") {
		t.Errorf("changed data: %v", err)
	}
}

func TestPointRefuses(t *testing.T) {
	var trained []float64
	dir := filepath.Join(t.TempDir(), "out")
	e := open(t, dir, curves["logistic"], &trained)
	h := hyper()
	if _, err := e.Point(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(dir, Name(h)+".json")
	other := h
	other.Epochs = 2
	refused := func(h model.Paper) {
		t.Helper()
		_, err := e.Point(t.Context(), h, nil)
		if _, ok := errors.AsType[*atomicfile.OutputError](err); !ok {
			t.Errorf("%v, want an OutputError", err)
		}
	}
	refused(other)
	whole, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"{",
		strings.Replace(string(whole), `"lambda": 0.5`, `"lambda": 1e-320`, 1),
		regexp.MustCompile(`"sparsity": 0[.0-9]*`).ReplaceAllString(string(whole), `"sparsity": 1e308`),
	} {
		if err := os.WriteFile(record, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if text == string(whole) {
			t.Fatal("nothing is changed")
		}
		refused(h)
	}
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	refused(other) // by the model
	if err := os.Remove(filepath.Join(e.ModelDir(h), "codes.npz")); err != nil {
		t.Fatal(err)
	}
	refused(h)
	if len(trained) != 1 {
		t.Errorf("trained %d times, want once", len(trained))
	}
}

func TestFigureOfNothing(t *testing.T) {
	nan := math.NaN()
	for _, p := range []Panel{
		{},
		{Lines: []Line{{Look: Look{Name: "a"}, Points: []FigurePoint{{X: 1, Y: nan, Deviation: nan}}}}},
		{LogX: true, Lines: []Line{{Points: []FigurePoint{{X: 1, Y: 2}}}}, YMark: Mark{"wanted", 3}},
	} {
		name := filepath.Join(t.TempDir(), "f")
		if err := p.Save(name); err != nil {
			t.Fatal(err)
		}
		for _, ending := range []string{".png", ".svg"} {
			if info, err := os.Stat(name + ending); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", ending, err)
			}
		}
	}
}

// A frontier of nothing is drawn, points without a number are left out where they have
// none, and those of zeros everywhere.
func TestMeasured(t *testing.T) {
	tasks := []string{eval.TuningTask, "SST"}
	record := func(seed uint64, h model.Recipe, sparsity, failed, score float64, c interpret.Coherence) *Record {
		if h != nil {
			c := h.Base()
			c.Atoms, c.Seed = 100, seed
			h = h.With(c)
		}
		return &Record{Training: Recipe{h}, Metrics: model.Epoch{Sparsity: sparsity, Error: failed}, Intrusion: &c, Scores: map[string]eval.Result{
			eval.TuningTask: {Score: math.NaN(), Stderr: math.NaN(), Note: "none"}, "SST": {Score: score, Stderr: 1},
		}}
	}
	share := func(x float64) interpret.Estimate { return interpret.Estimate{Mean: x} }
	all := interpret.Coherence{Dimensions: 10, Quartered: 5, Any: share(.5), Quarters: []interpret.Estimate{share(.4), share(.3), share(.2), share(.1)}}
	few := all
	few.Quartered = 4
	x := record(0, nil, 0, 0, 60, interpret.Coherence{Dimensions: 3, Any: share(.25)})
	dead := record(1, train.Paper(), 1, 9, 40, interpret.Coherence{})
	points := []*Record{record(1, train.Best(), .75, 2, 70, all), record(1, train.Paper(), .5, 0, 80, few), dead, record(2, train.Best(), .75, 3, 73, all)}

	cosine := .965
	points[3].Stability = &cosine

	m := newMeasured(x, 8, points, tasks, eval.Options{})
	want := table.Table{
		{"vectors", "λ", "seeds", "nonzeros", "error", "explained", "WS-353", "average", "top", "q1", "q2", "q3", "q4", "stability"},
		{"X", "", "", "–", "–", "–", "–", "60.0", "25.0", "–", "–", "–", "–", "–"},
		{"A, best", "", "2", "25.0 ±0.0", "2.500 ±0.707", "68.8 ±8.8", "–", "71.5 ±2.1", "50.0 ±0.0", "40.0 ±0.0", "30.0 ±0.0", "20.0 ±0.0", "10.0 ±0.0", "96.5"},
		{"A, paper", "0.5", "1", "50.0", "0.000", "100.0", "–", "80.0", "50.0", "–", "–", "–", "–", "–"},
	}
	if got := m.Table(); !reflect.DeepEqual(got, want) {
		t.Errorf("the table is\n%q\nwant\n%q", got, want)
	}
	tsv := "vectors\tlambda\tseed\tnonzeros\terror\texplained\tunused\tWS-353\tSST\taverage\ttop\tq1\tq2\tq3\tq4\tstability\n" +
		"X\t\t0\t\t\t\t0\t\t60\t60\t25\t\t\t\t\t\n" +
		"A, best\t\t1\t25\t2\t75\t0\t\t70\t70\t50\t40\t30\t20\t10\t\n" +
		"A, paper\t0.5\t1\t50\t0\t100\t0\t\t80\t80\t50\t\t\t\t\t\n" +
		"A, best\t\t2\t25\t3\t62.5\t0\t\t73\t73\t50\t40\t30\t20\t10\t96.5\n"
	if got := m.TSV(); got != tsv {
		t.Errorf("the file is\n%swant\n%s", got, tsv)
	}
	for _, m := range []*Measured{m, newMeasured(x, 8, nil, tasks, eval.Options{}), newMeasured(x, 8, points[2:3], nil, eval.Options{})} {
		name := filepath.Join(t.TempDir(), "f")
		if err := m.Figure().Save(name); err != nil {
			t.Fatal(err)
		}
		for _, ending := range []string{".png", ".svg"} {
			if info, err := os.Stat(name + ending); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", ending, err)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		got  []plot.Tick
		want string
	}{
		{ticks(-0.4, 10.9), "0 2 4 6 8 10"}, {ticks(17.3, 41.2), "20 25 30 35 40"}, {ticks(70.02, 70.9), "70.2 70.4 70.6 70.8"},
		{logTicks(0.02, 4), "0.03 0.1 0.3 1 3"}, {logTicks(4.9, 310), "10 30 100 300"},
		{logTicks(0.32, 0.9), "0.4 0.5 0.6 0.7 0.8 0.9"}, {logTicks(8, 25), "10 20"}, {logTicks(39.6, 40.4), "40"}, {logTicks(148.5, 151.5), "150"},
	} {
		var labels []string
		for _, tick := range tt.got {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != tt.want {
			t.Errorf("ticks are %s, want %s", got, tt.want)
		}
	}
}
