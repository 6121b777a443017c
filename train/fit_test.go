package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"gorgonia.org/gorgonia"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

const sampleFile = "../testdata/godoc.50d.txt.gz"

// short scales vectors so that the authors' rule stops as early as it may.
const short = 0.02

// sample returns real vectors, scaled.
func sample(t *testing.T, scale float32) *vectors.Dense {
	t.Helper()
	x, _, err := vectors.Read(t.Context(), sampleFile, vectors.ReadOptions{MaxWords: 200})
	if err != nil {
		t.Fatal(err)
	}
	for i := range x.Data {
		x.Data[i] *= scale
	}
	return x
}

func samplePaper() model.Paper {
	h := train.Paper()
	h.Atoms, h.Epochs, h.Lambda, h.DictionarySteps = 30, 21, 0.001, 8
	return h
}

// change makes one hyperparameter another one.
type change[R model.Recipe] struct {
	change func(*R)
	also   string // what cannot but differ with it
}

// changesOfPaper are those of each hyperparameter.
var changesOfPaper = map[string]change[model.Paper]{
	"Init":            {func(h *model.Paper) { h.Init = model.FromWords }, ""},
	"Method":          {func(h *model.Paper) { h.Method = model.Nonnegative }, ""},
	"Algorithm":       {func(h *model.Paper) { h.Algorithm, h.DictionarySteps = model.Authors, 0 }, "DictionarySteps"},
	"Atoms":           {func(h *model.Paper) { h.Atoms = 31 }, ""},
	"Lambda":          {func(h *model.Paper) { h.Lambda = 0.002 }, ""},
	"Tau":             {func(h *model.Paper) { h.Tau = 1e-2 }, ""},
	"Rate":            {func(h *model.Paper) { h.Rate = 0.04 }, ""},
	"Loss":            {func(h *model.Paper) { h.Loss, h.HuberDelta = model.Huber, 0.01 }, "HuberDelta"},
	"HuberDelta":      {func(h *model.Paper) { h.Loss, h.HuberDelta = model.Huber, 0.02 }, "Loss"},
	"State":           {func(h *model.Paper) { h.State = model.Float16 }, ""},
	"Epochs":          {func(h *model.Paper) { h.Epochs = 19 }, ""},
	"Stop":            {func(h *model.Paper) { h.Stop = model.AuthorsRule }, ""},
	"DictionarySteps": {func(h *model.Paper) { h.DictionarySteps = 9 }, ""},
	"Center":          {func(h *model.Paper) { h.Center = true }, ""},
	"Seed":            {func(h *model.Paper) { h.Seed = 2 }, ""},
}

var changesOfBest = map[string]change[model.Best]{
	"Nonzeros":        {func(h *model.Best) { h.Nonzeros = 8 }, ""},
	"Anchor":          {func(h *model.Best) { h.Anchor = 0.9 }, ""},
	"TrainWords":      {func(h *model.Best) { h.TrainWords = 690 }, ""},
	"Order":           {func(h *model.Best) { h.Order = model.None }, ""},
	"Method":          {func(h *model.Best) { h.Method = model.Nonnegative }, ""},
	"Atoms":           {func(h *model.Best) { h.Atoms = 31 }, ""},
	"Lambda":          {func(h *model.Best) { h.Lambda = 0.05 }, ""},
	"Epochs":          {func(h *model.Best) { h.Epochs = 1 }, ""},
	"DictionarySteps": {func(h *model.Best) { h.DictionarySteps = 1 }, ""},
	"Seed":            {func(h *model.Best) { h.Seed = 2 }, ""},
}

