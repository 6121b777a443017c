package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/modeldir"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// testModel returns a model with random numbers.
func testModel(rows, dim, atoms int, center bool) *Model {
	rng := rand.New(rand.NewPCG(1, 2))
	t := Training{
		Input: Input{Name: "vectors.txt", SHA256: strings.Repeat("0f", 32), Rows: rows, Dim: dim},
		Recipe: Paper{
			Common: Common{Method: Signed, Atoms: atoms, Epochs: 20, DictionarySteps: 128},
			Loss:   Squared, Rate: 0.05, Center: center,
		},
		Epochs: []Epoch{{Epoch: 1, Error: 0.1, Objective: 1.0 / 3, Seconds: 1e-9}, {Epoch: 2, UnusedAtoms: 1}},
	}
	m := &Model{
		Info:       Info{Format: FormatVersion, Training: t, Encoding: t.PaperEncoding()},
		Codes:      &vectors.Sparse{CSR: vectors.CSR{Rows: rows, Cols: atoms, Ptr: []int64{0}}},
		Dictionary: Dictionary{Dim: dim, Atoms: normal(rng, dim*atoms)},
	}
	if center {
		m.Dictionary.Mean = normal(rng, dim)
	}
	for i := range rows {
		m.Codes.IDs = append(m.Codes.IDs, fmt.Sprintf("word %d \u00a0é", i))
		for k := range atoms {
			if rng.IntN(4) == 0 {
				m.Codes.Index = append(m.Codes.Index, int32(k))
			}
		}
		m.Codes.Ptr = append(m.Codes.Ptr, int64(len(m.Codes.Index)))
	}
	m.Codes.Value = normal(rng, len(m.Codes.Index))
	return m
}

// changePaper changes the recipe of a model.
func changePaper(m *Model, change func(p *Paper)) {
	p := m.Info.Training.Recipe.(Paper)
	change(&p)
	m.Info.Training.Recipe = p
}

func save(t *testing.T, dir string, force bool, m *Model) {
	t.Helper()
	testonly.Must(t, modeldir.NewTarget(dir, force).Check())
	testonly.Must(t, m.Save(dir, force))
}

// saved saves a model and returns its directory.
func saved(t *testing.T, m *Model) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "model")
	save(t, dir, false, m)
	return dir
}

// expectModel checks that dir holds m, and that dir's parent holds nothing else.
func expectModel(t *testing.T, dir string, m *Model) {
	t.Helper()
	got, err := Open(dir)
	testonly.Must(t, err)
	if !reflect.DeepEqual(got, m) {
		t.Errorf("opened %+v, want %+v", got.Info, m.Info)
	}
	expectNames(t, filepath.Dir(dir), filepath.Base(dir))
}

func expectNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testonly.Must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// A model is saved and read without a change, all rows at once or a few at a time.
func TestRoundTrip(t *testing.T) {
	shard := testModel(20, 3, 11, false)
	shard.Info.Encoding = &Encoding{Input: shard.Info.Encoding.Input, Lambda: 0.5, Steps: 20, Nonzeros: 3, Shard: &Shard{Index: 1, Of: 2, Rows: 20, Losses: []float64{1.0 / 3}}}
	for name, m := range map[string]*Model{
		"no rows": testModel(0, 3, 11, false), "a row": testModel(1, 3, 11, false), "centred": testModel(20, 3, 11, true),
		"a shard": shard, "texts": textModel(), "themes": themeModel(),
	} {
		t.Run(name, func(t *testing.T) {
			whole, byRows := saved(t, m), filepath.Join(t.TempDir(), "model")
			testonly.Must(t, saveRows(t.Context(), byRows, m))
			files, err := os.ReadDir(whole)
			testonly.Must(t, err)
			for _, file := range files {
				want := testonly.ReadFile(t, filepath.Join(whole, file.Name()))
				if got, err := os.ReadFile(filepath.Join(byRows, file.Name())); err != nil || string(got) != string(want) {
					t.Errorf("%s differs from what Save writes, or %v", file.Name(), err)
				}
			}
			if m.Codes.Rows == 0 {
				return
			}
			expectModel(t, whole, m)
			expectModel(t, byRows, m)
			if got, err := readAll(whole); err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("rows: %v\n%+v, want\n%+v", err, got, m)
			}
		})
	}
}

