// Package experiment runs trainings and evaluations that belong together and keeps
// what is finished in a directory, so that nothing is done twice and what was
// interrupted can be gone on with. All of one directory is of the same dense
// vectors, with the same settings:
//
//	experiment.json         what is the same for all: Setting
//	A-k500-lambda0.1/       a model, as train writes it, of the recipe paper
//	A-k500-lambda0.1.json   its Record: recipe, metrics, scores
//	A-best-k500-n15.json    that of a model of the recipe best
//	X.json                  a Record of vectors that were not trained
//
// All are of one recipe. Every file has its name only when it is whole. A point is the vectors of a
// model: codes for method A, binary ones for method B, as in the paper.
package experiment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
	"overcomplete/internal/lab/eval"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Setting is what all points of an experiment share.
type Setting struct {
	Input     model.Input  `json:"input"`
	Reference model.Input  `json:"reference,omitzero"` // the vectors that word intrusion is judged by, of a frontier
	Training  Recipe       `json:"training,omitzero"`  // but for what differs: see shared; none of a frontier
	Protocol  eval.Options `json:"protocol"`
	// Data has the SHA-256 of each folder of evaluation data that was there.
	Data map[string]string `json:"data"`
}

// Experiment is a directory and what it takes to add to it.
type Experiment struct {
	Dir     string
	Setting Setting
	X       *vectors.Dense // that all points are trained on
	Source  *vectors.Source
	Device  train.Device // that trains them
	Log     io.Writer    // a line for whatever takes time
	// Show returns the options that show a training, and what ends that; nil shows none.
	Show func(r model.Recipe) (o train.Options, done func())
	// ShowTasks returns what to call with each task that vectors have been measured by,
	// from any goroutine, and what ends that; nil shows none.
	ShowTasks func(vectors string, tasks []eval.Task) (finished func(task string), done func())

	plan plan
}

// Record is what is known of a point, or of vectors that were not trained.
type Record struct {
	Control  intrusion.Control `json:"control,omitempty"` // see [Point]
	Training Recipe            `json:"training,omitzero"`
	Device   string            `json:"device,omitempty"`
	Metrics  model.Epoch       `json:"metrics,omitzero"` // of the last epoch, and of the codes that package encode made after it
	// Wanted is the sparsity that was looked for when it was trained, 0 if none was.
	Wanted float64                `json:"wanted,omitempty"`
	Scores map[string]eval.Result `json:"scores"` // by task
	// Intrusion is what a frontier has of word intrusion, without the scores of each dimension.
	Intrusion *interpret.Coherence `json:"intrusion,omitempty"`
	// Stability is the mean cosine of a frontier's atoms with those of seed 1, matched one to
	// one, nil of these.
	Stability *float64 `json:"stability,omitempty"`
}

// Result returns the score of a task, NaN if it was not measured.
func (r *Record) Result(task string) eval.Result {
	if result, measured := r.Scores[task]; measured {
		return result
	}
	return eval.Result{Score: math.NaN(), Stderr: math.NaN()}
}

// Row returns r as a row of a table of tasks, all of which were measured.
func (r *Record) Row(name string, tasks []string) eval.Row {
	row := eval.Row{Name: name}
	for _, task := range tasks {
		row.Results = append(row.Results, r.Result(task))
	}
	return row
}

// shared returns what all points of an experiment have of a recipe, and zero for the rest.
func shared(r model.Recipe) model.Recipe {
	c := r.Base()
	c.Method, c.Atoms, c.Epochs, c.Nonzeros = "", 0, 0, 0
	r = r.With(c)
	if h, is := r.(model.Paper); is {
		h.Lambda = 0
		return h
	}
	return r
}

