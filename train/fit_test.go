package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"

	"overcomplete/cpu"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/testonly/encodetest"
	"overcomplete/train"
	"overcomplete/vectors"
)

const sampleFile = "../testdata/godoc.50d.txt.gz"

// smallScale scales vectors so that the authors' rule stops as early as possible.
const smallScale = 0.02

// sample returns the first n sample vectors, multiplied by scale.
func sample(t *testing.T, n int, scale float32) *vectors.Dense {
	t.Helper()
	x, _, err := vectors.Read(t.Context(), []string{sampleFile}, vectors.ReadOptions{MaxRows: n})
	testonly.Must(t, err)
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

// sampleOfBest returns rows that make several batches.
func sampleOfBest(t *testing.T) *vectors.Dense { return sample(t, 700, 1) }

func best() model.Best {
	h := train.Best()
	h.Method = model.Signed
	h.Atoms, h.Epochs, h.DictionarySteps, h.Nonzeros, h.TrainRows, h.Order = 60, 2, 64, 6, 700, model.Frequency
	return h
}

func fit(t *testing.T, x *vectors.Dense, h model.Recipe, o train.Options) *model.Model {
	t.Helper()
	m, err := train.Fit(t.Context(), x, h, cpu.Device{}, o)
	testonly.Must(t, err)
	return m
}

// changed returns copies of base that differ in one hyperparameter each, keyed by its name.
func changed[R model.Recipe](base R, changes map[string]func(h *R)) map[string]model.Recipe {
	all := map[string]model.Recipe{}
	for name, change := range changes {
		h := base
		change(&h)
		all[name] = h
	}
	return all
}

var changedPapers = changed(samplePaper(), map[string]func(h *model.Paper){
	"FromRows":        func(h *model.Paper) { h.FromRows = true },
	"Method":          func(h *model.Paper) { h.Method = model.Nonnegative },
	"AuthorsOrder":    func(h *model.Paper) { h.AuthorsOrder, h.DictionarySteps = true, 0 },
	"Atoms":           func(h *model.Paper) { h.Atoms = 31 },
	"Lambda":          func(h *model.Paper) { h.Lambda = 0.002 },
	"Tau":             func(h *model.Paper) { h.Tau = 1e-2 },
	"Rate":            func(h *model.Paper) { h.Rate = 0.04 },
	"Loss":            func(h *model.Paper) { h.Loss, h.HuberDelta = model.Huber, 0.01 },
	"HuberDelta":      func(h *model.Paper) { h.Loss, h.HuberDelta = model.Huber, 0.02 },
	"Epochs":          func(h *model.Paper) { h.Epochs = 19 },
	"AuthorsStop":     func(h *model.Paper) { h.AuthorsStop = true },
	"DictionarySteps": func(h *model.Paper) { h.DictionarySteps = 9 },
	"Center":          func(h *model.Paper) { h.Center = true },
	"Seed":            func(h *model.Paper) { h.Seed = 2 },
})

var changedBests = changed(best(), map[string]func(h *model.Best){
	"Nonzeros":        func(h *model.Best) { h.Nonzeros = 8 },
	"Anchor":          func(h *model.Best) { h.Anchor = 0.9 },
	"TrainRows":       func(h *model.Best) { h.TrainRows = 690 },
	"Order":           func(h *model.Best) { h.Order = model.None },
	"Method":          func(h *model.Best) { h.Method = model.Nonnegative },
	"Atoms":           func(h *model.Best) { h.Atoms = 31 },
	"Lambda":          func(h *model.Best) { h.Lambda = 0.05 },
	"Epochs":          func(h *model.Best) { h.Epochs = 1 },
	"DictionarySteps": func(h *model.Best) { h.DictionarySteps = 1 },
	"Seed":            func(h *model.Best) { h.Seed = 2 },
})

// Changing any hyperparameter changes the model, which stores its value.
func TestEveryHyperparameterCounts(t *testing.T) {
	for _, c := range []struct {
		x      *vectors.Dense
		base   model.Recipe
		others map[string]model.Recipe
		except string // hyperparameters that other tests cover
	}{{sample(t, 200, smallScale), samplePaper(), changedPapers, ""}, {sampleOfBest(t), best(), changedBests, "Like, Topics"}} {
		first := fit(t, c.x, c.base, train.Options{})
		for _, of := range []reflect.Type{reflect.TypeFor[model.Common](), reflect.TypeOf(c.base)} {
			for i := range of.NumField() {
				if f := of.Field(i); c.others[f.Name] == nil && !f.Anonymous && !strings.Contains(c.except, f.Name) {
					t.Errorf("%s is tested by nothing", f.Name)
				}
			}
		}
		for name, h := range c.others {
			m := fit(t, c.x, h, train.Options{})
			if m.Info.Training.Recipe != h {
				t.Errorf("%s: the model says %+v, trained with %+v", name, m.Info.Training.Recipe, h)
			}
			if slices.Equal(m.Codes.Value, first.Codes.Value) {
				t.Errorf("%s makes no difference", name)
			}
		}
		if again := fit(t, c.x, c.base, train.Options{}); !slices.Equal(again.Codes.Value, first.Codes.Value) {
			t.Error("the same training gives another model")
		}
	}
}

// Codes don't depend on the scale of the vectors. Scaling by a power of two is exact, except for
// denormal numbers. Other factors change the last digits.
func TestBestIsScaleFree(t *testing.T) {
	x := sampleOfBest(t)
	base := fit(t, x, best(), train.Options{})
	for _, scale := range []float32{1.0 / 16, 256, 300} {
		scaled := &vectors.Dense{IDs: x.IDs, Dim: x.Dim, Data: slices.Clone(x.Data)}
		for i := range scaled.Data {
			scaled.Data[i] *= scale
		}
		m := fit(t, scaled, best(), train.Options{})
		if scale != 300 {
			if !slices.Equal(m.Codes.Index, base.Codes.Index) || !slices.Equal(m.Codes.Value, base.Codes.Value) {
				t.Errorf("scaled by %v, the vectors have other codes", scale)
			}
			continue
		}
		e, want := m.Info.Encoding, base.Info.Encoding
		// Rounding decides between candidates for atoms, or between values, that are nearly equal.
		if got := e.Error / float64(scale) / float64(scale); math.Abs(got-want.Error) > 0.05*want.Error || e.Sparsity != want.Sparsity {
			t.Errorf("scaled by %v: error %v and sparsity %v, want %v and %v", scale, got, e.Sparsity, want.Error, want.Sparsity)
		}
	}
}

// Rows are in order of frequency unless they look like texts or ids, or are sorted.
func TestDefaultOrder(t *testing.T) {
	// sorted returns 300 rows in alphabetical or reverse order, except for a number of strays.
	sorted := func(direction, strays int) (ids []string) {
		for i := range 300 {
			ids = append(ids, string([]byte{'a' + byte(i/26), 'a' + byte(i%26), 'x'}))
		}
		if direction < 0 {
			slices.Reverse(ids)
		}
		for i := range strays {
			ids[10*i+5] = "m"
		}
		return ids
	}
	for want, lists := range map[model.Order][][]string{
		model.Frequency: {{"the", "of", "and", "New York"}, {"the"}, {"of", "and", "the", "2024"}},
		model.None: {{"0", "1", "2"}, {"a text", "another\ntext", "word"}, {"aardvark", "abacus", "zebra"},
			{"doc-17", "doc-3", "the"}, {"今日は雨が降っています。", "私は猫が好きです。", "犬"}, sorted(1, 0), sorted(1, 30), sorted(-1, 0), sorted(-1, 30)},
	} {
		for _, ids := range lists {
			x := &vectors.Dense{IDs: ids, Dim: 1, Data: make([]float32, len(ids))}
			if got := train.WithDefaults(train.Best(), x).(model.Best).Order; got != want {
				t.Errorf("order of %q: got %q, want %q", ids, got, want)
			}
		}
	}
}

// Negative numbers of rows and atoms are refused.
func TestBestRefuses(t *testing.T) {
	rows, atoms := best(), best()
	rows.TrainRows, atoms.Atoms = -1, -1
	for want, h := range map[string]model.Best{"train-rows is -1": rows, "atoms is -1": atoms} {
		_, err := train.Fit(t.Context(), sampleOfBest(t), h, cpu.Device{}, train.Options{})
		testonly.ErrorSays(t, fmt.Sprintf("%+v", h), err, want)
	}
}

// Training with Options.Like keeps the dimensions of the earlier model and their numbers, even for
// other rows and another seed. Training without it doesn't.
func TestLike(t *testing.T) {
	x := sampleOfBest(t)
	first := fit(t, x, best(), train.Options{})
	fewer := &vectors.Dense{IDs: x.IDs[70:], Dim: x.Dim, Data: x.Data[70*x.Dim:]}
	h := best()
	h.Seed, h.Atoms, h.TrainRows = 2, 0, 0
	meanCosine := func(m *model.Model) (mean float64) {
		theirs := learned(m)
		for k, atom := range learned(first) {
			mean += floats.Dot(atom, theirs[k]) / floats.Norm(atom, 2) / floats.Norm(theirs[k], 2) / float64(len(theirs))
		}
		return mean
	}
	like := first.Dictionary // scaling it makes no difference
	like.Atoms = slices.Clone(like.Atoms)
	for i := range like.Atoms {
		like.Atoms[i] *= 7
	}
	m := fit(t, fewer, h, train.Options{Like: &like})
	if mean := meanCosine(m); mean < 0.9 || m.Info.Training.Recipe.(model.Best).Like == "" {
		t.Errorf("mean cosine %v, hyperparameters %+v", mean, m.Info.Training.Recipe)
	}
	h.Atoms = best().Atoms
	if mean := meanCosine(fit(t, fewer, h, train.Options{})); mean > 0.5 {
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
		t.Error("no error for a recipe that names an earlier model, without Options.Like")
	}
	if _, err := train.Fit(t.Context(), x, samplePaper(), cpu.Device{}, train.Options{Like: &like}); err == nil {
		t.Error("no error with the recipe paper")
	}
}

// Training recovers planted atoms: 6,000 rows of norm 1, each a combination of five of 128 atoms with
// 1 % noise. AdaGrad and dual averaging find none of them.
func TestPlantedAtoms(t *testing.T) {
	const rows, dim, atoms, active = 6000, 64, 128, 5
	rng := rand.New(rand.NewPCG(1, 2))
	unit := func(v []float64) []float64 {
		floats.Scale(1/floats.Norm(v, 2), v)
		return v
	}
	planted := make([][]float64, atoms)
	for k := range planted {
		planted[k] = make([]float64, dim)
		for j := range planted[k] {
			planted[k][j] = rng.NormFloat64()
		}
		unit(planted[k])
	}
	x := &vectors.Dense{Dim: dim}
	for i := range rows {
		x.IDs = append(x.IDs, fmt.Sprint(i))
		row := make([]float64, dim)
		for _, k := range rng.Perm(atoms)[:active] {
			floats.AddScaled(row, (0.3+0.7*rng.Float64())*float64(1-2*rng.IntN(2)), planted[k])
		}
		for j := range row {
			row[j] += 0.01 * rng.NormFloat64()
		}
		for _, v := range unit(row) {
			x.Data = append(x.Data, float32(v))
		}
	}
	h := train.Best()
	h.Atoms, h.Nonzeros, h.Epochs = atoms, active, 20
	m := fit(t, x, h, train.Options{})
	found := 0
	for _, d := range planted {
		if slices.ContainsFunc(learned(m), func(atom []float64) bool { return math.Abs(floats.Dot(unit(atom), d)) > 0.9 }) {
			found++
		}
	}
	t.Logf("%d of %d atoms found after %d passes, error %.4f", found, atoms, len(m.Info.Training.Epochs), m.Info.Encoding.Error)
	if found < 120 {
		t.Errorf("%d of %d planted atoms found, want 120", found, atoms)
	}
}

// learned returns the atoms of m in float64.
func learned(m *model.Model) (atoms [][]float64) {
	for k := range m.Dictionary.Len() {
		atoms = append(atoms, encodetest.Widen(m.Dictionary.Atom(k)))
	}
	return atoms
}

// The training rows of words are the most frequent words, and the mean to subtract is their mean.
func TestTrainingRows(t *testing.T) {
	const rows, dim, atoms = 90, 3, 2 // 40 rows are frequent
	x := &vectors.Dense{Dim: dim}
	for i := range rows {
		x.IDs = append(x.IDs, string([]byte{'a' + byte(37*i%rows/10), 'a' + byte(37*i%10)})) // in no alphabetical order
		for j := range dim {
			v := float32((7*i + 5*j) % 11)
			if i >= 40 {
				v += 1000
			}
			x.Data = append(x.Data, v)
		}
	}
	first := &vectors.Dense{IDs: x.IDs[:40], Dim: dim, Data: x.Data[:40*dim]}
	if got := train.TrainingRows(x, atoms); !reflect.DeepEqual(got, first) {
		t.Errorf("%d rows are frequent, want 40", got.Len())
	}
	h := train.Paper()
	h.Atoms, h.Epochs, h.Center, h.Lambda = atoms, 1, true, 0.01
	before := slices.Clone(x.Data)
	if m := fit(t, x, h, train.Options{}); !slices.Equal(m.Dictionary.Mean, first.Mean()) || !slices.Equal(x.Data, before) {
		t.Errorf("centred by %v, want %v, or the caller's vectors are changed", m.Dictionary.Mean, first.Mean())
	}
	slices.Sort(x.IDs)
	if got := train.TrainingRows(x, atoms); got.Len() != rows {
		t.Errorf("%d rows of sorted words are frequent, want all", got.Len())
	}
}

// interrupted cancels a training after an epoch and returns the directory of its checkpoint.
func interrupted(t *testing.T, x *vectors.Dense, h model.Recipe, after int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "model")
	ctx, cancel := context.WithCancel(t.Context())
	c := &train.Checkpoint{Dir: dir, Every: time.Hour}
	_, err := train.Fit(ctx, x, h, cpu.Device{Workers: 3}, train.Options{Checkpoint: c, Epoch: func(e model.Epoch) {
		if e.Epoch == after {
			cancel()
		}
	}})
	if left, ok := errors.AsType[*train.LeftError](err); !ok || !errors.Is(err, context.Canceled) || !left.Resumable || left.Left != fmt.Sprintf("%s is a checkpoint after epoch %d", dir, after) {
		t.Fatalf("error %v, want a checkpoint after epoch %d", err, after)
	}
	return dir
}