// A dictionary alone is a model, too.
func TestDictionaryAlone(t *testing.T) {
	m := testModel(20, 3, 11, true)
	m.Codes, m.Info.Encoding = nil, nil
	dir := saved(t, m)
	expectModel(t, dir, m)
	expectNames(t, dir, modeldir.Dictionary, modeldir.Mean, modeldir.Info)
	_, err := readAll(dir)
	testonly.ErrorSays(t, "rows", err, "a dictionary and no codes")
}

func TestForceReplaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	testonly.Must(t, os.Mkdir(dir, 0o777)) // empty
	visit := func() {                      // by Finder, and on a file system without attributes
		for _, name := range []string{".DS_Store", "._" + modeldir.Info} {
			testonly.Must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
		}
	}
	visit()
	save(t, dir, true, themeModel())
	visit()
	// The scores of a replaced model are removed with it.
	testonly.Must(t, os.WriteFile(filepath.Join(dir, modeldir.Intrusion), []byte("{}"), 0o666))
	other := testModel(5, 2, 4, false) // without mean.npy and themes.npy
	save(t, dir, true, other)
	expectModel(t, dir, other)
	expectNames(t, dir, modeldir.Codes, modeldir.Dictionary, modeldir.Info, modeldir.Words)
}

func TestCheckSaveRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, content string) {
		t.Helper()
		testonly.Must(t, os.MkdirAll(filepath.Dir(path(name)), 0o777))
		testonly.Must(t, os.WriteFile(path(name), []byte(content), 0o666))
	}
	write("file", "x")
	write("other/model.json", `{"format": "layers-model"}`)
	write("unversioned/model.json", `{}`)
	write("notes/notes.txt", "x")
	for _, name := range []string{"model", "annotated", "resumable", "nested"} {
		save(t, path(name), false, testModel(2, 2, 3, false))
	}
	write("annotated/notes.txt", "x")
	write("resumable/state/mine.npy", "x")
	write("nested/mean.npy/notes.txt", "x")

	for _, tt := range []struct {
		name  string
		force bool
		want  string
	}{
		{"model", false, "already exists"},
		{"notes", false, "already exists"},
		{"notes", true, "neither empty nor a model"},
		{"other", true, "neither empty nor a model"},
		{"unversioned", true, "neither empty nor a model"},
		{"annotated", true, `"notes.txt", which is not a file of a model`},
		{"resumable", true, `"mine.npy", which is not a file of a model`},
		{"nested", true, `"mean.npy", which is not a file of a model`},
		{"file", false, "already exists"},
		{"file", true, "not a directory"},
		{"file/model", true, "not a directory"},
		{"missing/model", false, "no such file or directory"},
	} {
		err := modeldir.NewTarget(path(tt.name), tt.force).Check()
		if _, ok := errors.AsType[*atomicfile.OutputError](err); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, force %v: error %v, want an OutputError with %q", tt.name, tt.force, err, tt.want)
		}
	}
	expectNames(t, dir, "annotated", "file", "model", "nested", "notes", "other", "resumable", "unversioned")
	expectNames(t, path("annotated"), "codes.npz", "dictionary.npy", "model.json", "notes.txt", "words.txt")
}