// Name returns the name that a point has in its directory.
func Name(r model.Recipe) string {
	c := r.Base()
	if h, is := r.(model.Paper); is {
		return fmt.Sprintf("%s-k%d-lambda%s", c.Method, c.Atoms, number(h.Lambda))
	}
	return fmt.Sprintf("%s-best-k%d-n%d", c.Method, c.Atoms, c.Nonzeros)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

const settingFile = "experiment.json"

// mostJSON is more bytes than any setting or record has.
const mostJSON = 1 << 24

// Open creates the directory e.Dir, or goes on with it if it is there and e's
// setting is its own. It refuses anything else with an [*atomicfile.OutputError].
// r is the recipe of a point, of which only what all share is kept, or nil; data is the
// directory of evaluation data, or "".
func Open(e *Experiment, r model.Recipe, data string) error {
	if r != nil {
		e.Setting.Training = Recipe{shared(r)}
	}
	var err error
	if e.Setting.Data, err = digests(data); err != nil {
		return err
	}
	was, err := Claim(e.Dir, settingFile, e.Setting)
	if err != nil || was == nil {
		return err
	}
	var saved Setting
	if err := json.Unmarshal(was, &saved); err != nil {
		return refuse(e.Dir, "%s: %w", settingFile, err)
	}
	if err := e.Setting.same(saved); err != nil {
		return refuse(e.Dir, "is an experiment of other settings: %w; choose another directory", err)
	}
	all := maps.Clone(e.Setting.Data)
	maps.Copy(all, saved.Data)
	if e.Setting.Data = all; len(all) == len(saved.Data) {
		return nil
	}
	return writeJSON(filepath.Join(e.Dir, settingFile), e.Setting)
}

// Claim makes a directory that holds one file with v as JSON, or returns what the
// file holds in a directory that has one. It refuses a directory of anything else.
func Claim(dir, file string, v any) (was []byte, err error) {
	was, err = input.ReadRegular(filepath.Join(dir, file), mostJSON)
	if e, ok := errors.AsType[*fs.PathError](err); ok && !errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(dir, "%w", e.Err)
	}
	if err == nil {
		return was, nil
	}
	onlyEmpty := func(path string) error {
		entries, err := os.ReadDir(path)
		if err == nil && len(entries) > 0 {
			err = fmt.Errorf("is not empty and has no %s, so that it is none of this command's directories", file)
		}
		return err
	}
	if model.Contains(dir) {
		return nil, refuse(dir, "%w", model.ErrContained)
	}
	if err := atomicfile.CheckDir(dir, onlyEmpty); err != nil {
		return nil, err
	}
	return nil, atomicfile.WriteDir(dir, false, onlyEmpty, func(dir string) error {
		return atomicfile.WriteIn(dir, file, func(w io.Writer) error { return writeIndented(w, v) })
	})
}

// center reports whether a recipe has this choice, and took it.
func center(r model.Recipe) bool {
	h, _ := r.(model.Paper)
	return h.Center
}

// describe says all of a recipe.
func describe(r model.Recipe) string {
	text, _ := json.Marshal(r) // of numbers and names
	return string(text)
}

// same returns an error unless points of both settings can stand side by side.
func (s Setting) same(saved Setting) error {
	was, is := saved.Training.Recipe, s.Training.Recipe
	for _, v := range []struct {
		name    string
		was, is any
	}{
		{"the vectors' SHA-256", saved.Input.SHA256, s.Input.SHA256},
		{"the word list's SHA-256", saved.Input.WordsSHA256, s.Input.WordsSHA256},
		{"the number of words", saved.Input.Words, s.Input.Words},
		{"the vectors' length", saved.Input.Dim, s.Input.Dim},
		{"the reference's SHA-256", saved.Reference.SHA256, s.Reference.SHA256},
		{"the number of the reference's words", saved.Reference.Words, s.Reference.Words},
		{"--recipe", fmt.Sprint(was), fmt.Sprint(is)},
		{"--center", center(was), center(is)},
		{"training", describe(was), describe(is)},
		{"the protocol of evaluation", saved.Protocol, s.Protocol},
	} {
		if v.was != v.is {
			return fmt.Errorf("%s was %+v and is %+v", v.name, v.was, v.is)
		}
	}
	for _, folder := range folders {
		was, is := saved.Data[folder], s.Data[folder]
		if was != "" && is != "" && was != is {
			return fmt.Errorf("the evaluation data in %s are not what they were", folder)
		}
	}
	return nil
}

// folders are those of evaluation data that [eval.ReadTask] reads.
var folders = []string{"wordsim", "sst2", "trec", "20news-bydate", "np-bracketing"}