// A resumed training gives the same bits as an uninterrupted one, also if it stopped after the last
// epoch of a learner, before encoding.
func TestResume(t *testing.T) {
	words, words700, three := sample(t, 200, smallScale), sampleOfBest(t), best()
	three.Epochs = 3
	for _, c := range []struct {
		x     *vectors.Dense
		h     model.Recipe
		after int
	}{{words, samplePaper(), 5}, {words700, three, 1}, {words700, three, 3}} {
		dir := interrupted(t, c.x, c.h, c.after)
		var begun int
		checkpoint := &train.Checkpoint{Dir: dir, Resume: true}
		var models []*model.Model
		for _, o := range []train.Options{{}, {Checkpoint: checkpoint, Begin: func(i model.Info) { begun = len(i.Training.Epochs) }}} {
			m, err := train.Fit(t.Context(), c.x, c.h, cpu.Device{}, o)
			testonly.Must(t, err)
			for i := range m.Info.Training.Epochs {
				m.Info.Training.Epochs[i].Seconds = 0
			}
			models = append(models, m)
		}
		if begun != c.after {
			t.Errorf("resumed after epoch %d, want %d", begun, c.after)
		}
		if !reflect.DeepEqual(models[1], models[0]) {
			t.Errorf("%v after epoch %d: the bits of the resumed training differ", c.h, c.after)
		}
	}
}