func TestSaveRefuses(t *testing.T) {
	ofTexts := func(spoil func(m *Model)) func(m *Model) { return func(m *Model) { *m = *textModel(); spoil(m) } }
	for _, tt := range []struct {
		name  string
		spoil func(m *Model)
		want  string
	}{
		{"newline", func(m *Model) { m.Codes.IDs[1] = "a\nb" }, `words.txt: line 2, "a\nb": the word contains a tab, a line break`},
		{"too few words", func(m *Model) { m.Codes.IDs = m.Codes.IDs[1:] }, "words.txt: 1 rows"},
		{"no codes", func(m *Model) { m.Codes = nil }, "codes.npz: missing"},
		{"NaN in a code", func(m *Model) { m.Codes.Value[0] = float32(math.NaN()) }, "codes.npz: row 0"},
		{"infinite dictionary", func(m *Model) { m.Dictionary.Atoms[3] = float32(math.Inf(-1)) }, "dictionary.npy: value 3 is -Inf"},
		{"NaN in the mean", func(m *Model) { m.Dictionary.Mean[1] = float32(math.NaN()) }, "mean.npy: value 1 is NaN"},
		{"short mean", func(m *Model) { m.Dictionary.Mean = m.Dictionary.Mean[1:] }, "mean.npy: 1 values"},
		{"mean unasked for", func(m *Model) { changePaper(m, func(p *Paper) { p.Center = false }) }, "mean.npy"},
		{"too many atoms", func(m *Model) { changePaper(m, func(p *Paper) { p.Atoms++ }) }, "dictionary.npy: 6 values"},
		{"short dictionary", func(m *Model) { m.Dictionary.Atoms = m.Dictionary.Atoms[2:] }, "dictionary.npy: 4 values"},
		{"no dimensions", func(m *Model) { m.Info.Training.Input.Dim = 0 }, "model.json: a training of"},
		{"a negative λ of codes", func(m *Model) { m.Info.Encoding.Lambda = -1 }, "model.json: an encoding with a lambda of -1"},
		{"another length", func(m *Model) { m.Info.Encoding.Input.Dim = 1 }, "model.json: an encoding of"},
		{"shard 9 of 2", func(m *Model) { m.Info.Encoding.Shard = &Shard{Index: 9, Of: 2, Rows: 9} }, "model.json: shard 9 of 2 with 2 rows of an input of 9 rows"},
		{"a shard of less", func(m *Model) { m.Info.Encoding.Shard = &Shard{Index: 1, Of: 2, Rows: 1} }, "model.json: shard 1 of 2 with 2 rows of an input of 1 rows"},
		{"steps for ever", func(m *Model) { m.Info.Encoding.Steps = 1e12 }, "and 1000000000000 steps"},
		{"more unused than there are", func(m *Model) { m.Info.Encoding.UnusedAtoms = 4 }, "an encoding with 4 dead atoms among 3"},
		{"an infinite variance", func(m *Model) { m.Info.Encoding.Variance = math.Inf(1) }, "variance is +Inf"},
		{"learned from more than there are", func(m *Model) {
			m.Info.Training.Recipe = Best{Common: Common{Method: Signed, Atoms: 3, Epochs: 1, DictionarySteps: 1}, TrainRows: 1e9}
		}, "train_rows is 1000000000, want at most the 2 rows of the training"},
		{"codes without a description", func(m *Model) { m.Info.Encoding = nil }, "model.json: no description of the codes"},
		{"texts that are not said", ofTexts(func(m *Model) { m.Info.Encoding.SetKind(nil) }), "disagree on whether rows are texts"},
		{"no texts", ofTexts(func(m *Model) { m.Codes.Texts = nil }), "disagree on whether rows are texts"},
		{"fewer texts", ofTexts(func(m *Model) { m.Codes.Texts.Text = m.Codes.Texts.Text[:3] }), "texts.jsonl: texts and rows differ in number (got 3 and 4)"},
		{"another column", ofTexts(func(m *Model) { m.Codes.Texts.Columns[0].Name = "other" }), `texts.jsonl: the columns are ["other"`},
		{"two columns of a name", ofTexts(func(m *Model) { m.Codes.Texts.Columns[0].Name = "text"; m.Info.Encoding.Columns[0] = "text" }), `two columns are named "text"`},
		{"an id with a line's end", ofTexts(func(m *Model) { m.Codes.IDs[2] = "a\nb" }), "texts.jsonl: line 3, "},
		{"fewer values of a column", ofTexts(func(m *Model) { m.Codes.Texts.Columns[1].Values = nil }), "wrong number of values (got 0, want 4)"},
		{"NaN in a metric", func(m *Model) { m.Info.Training.Epochs[0].Error = math.NaN() }, "model.json"},
	} {
		old, m := testModel(3, 2, 3, false), testModel(2, 2, 3, true)
		dir := saved(t, old)
		tt.spoil(m)
		testonly.ErrorSays(t, tt.name, m.Save(dir, true), tt.want)
		expectModel(t, dir, old)
		var b bytes.Buffer
		if err := m.WriteSafetensors(&b); err == nil || b.Len() > 0 {
			t.Errorf("%s: WriteSafetensors writes %d bytes, error %v", tt.name, b.Len(), err)
		}
	}
}