// digests returns the SHA-256 over the names and contents of the files in each
// folder that is there.
func digests(data string) (map[string]string, error) {
	sums := map[string]string{}
	for _, folder := range folders {
		dir := filepath.Join(data, folder)
		if _, err := os.Stat(dir); data == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		all := sha256.New()
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			file, err := input.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			content := sha256.New()
			_, err = io.Copy(content, file)
			name, _ := filepath.Rel(dir, path)
			fmt.Fprintf(all, "%q %x\n", filepath.ToSlash(name), content.Sum(nil))
			return err
		})
		if err != nil {
			return nil, &vectors.InputError{File: dir, Err: err}
		}
		sums[folder] = hex.EncodeToString(all.Sum(nil))
	}
	return sums, nil
}

// Point trains with h, with the defaults of [train.Settled], and measures by tasks what of both
// is not done yet.
func (e *Experiment) Point(ctx context.Context, h model.Recipe, tasks []eval.Task) (*Record, error) {
	return e.trained(ctx, h, tasks, 0)
}

func (e *Experiment) trained(ctx context.Context, h model.Recipe, tasks []eval.Task, wanted float64) (*Record, error) {
	h = train.Settled(h, e.X)
	return e.point(ctx, Name(h), Point{Training: h}, tasks, func(r *Record, whole bool) (*eval.Representation, error) {
		m, err := e.model(ctx, h) // also where nothing is left to measure: the record vouches for it
		if err != nil || whole {
			return nil, err
		}
		if r.Device == "" { // it is new
			r.Wanted = wanted
		}
		return r.made(Name(h), m), nil
	})
}

// Untrained measures vectors that take no training; open is called if something is
// to be measured.
func (e *Experiment) Untrained(ctx context.Context, name string, tasks []eval.Task, open func() *eval.Representation) (*Record, error) {
	return e.point(ctx, name, Point{}, tasks, func(_ *Record, whole bool) (*eval.Representation, error) {
		if whole {
			return nil, nil
		}
		return open(), nil
	})
}

// point measures by tasks what is not measured yet of a point, and keeps its record. Make makes
// its vectors, and adds to the record what they are; where that has all scores, it may return none.
func (e *Experiment) point(ctx context.Context, name string, p Point, tasks []eval.Task, make func(r *Record, whole bool) (*eval.Representation, error)) (*Record, error) {
	r, err := e.record(name)
	known := r != nil
	switch {
	case err != nil:
		return nil, err
	case !known:
		r = &Record{Control: p.Control, Training: Recipe{p.Training}}
	case r.point() != p:
		return nil, refuse(e.path(name+".json"), "is of %s, want %s; remove it or choose another directory", describe(r.Training.Recipe), describe(p.Training))
	}
	defer e.plan.next(e.length(p.Training))()
	todo := r.without(tasks)
	vectors, err := make(r, known && len(todo) == 0)
	if err != nil || vectors == nil {
		return r, err
	}
	return r, e.measure(ctx, r, todo, vectors)
}

// made adds what a model is to the record of its point, and returns its vectors.
func (r *Record) made(name string, m *model.Model) *eval.Representation {
	r.Device, r.Metrics = m.Info.Training.Device, metrics(m.Info)
	if r.Training.Base().Method == model.Nonnegative {
		return eval.NewSparse(name, m.Codes.Binary())
	}
	return eval.NewSparse(name, m.Codes)
}

// model opens the model of a point, or trains it.
func (e *Experiment) model(ctx context.Context, h model.Recipe) (*model.Model, error) {
	dir := e.ModelDir(h)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(e.Log, "training %s%s\n", Name(h), e.plan.left())
		m, err := e.fit(ctx, h)
		if err != nil {
			return nil, err
		}
		return m, m.Save(dir, false)
	}
	m, err := model.Open(dir)
	if err == nil && len(m.Info.Training.Epochs) == 0 {
		err = errors.New("has no epochs")
	}
	if err == nil && m.Codes == nil {
		err = errors.New("has no codes")
	}
	if err != nil {
		return nil, refuse(dir, "%w; remove it to have it trained again", err)
	}
	if m.Info.Training.Recipe != h || m.Info.Training.Input.SHA256 != e.Setting.Input.SHA256 {
		return nil, refuse(dir, "is of a training with %s, want %s; remove it or choose another directory", describe(m.Info.Training.Recipe), describe(h))
	}
	return m, nil
}