// A training resumes only from a checkpoint of the same rows and recipe.
func TestResumeRefuses(t *testing.T) {
	x, base := sample(t, 200, smallScale), samplePaper()
	o := train.Options{Checkpoint: &train.Checkpoint{Dir: interrupted(t, x, base, 2), Resume: true}}
	refused := func(name string, x *vectors.Dense, h model.Recipe, want string) {
		t.Helper()
		_, err := train.Fit(t.Context(), x, h, cpu.Device{}, o)
		if !errors.Is(err, train.ErrCheckpoint) || !strings.Contains(err.Error(), "the checkpoint belongs to another training: "+want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	refused("recipe", x, best(), "recipe (got best, want paper)")
	for name, h := range changedPapers {
		refused(name, x, h, "")
	}
	other := sample(t, 200, smallScale)
	other.IDs[3] = "another"
	refused("words", other, base, "the words differ")
	refused("vectors", sample(t, 200, -smallScale), base, "the vectors differ")
}

// The metrics of the last epoch equal those computed from dictionary and codes in float64 by the
// paper's formulas, for each loss.
func TestMetricsOfModel(t *testing.T) {
	for _, c := range []struct {
		change func(h *model.Paper)
		want   func(r float64) float64
	}{
		{func(h *model.Paper) { h.Center, h.Tau = true, 0.01 }, func(r float64) float64 { return r * r }},
		{func(h *model.Paper) { h.Loss, h.HuberDelta, h.Method = model.Huber, 0.4, model.Nonnegative }, func(r float64) float64 {
			if r = math.Abs(r); r > 0.4 {
				return 0.4 * (2*r - 0.4)
			}
			return r * r
		}},
	} {
		x, h := sample(t, 200, 1), samplePaper()
		h.Lambda = 0.1
		c.change(&h)
		m, err := train.Fit(t.Context(), x, h, cpu.Device{}, train.Options{})
		testonly.Must(t, err)
		if m.Info.Training.Recipe.(model.Paper).Loss != h.Loss || h.Center != (m.Dictionary.Mean != nil) {
			t.Errorf("%+v", m.Info)
		}
		var loss, squares, l1, norms, norms2 float64
		used := map[int32]bool{}
		y := make([]float32, x.Dim)
		for i, code := range clitest.Matrix(m.Codes) {
			if h.Method == model.Nonnegative && slices.Min(code) < 0 {
				t.Fatalf("row %d has a value of %v", i, slices.Min(code))
			}
			l1 += floats.Norm(code, 1)
			index, _ := m.Codes.Row(i)
			for _, k := range index {
				used[k] = true
			}
			m.Dictionary.Center(y, x.Row(i))
			for _, v := range encodetest.Residual(encodetest.Widen(y), encodetest.Widen(m.Dictionary.Atoms), code) {
				loss += c.want(v)
				squares += v * v
			}
		}
		for _, atom := range learned(m) {
			norm := floats.Norm(atom, 2)
			norms2, norms = norms2+norm*norm, norms+norm
		}
		e, n := m.Info.Training.Epochs[len(m.Info.Training.Epochs)-1], float64(x.Len())
		for name, pair := range map[string][2]float64{
			"loss": {e.Loss, loss / n}, "error": {e.Error, squares / n}, "mean |a|": {e.L1, l1 / n}, "atom norm": {e.AtomNorm, norms / float64(h.Atoms)},
			"objective":  {e.Objective, (loss + h.Lambda*l1 + h.Tau*norms2) / n},
			"sparsity":   {e.Sparsity, 1 - float64(m.Codes.Nonzeros())/n/float64(h.Atoms)},
			"dead atoms": {float64(e.UnusedAtoms), float64(h.Atoms - len(used))},
		} {
			// Training sums residuals that were rounded to float32.
			if got, want := pair[0], pair[1]; math.Abs(got-want) > 1e-5*want {
				t.Errorf("loss %s: %s is %v, want %v", h.Loss, name, got, want)
			}
		}
	}
}