// Known returns the number of training words if the codes are of all words of the same file.
func TestKnown(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(i *Info)
		want   int
	}{
		{"all words of the file", func(*Info) {}, 40},
		{"no order", func(i *Info) { i.Training.Recipe = Best{TrainRows: 40, Order: None} }, 0},
		{"another file", func(i *Info) { i.Encoding.Input.SHA256 = "y" }, 0},
		{"no file", func(i *Info) { i.Training.Input.SHA256, i.Encoding.Input.SHA256 = "", "" }, 0},
		{"a shard", func(i *Info) { i.Encoding.Shard = &Shard{Index: 1, Of: 2, Rows: 60} }, 0},
		{"all taught", func(i *Info) { i.Encoding.Input.Rows = 40 }, 0},
		{"fewer words than taught", func(i *Info) { i.Encoding.Input.Rows = 39 }, 0},
		{"no codes", func(i *Info) { i.Encoding = nil }, 0},
		{"the recipe paper", func(i *Info) { i.Training.Recipe = Paper{} }, 0},
	} {
		i := Info{
			Training: Training{Input: Input{SHA256: "x"}, Recipe: Best{TrainRows: 40, Order: Frequency}},
			Encoding: &Encoding{Input: Input{SHA256: "x", Rows: 60}},
		}
		tt.change(&i)
		if got := i.Known(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// model.json lists the input files if they are few. Otherwise it has only their number.
func TestNewInput(t *testing.T) {
	for files, listed := range map[int]int{0: 0, 2: 2, 100: 100, 101: 0} {
		if in := NewInput(&vectors.Source{Files: make([]vectors.File, files)}); in.FileCount != files || len(in.Files) != listed {
			t.Errorf("of %d files: number %d, %d listed, want %d", files, in.FileCount, len(in.Files), listed)
		}
	}
}

// An identity detects that the model has been replaced, even by a model with the same inode number, or in place.
func TestIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if _, err := modeldir.Identify(dir); err == nil {
		t.Error("an identity of nothing")
	}
	if err := (modeldir.Identity{}).Check(); err == nil {
		t.Error("nothing is a model")
	}
	save(t, dir, false, testModel(3, 2, 3, false))
	identity, err := modeldir.Identify(dir)
	if err != nil || identity.Check() != nil {
		t.Fatal(err, identity.Check())
	}
	path := filepath.Join(dir, modeldir.Info)
	info, err := os.Stat(path)
	testonly.Must(t, err)
	testonly.Must(t, os.Chtimes(path, info.ModTime(), info.ModTime().Add(time.Second)))
	if err := identity.Check(); err == nil {
		t.Error("another time is not noticed")
	}
	identity, _ = modeldir.Identify(dir)
	save(t, dir, true, testModel(3, 2, 3, false))
	if err := os.Chtimes(path, info.ModTime(), info.ModTime().Add(time.Second)); err != nil || identity.Check() == nil {
		t.Errorf("another file of the same time is not noticed; %v", err)
	}
	err = identity.WriteBeside(t.Context(), func() error {
		t.Error("something is written about a model that is gone")
		return nil
	})
	if err == nil {
		t.Error("a model that is gone can be held")
	}
	identity, _ = modeldir.Identify(dir)
	failed := errors.New("failed")
	if err := identity.WriteBeside(t.Context(), func() error { return failed }); err != failed {
		t.Errorf("error %v", err)
	}
	os.RemoveAll(dir)
	testonly.ErrorSays(t, "another directory", identity.Check(), "has been replaced since it was opened")
}

// wantOpenError checks that Open fails in one line that names the file.
func wantOpenError(t *testing.T, what, dir, file, want string) {
	t.Helper()
	_, err := Open(dir)
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	text := err.Error()
	if !strings.HasPrefix(text, dir+": ") || !strings.Contains(text, file) || !strings.Contains(text, want) || strings.Contains(text, "\n") {
		t.Errorf("%s: error %q, want one line about %s with %q", what, text, file, want)
	}
}

func TestOpenBad(t *testing.T) {
	mix := func(name string, from *Model) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			testonly.Must(t, os.Rename(filepath.Join(saved(t, from), name), filepath.Join(dir, name)))
		}
	}
	replace := func(name, old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			data, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(data), old) {
				t.Fatalf("no %q in %s: %v", old, name, err)
			}
			testonly.Must(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(data), old, new)), 0o666))
		}
	}
	const bits = "\x00\x00\x80\x3f" // 1.0
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		file  string
		want  string
	}{
		{"version", replace(modeldir.Info, `"format": 2`, `"format": 1`), modeldir.Info, "format version is 1, want 2: train the model again with this version"},
		{"no version", replace(modeldir.Info, `"format": 2`, `"former": 2`), modeldir.Info, "format version is 0"},
		{"type", replace(modeldir.Info, `"rows": 4`, `"rows": "4"`), modeldir.Info, "rows"},
		{"negative words", replace(modeldir.Info, `"rows": 4`, `"rows": -4`), modeldir.Info, "on -4 rows of"},
		{"negative files", replace(modeldir.Info, `"rows": 4`, `"rows": 4, "file_count": -1`), modeldir.Info, "input of -1 files"},
		{"more files", replace(modeldir.Info, `"rows": 4`, `"rows": 4, "file_count": 1, "files": [{}, {}]`), modeldir.Info, "input of 1 files with 2"},
		{"words", replace(modeldir.Info, `"rows": 4`, `"rows": 5`), modeldir.Codes, "4×3 matrix, model.json says 5 rows and 3 atoms"},
		{"dimensions", replace(modeldir.Info, `"dim": 2`, `"dim": 3`), modeldir.Dictionary, "[3 3]"},
		{"atoms", replace(modeldir.Info, `"atoms": 3`, `"atoms": 4`), modeldir.Dictionary, "[4 2]"},
		{"not centred", replace(modeldir.Info, `"center": true`, `"center": false`), modeldir.Mean, "not centred"},
		{"codes of more atoms", mix(modeldir.Codes, testModel(4, 2, 5, true)), modeldir.Codes, "4×5"},
		{"longer mean", mix(modeldir.Mean, testModel(4, 3, 3, true)), modeldir.Mean, "[3]"},
		{"NaN in the dictionary", replace(modeldir.Dictionary, bits, "\x00\x00\xc0\x7f"), modeldir.Dictionary, "value 0 is NaN"},
		{"changed code", replace(modeldir.Codes, bits, "\x00\x00\x80\x40"), modeldir.Codes, "checksum"},
		{"method", replace(modeldir.Info, `"recipe": "paper"`, `"recipe": "Z\u001b[2J"`), modeldir.Info, `recipe is "Z\x1b[2J", want best or paper`},
		{"method", replace(modeldir.Info, `"method": "A"`, `"method": "Z\u001b[2J"`), modeldir.Info, `method is "Z\x1b[2J", want A or B`},
		{"loss", replace(modeldir.Info, `"loss": "squared"`, `"loss": "\u009b2J"`), modeldir.Info, `loss is "\u009b2J", want squared or huber`},
		{"device", replace(modeldir.Info, `"device": ""`, `"device": "cpu\u001b[2J"`), modeldir.Info, `device is "cpu\x1b[2J"`},
		{"a long device", replace(modeldir.Info, `"device": ""`, `"device": "`+strings.Repeat("x", 1000)+`"`), modeldir.Info, "device is"},
		{"sparsity", replace(modeldir.Info, `"sparsity": 0`, `"sparsity": -1e300`), modeldir.Info, "sparsity after epoch 1 is -1e+300"},
		{"a long number", replace(modeldir.Info, `"epoch": 1`, `"epoch": 1`+strings.Repeat("0", 1000)), modeldir.Info, "\"epoch\" has the wrong type, number 1000"},
		{"a word that is not UTF-8", replace(modeldir.Words, "word 1", "word \xff"), modeldir.Words, "line 2, "},
		{"an empty word", replace(modeldir.Words, "word 1 \u00a0é", ""), modeldir.Words, `line 2, "": the word is empty`},
		{"a carriage return in a word", replace(modeldir.Words, "word 1", "word\r1"), modeldir.Words, "line 2, "},
		{"two words a line", replace(modeldir.Words, "\nword 1", " word 1"), modeldir.Words, "fewer rows than the 4 that model.json says"},
	} {
		m := testModel(4, 2, 3, true)
		m.Dictionary.Atoms[0], m.Codes.Value[0] = 1, 1
		dir := saved(t, m)
		tt.spoil(t, dir)
		wantOpenError(t, tt.name, dir, tt.file, tt.want)
	}
	wantOpenError(t, "no directory", filepath.Join(t.TempDir(), "model"), "model", "no such file or directory")
}

