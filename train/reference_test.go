package train_test

import (
	"fmt"
	"math"
	"testing"

	"overcomplete/cpu"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/train"
	"overcomplete/vectors"
)

const (
	gloVe      = "vectors/glove.6B.50d.9163.txt.gz"
	googleNews = "vectors/googlenews.300d.8000.txt.gz"
)

// result holds the metrics of a training.
type result struct {
	err, obj, sparsity, l1, norm float64 // sparsity in per cent
	dead                         float64 // per cent of the atoms
}

// references lists trainings on published vectors by two other programs, with τ = 1e-5, η = 0.05 and
// the same number of epochs:
//
//   - authors: the paper's own C++ program on one core (on GoogleNews at 20 epochs
//     a float32 reimplementation of it). Only error, objective and sparsity are compared.
//   - twoPass: the two-pass algorithm in plain NumPy, dense, float32, with other
//     random numbers.
var references = []struct {
	vectors string
	method  model.Method
	lambda  float64
	atoms   int
	epochs  int
	authors result
	twoPass result
}{
	{gloVe, "A", 1.0, 500, 21, result{err: 0.7620, obj: 3.4279, sparsity: 77.68}, result{0.3826, 2.5506, 81.62, 2.1680, 6.0043, 0}},
	{gloVe, "B", 0.1, 500, 31, result{err: 0.2142, obj: 0.8369, sparsity: 67.17}, result{0.1042, 0.7044, 67.61, 6.0022, 3.3217, 0}},
	{gloVe, "A", 0.1, 500, 26, result{err: 0.4459, obj: 1.2799, sparsity: 45.73}, result{0.2576, 1.0027, 49.00, 7.4504, 2.6558, 0}},
	{gloVe, "A", 0.5, 500, 24, result{err: 0.6567, obj: 2.5611, sparsity: 69.46}, result{0.3000, 1.8105, 75.17, 3.0210, 4.9377, 0}},
	{gloVe, "B", 0.5, 500, 75, result{err: 0.1369, obj: 1.2382, sparsity: 85.65}, result{0.0815, 1.0731, 87.75, 1.9833, 6.5416, 1.40}},
	{gloVe, "B", 1.0, 500, 75, result{err: 0.1828, obj: 1.7523, sparsity: 89.27}, result{0.1432, 1.6069, 90.15, 1.4637, 7.3255, 8.60}},
	{googleNews, "A", 0.5, 3000, 20, result{err: 0.7095, obj: 2.8332, sparsity: 91.57}, result{0.5156, 2.2547, 92.07, 3.4781, 4.3710, 0}},
	{googleNews, "B", 0.5, 3000, 20, result{err: 0.5913, obj: 2.5029, sparsity: 93.10}, result{0.5721, 2.2974, 93.41, 3.4505, 3.9041, 1.93}},
}

// TestReferences trains on published vectors and compares the metrics with both programs. They must be
// no worse than the authors' (objective; error within 5 %, sparsity within 0.5 points; at most 12 %
// dead atoms), and within 3 % of the NumPy program, which differs only in random numbers and rounding.
func TestReferences(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for minutes; skipped by -short")
	}
	cases := references
	if !testonly.Full {
		cases = references[:2] // one of each method
	}
	for _, ref := range cases {
		t.Run(fmt.Sprintf("%.5s/%s/%v", ref.vectors[len("vectors/"):], ref.method, ref.lambda), func(t *testing.T) {
			h := train.Paper()
			h.Method, h.Lambda, h.Atoms, h.Epochs = ref.method, ref.lambda, ref.atoms, ref.epochs
			got := trainReal(t, ref.vectors, h)
			if got.obj > ref.authors.obj || got.err > 1.05*ref.authors.err || got.sparsity < ref.authors.sparsity-0.5 || got.dead > 12 {
				t.Errorf("%+v, the authors' program %+v", got, ref.authors)
			}
			within(t, "error", got.err, ref.twoPass.err, 0.03)
			within(t, "objective", got.obj, ref.twoPass.obj, 0.03)
			within(t, "sparsity", got.sparsity, ref.twoPass.sparsity, 0.03)
			within(t, "mean |a|", got.l1, ref.twoPass.l1, 0.03)
			within(t, "mean atom norm", got.norm, ref.twoPass.norm, 0.03)
		})
	}
}

func within(t *testing.T, metric string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*want) {
		t.Errorf("%s is %.4f, want %.4f ± %.1f %%", metric, got, want, 100*tolerance)
	}
}

func trainReal(t *testing.T, name string, h model.Paper) result {
	t.Helper()
	x, source, err := vectors.Read(t.Context(), []string{testonly.Data(t, name)}, vectors.ReadOptions{})
	testonly.Must(t, err)
	m, err := train.Fit(t.Context(), x, h, cpu.Device{}, train.Options{Source: source})
	testonly.Must(t, err)
	e := m.Info.Training.Epochs[len(m.Info.Training.Epochs)-1]
	got := result{e.Error, e.Objective, 100 * e.Sparsity, e.L1, e.AtomNorm, 100 * float64(e.UnusedAtoms) / float64(h.Atoms)}
	t.Logf("error %.4f, objective %.4f, sparsity %.2f %%, mean |a| %.4f, mean atom norm %.4f, dead atoms %.2f %%",
		got.err, got.obj, got.sparsity, got.l1, got.norm, got.dead)
	return got
}
