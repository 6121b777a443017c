package train_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gorgonia.org/gorgonia"

	"overcomplete/cpu"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// short scales vectors so that the authors' rule stops as early as it may.
const short = 0.02

// sample returns real vectors, scaled.
func sample(t *testing.T, scale float32) *vectors.Dense {
	t.Helper()
	x, _, err := vectors.Read(t.Context(), "../testdata/godoc.50d.txt.gz", vectors.ReadOptions{MaxWords: 200})
	if err != nil {
		t.Fatal(err)
	}
	for i := range x.Data {
		x.Data[i] *= scale
	}
	return x
}

func sampleHyperparameters() model.Hyperparameters {
	h := train.Defaults()
	h.Atoms, h.Epochs, h.Lambda, h.DictionarySteps = 30, 21, 0.001, 8
	return h
}

// changes are, for each hyperparameter, a training that differs in it.
var changes = map[string]struct {
	change func(*model.Hyperparameters)
	also   []string // what cannot but differ with it
}{
	"Recipe":          {func(h *model.Hyperparameters) { h.Recipe, h.Center = "best", true }, []string{"Center"}},
	"Method":          {func(h *model.Hyperparameters) { h.Method = "B" }, nil},
	"Algorithm":       {func(h *model.Hyperparameters) { h.Algorithm, h.DictionarySteps = "authors", 0 }, []string{"DictionarySteps"}},
	"Atoms":           {func(h *model.Hyperparameters) { h.Atoms = 31 }, nil},
	"Lambda":          {func(h *model.Hyperparameters) { h.Lambda = 0.002 }, nil},
	"Tau":             {func(h *model.Hyperparameters) { h.Tau = 1e-2 }, nil},
	"Rate":            {func(h *model.Hyperparameters) { h.Rate = 0.04 }, nil},
	"Loss":            {func(h *model.Hyperparameters) { h.Loss, h.HuberDelta = "huber", 0.01 }, []string{"HuberDelta"}},
	"HuberDelta":      {func(h *model.Hyperparameters) { h.Loss, h.HuberDelta = "huber", 0.02 }, []string{"Loss"}},
	"State":           {func(h *model.Hyperparameters) { h.State = "float16" }, nil},
	"Epochs":          {func(h *model.Hyperparameters) { h.Epochs = 19 }, nil},
	"Stop":            {func(h *model.Hyperparameters) { h.Stop = "authors" }, nil},
	"DictionarySteps": {func(h *model.Hyperparameters) { h.DictionarySteps = 9 }, nil},
	"Center":          {func(h *model.Hyperparameters) { h.Center = true }, nil},
	"Seed":            {func(h *model.Hyperparameters) { h.Seed = 2 }, nil},
}

// differing are the names of the hyperparameters that differ.
func differing(a, b model.Hyperparameters) (names []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if x.Field(i).Interface() != y.Field(i).Interface() {
			names = append(names, x.Type().Field(i).Name)
		}
	}
	return names
}

func fitSample(t *testing.T, h model.Hyperparameters, o train.Options) *model.Model {
	t.Helper()
	m, err := train.Fit(t.Context(), sample(t, short), h, cpu.Device{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every hyperparameter that a model names is what the training did: another one gives
// another model.
func TestEveryHyperparameterCounts(t *testing.T) {
	base := fitSample(t, sampleHyperparameters(), train.Options{})
	for i := range reflect.TypeFor[model.Hyperparameters]().NumField() {
		name := reflect.TypeFor[model.Hyperparameters]().Field(i).Name
		c, known := changes[name]
		if !known {
			t.Errorf("%s is tested by nothing", name)
			continue
		}
		h := sampleHyperparameters()
		c.change(&h)
		if got := differing(h, base.Info.Training); len(got) != 1+len(c.also) {
			t.Errorf("%s: %v differ", name, got)
		}
		m := fitSample(t, h, train.Options{})
		if m.Info.Training != h {
			t.Errorf("%s: the model says %+v, trained with %+v", name, m.Info.Training, h)
		}
		if slices.Equal(m.Codes.Value, base.Codes.Value) {
			t.Errorf("%s makes no difference", name)
		}
	}
	if again := fitSample(t, sampleHyperparameters(), train.Options{}); !slices.Equal(again.Codes.Value, base.Codes.Value) {
		t.Error("nor does it take one: the same training gives another model")
	}
}

// checkpointOf leaves a checkpoint after some epochs of a training, which is
// interrupted.
func checkpointOf(t *testing.T, h model.Hyperparameters, after int) (dir string) {
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
	base := sampleHyperparameters()
	dir := checkpointOf(t, base, 5)
	for name, c := range changes {
		h := base
		c.change(&h)
		o := train.Options{Checkpoint: &train.Checkpoint{Dir: dir, Resume: true}}
		_, err := train.Fit(t.Context(), sample(t, short), h, cpu.Device{}, o)
		var wrong *train.CheckpointError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "the checkpoint is of another training: ") {
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
	m := fitSample(t, base, train.Options{Checkpoint: c, Begin: func(i model.Info) { begun = len(i.Epochs) }})
	if begun != 5 || c.Epoch != 5 {
		t.Errorf("went on after epoch %d, and says %d", begun, c.Epoch)
	}
	whole := fitSample(t, base, train.Options{})
	for _, m := range []*model.Model{m, whole} {
		for i := range m.Info.Epochs {
			m.Info.Epochs[i].Seconds = 0
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
	x, h := sample(t, 1), sampleHyperparameters()
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
	if err != nil || m.Info.Training.Loss != "pseudo-Huber" {
		t.Fatalf("loss %q, error %v", m.Info.Training.Loss, err)
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
	e, words := m.Info.Epochs[len(m.Info.Epochs)-1], float64(x.Len())
	// Training sums residuals that were rounded to float32.
	if math.Abs(e.Loss*words-loss) > 1e-5*loss || math.Abs(e.Error*words-squares) > 1e-5*squares {
		t.Errorf("loss %v and error %v, want %v and %v", e.Loss, e.Error, loss/words, squares/words)
	}
}