// While a model is replaced repeatedly, Open returns the old model or the new one, never a mixture.
func TestOpenWhileReplaced(t *testing.T) {
	a, b := testModel(200, 20, 30, true), testModel(200, 20, 30, true)
	for i := range b.Dictionary.Atoms {
		b.Dictionary.Atoms[i]++
	}
	for i := range b.Codes.Value {
		b.Codes.Value[i] = 2
	}
	b.Codes.IDs[7] = "other"
	dir := saved(t, a)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() {
		var err error
		for i := 0; err == nil && ctx.Err() == nil; i++ {
			err = []*Model{b, a}[i%2].Save(dir, true)
		}
		stopped <- err
	}()
	for range 300 {
		m, err := Open(dir)
		if err != nil {
			t.Error(err)
			break
		}
		if !reflect.DeepEqual(m, a) && !reflect.DeepEqual(m, b) {
			t.Error("opened what was never saved")
			break
		}
		d, err := OpenDictionary(dir)
		if err != nil || !reflect.DeepEqual(d.Dictionary, a.Dictionary) && !reflect.DeepEqual(d.Dictionary, b.Dictionary) {
			t.Errorf("opened another dictionary, %v", err)
			break
		}
		for codes, err := range d.Rows(dir, 200) {
			if err != nil && !strings.Contains(err.Error(), "has been replaced") || err == nil && !reflect.DeepEqual(codes, a.Codes) && !reflect.DeepEqual(codes, b.Codes) {
				t.Errorf("opened rows that were never saved, %v", err)
			}
		}
	}
	stop()
	testonly.Must(t, <-stopped)
}