// differing are the names of the hyperparameters that differ, of recipes of one type.
func differing(a, b model.Recipe) (names []string) {
	for _, pair := range [][2]reflect.Value{{reflect.ValueOf(a.Base()), reflect.ValueOf(b.Base())}, {reflect.ValueOf(a), reflect.ValueOf(b)}} {
		x, y := pair[0], pair[1]
		for i := range x.NumField() {
			if f := x.Type().Field(i); !f.Anonymous && x.Field(i).Interface() != y.Field(i).Interface() {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

func fitSample(t *testing.T, h model.Recipe, o train.Options) *model.Model {
	t.Helper()
	m, err := train.Fit(t.Context(), sample(t, short), h, cpu.Device{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// everyCounts tests that every hyperparameter that a model names, but those that other tests
// are for, is what the training did: another one gives another model.
func everyCounts[R model.Recipe](t *testing.T, base R, changes map[string]change[R], others []string, fit func(R) *model.Model) {
	t.Helper()
	first := fit(base)
	for _, of := range []reflect.Type{reflect.TypeFor[model.Common](), reflect.TypeFor[R]()} {
		for i := range of.NumField() {
			if f := of.Field(i); changes[f.Name].change == nil && !f.Anonymous && !slices.Contains(others, f.Name) {
				t.Errorf("%s is tested by nothing", f.Name)
			}
		}
	}
	for name, c := range changes {
		h := base
		c.change(&h)
		want := []string{name}
		if c.also != "" {
			want = append(want, c.also)
		}
		if got := differing(h, base); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: %v differ", name, got)
		}
		m := fit(h)
		if m.Info.Training.Recipe != model.Recipe(h) {
			t.Errorf("%s: the model says %+v, trained with %+v", name, m.Info.Training.Recipe, h)
		}
		if slices.Equal(m.Codes.Value, first.Codes.Value) {
			t.Errorf("%s makes no difference", name)
		}
	}
	if again := fit(base); !slices.Equal(again.Codes.Value, first.Codes.Value) {
		t.Error("nor does it take one: the same training gives another model")
	}
}

func TestEveryHyperparameterCounts(t *testing.T) {
	everyCounts(t, samplePaper(), changesOfPaper, []string{"Nonzeros"}, func(h model.Paper) *model.Model { return fitSample(t, h, train.Options{}) })
}

// sampleOfBest has batches of fewestRows words, more than one.
func sampleOfBest(t *testing.T) *vectors.Dense {
	t.Helper()
	x, _, err := vectors.Read(t.Context(), sampleFile, vectors.ReadOptions{MaxWords: 700})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func best() model.Best {
	h := train.Best()
	h.Method = model.Signed
	h.Atoms, h.Epochs, h.Nonzeros, h.TrainWords, h.Order = 60, 2, 6, 700, model.Frequency
	return h
}

func fitBest(t *testing.T, x *vectors.Dense, h model.Best, o train.Options) *model.Model {
	t.Helper()
	m, err := train.Fit(t.Context(), x, h, cpu.Device{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryHyperparameterOfBestCounts(t *testing.T) {
	x := sampleOfBest(t)
	everyCounts(t, best(), changesOfBest, []string{"Like"}, func(h model.Best) *model.Model { return fitBest(t, x, h, train.Options{}) })
}

// Codes do not depend on the scale of the vectors. A power of two scales all that is
// computed, but for rounding near zero, without changing a digit; other factors change
// the last.
func TestBestIsScaleFree(t *testing.T) {
	x := sampleOfBest(t)
	base := fitBest(t, x, best(), train.Options{})
	for _, scale := range []float32{1.0 / 16, 256, 300} {
		scaled := &vectors.Dense{Words: x.Words, Dim: x.Dim, Data: slices.Clone(x.Data)}
		for i := range scaled.Data {
			scaled.Data[i] *= scale
		}
		m := fitBest(t, scaled, best(), train.Options{})
		if scale != 300 {
			if !slices.Equal(m.Codes.Index, base.Codes.Index) || !slices.Equal(m.Codes.Value, base.Codes.Value) {
				t.Errorf("scaled by %v, the vectors have other codes", scale)
			}
			continue
		}
		e, want := m.Info.Encoding, base.Info.Encoding
		// Where two atoms are nearly as far from others, or two values nearly as large, the
		// last digit decides.
		if got := e.Error / float64(scale) / float64(scale); math.Abs(got-want.Error) > 0.05*want.Error || e.Sparsity != want.Sparsity {
			t.Errorf("scaled by %v: error %v and sparsity %v, want %v and %v", scale, got, e.Sparsity, want.Error, want.Sparsity)
		}
	}
}

// As many goroutines choose what the dictionary starts from as were asked for, however many
// processors there are, and they choose the same.
func TestFitWorkers(t *testing.T) {
	x := sampleOfBest(t)
	created := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	var fewer uint64
	var want *model.Model
	for _, workers := range []int{1, 4, 16} {
		metrics.Read(created)
		before := created[0].Value.Uint64()
		m := fitBest(t, x, best(), train.Options{Workers: workers})
		metrics.Read(created)
		n := created[0].Value.Uint64() - before
		if n < 2*fewer { // the device's own are few
			t.Errorf("%d workers make %d goroutines, fewer make %d", workers, n, fewer)
		}
		if want == nil {
			want = m
		}
		if !slices.Equal(m.Codes.Value, want.Codes.Value) {
			t.Errorf("with %d workers, the training comes to other bits", workers)
		}
		fewer = n
	}
}

// A checkpoint of a learner goes on to the same bits, also one from after the last pass,
// when codes are still to be made, and only with what it was begun with.
func TestResumeBest(t *testing.T) {
	x, h := sampleOfBest(t), best()
	h.Epochs = 3
	whole := fitBest(t, x, h, train.Options{})
	for _, after := range []int{1, 3} {
		dir := filepath.Join(t.TempDir(), "model")
		ctx, cancel := context.WithCancel(t.Context())
		c := &train.Checkpoint{Dir: dir, Every: time.Hour}
		_, err := train.Fit(ctx, x, h, cpu.Device{Workers: 3}, train.Options{Checkpoint: c, Epoch: func(e model.Epoch) {
			if e.Epoch == after {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || c.Epoch != after {
			t.Fatalf("error %v and a checkpoint after epoch %d, want one after %d", err, c.Epoch, after)
		}
		c = &train.Checkpoint{Dir: dir, Resume: true}
		other := h
		other.Nonzeros = 8
		if _, err := train.Fit(t.Context(), x, other, cpu.Device{}, train.Options{Checkpoint: c}); !errors.Is(err, train.ErrCheckpoint) {
			t.Errorf("with other nonzeros: error %v", err)
		}
		m := fitBest(t, x, h, train.Options{Checkpoint: c})
		for _, m := range []*model.Model{m, whole} {
			for i := range m.Info.Training.Epochs {
				m.Info.Training.Epochs[i].Seconds = 0
			}
		}
		if !reflect.DeepEqual(m, whole) {
			t.Errorf("resumed after epoch %d, the training comes to other bits", after)
		}
	}
}

// A model that somebody puts where the checkpoints are is replaced neither by the next checkpoint
// nor by the model of the training.
func TestCheckpointsReplaceTheirOwn(t *testing.T) {
	h := train.Paper()
	h.Atoms, h.Epochs, h.Lambda = 20, 6, 0.01
	dir := filepath.Join(t.TempDir(), "model")
	precious := fitBest(t, sampleOfBest(t), best(), train.Options{})
	var warnings []string
	o := train.FileOptions{Read: vectors.ReadOptions{MaxWords: 200}}
	o.Checkpoint = &train.Checkpoint{Every: time.Nanosecond}
	o.Note = func(line string) {
		if strings.Contains(line, "no checkpoint") {
			warnings = append(warnings, line)
		}
	}
	o.Epoch = func(e model.Epoch) {
		if e.Epoch == 3 {
			if err := errors.Join(os.RemoveAll(dir), precious.Save(dir, false)); err != nil {
				t.Fatal(err)
			}
		}
	}
	result, err := train.File(t.Context(), sampleFile, h, cpu.Device{}, dir, o)
	if err == nil || !strings.Contains(err.Error(), "is not the checkpoint") || result.Status != train.Unchanged {
		t.Errorf("saved in its place: %+v, error %v", result, err)
	}
	if n := len(warnings); n != 3 || !strings.Contains(warnings[0], "no checkpoint after epoch 3: ") || !strings.Contains(warnings[0], "is not the checkpoint that this training left there") {
		t.Errorf("%d warnings: %q", n, warnings)
	}
	if is, err := model.Open(dir); err != nil || !reflect.DeepEqual(is.Dictionary, precious.Dictionary) {
		t.Errorf("the precious model is gone: %v", err)
	}
	o.Epoch, o.Replace = nil, true
	if result, err := train.File(t.Context(), sampleFile, h, cpu.Device{}, dir, o); err != nil || result.Status != train.Complete {
		t.Errorf("%+v, error %v", result, err)
	}
}

// unencoding is a device that learns but does not encode.
type unencoding struct{ cpu.Device }

func (unencoding) Encoder(*model.Dictionary, encode.Options) (encode.Encoder, error) {
	return nil, errors.New("no encoder")
}

// Where encoding fails, what was learned is kept, and can be saved and encoded with.
func TestEncodingFails(t *testing.T) {
	x := sampleOfBest(t)
	want := fitBest(t, x, best(), train.Options{})
	m, err := train.Fit(t.Context(), x, best(), unencoding{}, train.Options{})
	if m == nil || err == nil || err.Error() != "no encoder" {
		t.Fatalf("error %v with the model %v", err, m)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := m.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	m, err = model.Open(dir)
	if err != nil || m.Info.Encoding != nil {
		t.Fatalf("%+v, error %v", m, err)
	}
	got, err := encode.Model(t.Context(), m, x, cpu.Device{}, encode.Defaults(m.Info))
	if err != nil || !reflect.DeepEqual(got.Codes.CSR, want.Codes.CSR) {
		t.Errorf("other codes, error %v", err)
	}
}

// Learn and a stream of the same rows come to the model of Fit.
func TestLearn(t *testing.T) {
	x := sampleOfBest(t)
	want := fitBest(t, x, best(), train.Options{})
	m, err := train.Learn(t.Context(), x, best(), cpu.Device{}, train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := encode.Model(t.Context(), m, x, cpu.Device{}, encode.Defaults(m.Info))
	if err != nil || !reflect.DeepEqual(got.Codes, want.Codes) {
		t.Errorf("other codes, error %v", err)
	}
}

// What is told of rows: words in order of frequency have none that can be seen, and others
// are no such words.
func TestDefaultOrder(t *testing.T) {
	// sorted are 300 words from a on, or to it, of which some are anywhere.
	sorted := func(direction, strays int) (words []string) {
		for i := range 300 {
			words = append(words, string([]byte{'a' + byte(i/26), 'a' + byte(i%26), 'x'}))
		}
		if direction < 0 {
			slices.Reverse(words)
		}
		for i := range strays {
			words[10*i+5] = "m"
		}
		return words
	}
	for want, lists := range map[model.Order][][]string{
		model.Frequency: {{"the", "of", "and", "New York"}, {"the"}, {"of", "and", "the", "2024"}},
		model.None: {{"0", "1", "2"}, {"a text", "another\ntext", "word"}, {"aardvark", "abacus", "zebra"},
			{"doc-17", "doc-3", "the"}, {"今日は雨が降っています。", "私は猫が好きです。", "犬"}, sorted(1, 0), sorted(1, 30), sorted(-1, 0), sorted(-1, 30)},
	} {
		for _, words := range lists {
			x := &vectors.Dense{Words: words, Dim: 1, Data: make([]float32, len(words))}
			if got := train.Settled(train.Best(), x).(model.Best).Order; got != want {
				t.Errorf("%q are of the order %q, want %q", words, got, want)
			}
		}
	}
}

// Numbers of rows and atoms that there can't be are refused before they are used.
func TestLearnRefuses(t *testing.T) {
	for _, change := range []func(h *model.Best){
		func(h *model.Best) { h.TrainWords = -1 },
		func(h *model.Best) { h.Atoms, h.TrainWords = -1, 0 },
	} {
		h := best()
		change(&h)
		if _, err := train.Learn(t.Context(), sampleOfBest(t), h, cpu.Device{}, train.Options{}); err == nil {
			t.Errorf("no error for %+v", h)
		}
	}
}

// A training that is to be like another has its dimensions, number by number, though it has
// other rows and seed; without, it has not.
func TestLike(t *testing.T) {
	x := sampleOfBest(t)
	first := fitBest(t, x, best(), train.Options{})
	fewer := &vectors.Dense{Words: x.Words[70:], Dim: x.Dim, Data: x.Data[70*x.Dim:]}
	h := best()
	h.Seed, h.Atoms, h.TrainWords = 2, 0, 0
	same := func(m *model.Model) (mean float64) {
		for k := range first.Dictionary.Len() {
			var dot, a, b float64
			for j, v := range first.Dictionary.Atom(k) {
				w := float64(m.Dictionary.Atom(k)[j])
				dot, a, b = dot+float64(v)*w, a+float64(v)*float64(v), b+w*w
			}
			mean += dot / math.Sqrt(a*b) / float64(first.Dictionary.Len())
		}
		return mean
	}
	like := first.Dictionary // at another scale, which does not matter
	like.Atoms = slices.Clone(like.Atoms)
	for i := range like.Atoms {
		like.Atoms[i] *= 7
	}
	m := fitBest(t, fewer, h, train.Options{Like: &like})
	if mean := same(m); mean < 0.9 || m.Info.Training.Recipe.(model.Best).Like == "" {
		t.Errorf("mean cosine %v, hyperparameters %+v", mean, m.Info.Training.Recipe)
	}
	h.Atoms = best().Atoms
	if mean := same(fitBest(t, fewer, h, train.Options{})); mean > 0.5 {
		t.Errorf("mean cosine %v without: a poor test", mean)
	}
	for _, d := range []model.Dictionary{
		{Dim: x.Dim, Atoms: like.Atoms[:59*x.Dim]},
		{Dim: x.Dim / 2, Atoms: like.Atoms},
		{Dim: x.Dim, Atoms: make([]float32, 60*x.Dim)},
	} {
		if _, err := train.Fit(t.Context(), x, h, cpu.Device{}, train.Options{Like: &d}); err == nil {
			t.Errorf("no error for %d atoms of %d numbers", d.Len(), d.Dim)
		}
	}
	if _, err := train.Fit(t.Context(), x, m.Info.Training.Recipe, cpu.Device{}, train.Options{}); err == nil {
		t.Error("no error for a recipe that names a model to be like, without one")
	}
	if _, err := train.Fit(t.Context(), x, samplePaper(), cpu.Device{}, train.Options{Like: &like}); err == nil {
		t.Error("no error with the recipe paper")
	}
}

// Atoms that data were made of are found again: 6,000 rows of norm 1, each of five of
// 128 atoms with 1 % noise. AdaGrad and dual averaging find none of them.
func TestPlantedAtoms(t *testing.T) {
	const rows, dim, atoms, active = 6000, 64, 128, 5
	rng := rand.New(rand.NewPCG(1, 2))
	planted := make([][]float64, atoms)
	for k := range planted {
		planted[k] = make([]float64, dim)
		var squares float64
		for j := range planted[k] {
			planted[k][j] = rng.NormFloat64()
			squares += planted[k][j] * planted[k][j]
		}
		for j := range planted[k] {
			planted[k][j] /= math.Sqrt(squares)
		}
	}
	x := &vectors.Dense{Dim: dim}
	for i := range rows {
		x.Words = append(x.Words, fmt.Sprint(i))
		row, squares := make([]float64, dim), 0.
		for _, k := range rng.Perm(atoms)[:active] {
			c := (0.3 + 0.7*rng.Float64()) * float64(1-2*rng.IntN(2))
			for j, d := range planted[k] {
				row[j] += c * d
			}
		}
		for j := range row {
			row[j] += 0.01 * rng.NormFloat64()
			squares += row[j] * row[j]
		}
		for _, v := range row {
			x.Data = append(x.Data, float32(v/math.Sqrt(squares)))
		}
	}
	h := train.Best()
	h.Atoms, h.Nonzeros, h.Epochs = atoms, active, 20
	m := fitBest(t, x, h, train.Options{})
	found := 0
	for _, d := range planted {
		var nearest float64
		for k := range atoms {
			var dot, squares float64
			for j, v := range m.Dictionary.Atom(k) {
				dot += float64(v) * d[j]
				squares += float64(v) * float64(v)
			}
			nearest = max(nearest, math.Abs(dot)/math.Sqrt(squares))
		}
		if nearest > 0.9 {
			found++
		}
	}
	t.Logf("%d of %d atoms found after %d passes, error %.4f", found, atoms, len(m.Info.Training.Epochs), m.Info.Encoding.Error)
	if found < 120 {
		t.Errorf("%d of %d planted atoms found, want 120", found, atoms)
	}
}

// checkpointOf leaves a checkpoint after some epochs of a training, which is
// interrupted.
func checkpointOf(t *testing.T, h model.Recipe, after int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "model")
	ctx, cancel := context.WithCancel(t.Context())
	c := &train.Checkpoint{Dir: dir, Every: time.Hour}
	_, err := train.Fit(ctx, sample(t, short), h, cpu.Device{}, train.Options{Checkpoint: c, Epoch: func(e model.Epoch) {
		if e.Epoch == after {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || c.Epoch != after {
		t.Fatalf("error %v and a checkpoint after epoch %d, want one after %d", err, c.Epoch, after)
	}
	return dir
}

// A checkpoint goes on to the bits of a training that never stopped, and only with
// what it was begun with.
func TestResume(t *testing.T) {
	base := samplePaper()
	dir := checkpointOf(t, base, 5)
	others := map[string]model.Recipe{"recipe": best()}
	for name, c := range changesOfPaper {
		h := base
		c.change(&h)
		others[name] = h
	}
	for name, h := range others {
		o := train.Options{Checkpoint: &train.Checkpoint{Dir: dir, Resume: true}}
		_, err := train.Fit(t.Context(), sample(t, short), h, cpu.Device{}, o)
		if !errors.Is(err, train.ErrCheckpoint) || !strings.Contains(err.Error(), "the checkpoint is of another training: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	x := sample(t, short)
	x.Words[3] = "another"
	o := train.Options{Checkpoint: &train.Checkpoint{Dir: dir, Resume: true}}
	if _, err := train.Fit(t.Context(), x, base, cpu.Device{}, o); err == nil || !strings.Contains(err.Error(), "the words are others") {
		t.Errorf("other words: error %v", err)
	}

	x = sample(t, -short)
	if _, err := train.Fit(t.Context(), x, base, cpu.Device{}, o); err == nil || !strings.Contains(err.Error(), "the vectors are others") {
		t.Errorf("other vectors: error %v", err)
	}

	var begun int
	c := &train.Checkpoint{Dir: dir, Resume: true}
	m := fitSample(t, base, train.Options{Checkpoint: c, Begin: func(i model.Info) { begun = len(i.Training.Epochs) }})
	if begun != 5 || c.Epoch != 5 {
		t.Errorf("went on after epoch %d, and says %d", begun, c.Epoch)
	}
	whole := fitSample(t, base, train.Options{})
	for _, m := range []*model.Model{m, whole} {
		for i := range m.Info.Training.Epochs {
			m.Info.Training.Epochs[i].Seconds = 0
		}
	}
	if !reflect.DeepEqual(m, whole) {
		t.Error("resumed, the training comes to other bits")
	}
}

// pseudoHuber is 4(√(1+r²/4) − 1), which this program knows by no name.
func pseudoHuber(r *gorgonia.Node) (*gorgonia.Node, error) {
	constant := func(x float64) *gorgonia.Node {
		if r.Dtype() == gorgonia.Float32 {
			return gorgonia.NewConstant(float32(x))
		}
		return gorgonia.NewConstant(x)
	}
	quarter := gorgonia.Must(gorgonia.HadamardProd(constant(0.25), gorgonia.Must(gorgonia.Square(r))))
	root := gorgonia.Must(gorgonia.Sqrt(gorgonia.Must(gorgonia.Add(quarter, constant(1)))))
	return gorgonia.HadamardProd(constant(4), gorgonia.Must(gorgonia.Sub(root, constant(1))))
}

// A loss of the program's own is trained, measured and saved under its name.
func TestOwnLoss(t *testing.T) {
	x, h := sample(t, 1), samplePaper()
	h.Loss, h.Lambda = "pseudo-Huber", 0.1
	m, err := train.Fit(t.Context(), x, h, cpu.Device{}, train.Options{Loss: pseudoHuber})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := m.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	m, err = model.Open(dir)
	if err != nil || m.Info.Training.Recipe.(model.Paper).Loss != "pseudo-Huber" {
		t.Fatalf("%+v, error %v", m, err)
	}
	// What the last epoch measured, again in float64.
	var loss, squares float64
	r := make([]float64, x.Dim)
	for i := range x.Words {
		for j, v := range x.Row(i) {
			r[j] = float64(v)
		}
		index, value := m.Codes.Row(i)
		for n, k := range index {
			for j, d := range m.Dictionary.Atom(int(k)) {
				r[j] -= float64(value[n]) * float64(d)
			}
		}
		for _, v := range r {
			loss += 4 * (math.Sqrt(1+v*v/4) - 1)
			squares += v * v
		}
	}
	e, words := m.Info.Training.Epochs[len(m.Info.Training.Epochs)-1], float64(x.Len())
	// Training sums residuals that were rounded to float32.
	if math.Abs(e.Loss*words-loss) > 1e-5*loss || math.Abs(e.Error*words-squares) > 1e-5*squares {
		t.Errorf("loss %v and error %v, want %v and %v", e.Loss, e.Error, loss/words, squares/words)
	}
}

// Where words are in order of frequency, every mean is that of the frequent ones.
func TestFrequent(t *testing.T) {
	const rows, dim, atoms = 90, 3, 2 // of which 40 are frequent
	x := &vectors.Dense{Dim: dim}
	for i := range rows {
		x.Words = append(x.Words, string([]byte{'a' + byte(37*i%rows/10), 'a' + byte(37*i%10)})) // not sorted
		for j := range dim {
			v := float32((7*i + 5*j) % 11)
			if i >= 40 {
				v += 1000
			}
			x.Data = append(x.Data, v)
		}
	}
	first := &vectors.Dense{Words: x.Words[:40], Dim: dim, Data: x.Data[:40*dim]}
	if got := train.Frequent(x, atoms); !reflect.DeepEqual(got, first) {
		t.Errorf("%d rows are frequent, want 40", got.Len())
	}
	h := train.Paper()
	h.Atoms, h.Epochs, h.Center, h.Lambda = atoms, 1, true, 0.01
	m, err := train.Fit(t.Context(), x, h, cpu.Device{}, train.Options{})
	if err != nil || !slices.Equal(m.Dictionary.Mean, first.Mean()) {
		t.Errorf("centred by %v, want %v; error %v", m.Dictionary.Mean, first.Mean(), err)
	}
	slices.Sort(x.Words)
	if got := train.Frequent(x, atoms); got.Len() != rows {
		t.Errorf("%d rows of sorted words are frequent, want all", got.Len())
	}
}