// fit trains the model of a point.
func (e *Experiment) fit(ctx context.Context, h model.Recipe) (*model.Model, error) {
	o, done := train.Options{}, func() {}
	if e.Show != nil {
		o, done = e.Show(h)
	}
	o.Source = e.Source
	m, err := train.Fit(ctx, e.X, h, e.Device, o)
	done()
	if learned, ok := errors.AsType[*train.LearnedError](err); ok && errors.Is(err, train.ErrNothingActive) { // a point like others
		return learned.Model, nil
	}
	return m, err
}

// ModelDir returns the directory of a point's model.
func (e *Experiment) ModelDir(h model.Recipe) string { return e.path(Name(h)) }

// measure adds scores to a record and saves it.
func (e *Experiment) measure(ctx context.Context, r *Record, tasks []eval.Task, vectors *eval.Representation) error {
	finished, done := (func(string))(nil), func() {}
	if len(tasks) > 0 {
		fmt.Fprintf(e.Log, "evaluating %s%s\n", vectors.Name, e.plan.left())
		if e.ShowTasks != nil {
			finished, done = e.ShowTasks(vectors.Name, tasks)
		}
	}
	results, err := eval.Run(ctx, vectors, tasks, e.Setting.Protocol, finished)
	done()
	if err != nil {
		return err
	}
	for i, result := range results {
		r.Scores[tasks[i].Name()] = result
	}
	return writeJSON(e.path(vectors.Name+".json"), r)
}

// without returns the tasks that r has no score of.
func (r *Record) without(tasks []eval.Task) (todo []eval.Task) {
	if r.Scores == nil {
		r.Scores = map[string]eval.Result{}
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t eval.Task) bool {
		_, done := r.Scores[t.Name()]
		return done
	})
}

// record reads a record, nil if there is none.
func (e *Experiment) record(name string) (*Record, error) {
	path := e.path(name + ".json")
	data, err := input.ReadRegular(path, mostJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := new(Record)
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err == nil && r.Training.Recipe != nil { // else it is of vectors that were not trained
		err = r.Training.Validate()
	}
	if s := r.Metrics.Sparsity; err == nil && !(s >= 0 && s <= 1) {
		err = fmt.Errorf("sparsity is %v, want 0 to 1", s)
	}
	if s := r.Stability; err == nil && s != nil && !(*s >= -1 && *s <= 1.001) {
		err = fmt.Errorf("stability is %v, want a cosine", *s)
	}
	if err == nil && r.Intrusion != nil {
		err = checkIntrusion(r.Intrusion)
	}
	if err != nil {
		return nil, refuse(path, "%w; remove it to have it measured again", err)
	}
	return r, nil
}

// A Recipe is one that can be read from JSON, or none.
type Recipe struct{ model.Recipe }

// MarshalJSON implements [json.Marshaler].
func (r Recipe) MarshalJSON() ([]byte, error) { return json.Marshal(r.Recipe) }

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Recipe) UnmarshalJSON(data []byte) (err error) {
	r.Recipe, err = model.ParseRecipe(data)
	return err
}

// Paper returns the recipe of a point that was trained by the recipe paper.
func (r *Record) Paper() model.Paper {
	h, _ := r.Training.Recipe.(model.Paper)
	return h
}

// points returns the records of all points that differ from h by λ only, by λ.
// λ = 0, which has no logarithm, is left out.
func (e *Experiment) points(h model.Paper) (all []*Record, err error) {
	h.Lambda = 0
	entries, err := os.ReadDir(e.Dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || entry.IsDir() || entry.Name() == settingFile {
			continue
		}
		r, err := e.record(name)
		if err != nil {
			return nil, err
		}
		t := r.Paper()
		t.Lambda = 0
		if t == h && r.Paper().Lambda > 0 {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *Record) int { return cmp.Compare(a.Paper().Lambda, b.Paper().Lambda) })
	return all, nil
}

func (e *Experiment) path(name string) string { return filepath.Join(e.Dir, name) }

func refuse(path, format string, args ...any) error {
	return &atomicfile.OutputError{Path: path, Err: fmt.Errorf(format, args...)}
}

func writeJSON(path string, v any) error {
	return WriteFile(path, func(w io.Writer) error { return writeIndented(w, v) })
}

func writeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// WriteFile replaces a file with what write writes.
func WriteFile(path string, write func(w io.Writer) error) error {
	return atomicfile.WriteFile(context.Background(), path, true, write)
}