func TestLabelsPath(t *testing.T) {
	m := testModel(20, 3, 11, false)
	dir := saved(t, m)
	path, err := modeldir.LabelsPath(dir)
	if err != nil || path != filepath.Join(dir, "labels.json") {
		t.Errorf("%s, %v", path, err)
	}
	testonly.Must(t, os.WriteFile(path, []byte("[]"), 0o666))
	expectModel(t, dir, m)
	// Labels are not replaced, even with force.
	testonly.ErrorSays(t, "replaced", m.Save(dir, true), `because it has labels: move its labels.json away`)
	for name, want := range map[string]string{filepath.Join(dir, "model.json"): "which this isn't", filepath.Join(dir, "nothing"): "which this isn't"} {
		_, err := modeldir.LabelsPath(name)
		testonly.ErrorSays(t, name, err, want)
	}
	// Labels are not left out because the file system fails.
	loop := t.TempDir()
	if err := os.Symlink("model.json", filepath.Join(loop, "model.json")); err == nil {
		_, err := modeldir.LabelsPath(loop)
		if _, ok := errors.AsType[*fs.PathError](err); !ok {
			t.Errorf("model.json can't be looked up: %v", err)
		}
	}
	testonly.Must(t, os.Mkdir(filepath.Join(dir, "state"), 0o777))
	_, err = modeldir.LabelsPath(dir)
	testonly.ErrorSays(t, "a checkpoint's", err, "is a checkpoint")
}
