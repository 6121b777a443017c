//go:build full

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/npy"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// heldOut trains the model "model" by a command, on nine tenths of the first GoogleNews vectors. It writes these to
// train.txt and the others to test.txt, and returns both.
func heldOut(t *testing.T, words int, command, flags string) (dir clitest.Dir, trained, held *vectors.Dense) {
	t.Helper()
	path := testonly.Data(t, "vectors/googlenews.300d.8000.txt.gz")
	dir = clitest.New(t)
	all, _, err := vectors.Read(t.Context(), []string{path}, vectors.ReadOptions{MaxRows: words})
	testonly.Must(t, err)
	trained, held = &vectors.Dense{Dim: all.Dim}, &vectors.Dense{Dim: all.Dim}
	out := rand.New(rand.NewPCG(1, 1)).Perm(all.Len())[:all.Len()/10]
	slices.Sort(out)
	for i, word := range all.IDs {
		d := trained
		if _, found := slices.BinarySearch(out, i); found {
			d = held
		}
		d.IDs, d.Data = append(d.IDs, word), append(d.Data, all.Row(i)...)
	}
	dir.Write(t, "train.txt", clitest.Text(trained))
	dir.Write(t, "test.txt", clitest.Text(held))
	dir.MustRun(t, command+" train.txt -o model --device cpu "+flags)
	return dir, trained, held
}

// byScikitLearn solves the lasso with scikit-learn, whose objective has a half:
// ½‖y − aD‖² + α‖a‖₁ with α = λ/2.
const byScikitLearn = `
import sys, warnings
import numpy as np
from sklearn.decomposition import sparse_encode

warnings.simplefilter("error")  # of rows that do not converge
y, d = np.load("y.npy").astype(np.float64), np.load("d.npy").astype(np.float64)
penalty = float(sys.argv[1])
a = sparse_encode(y, d, algorithm="lasso_cd", alpha=penalty / 2, max_iter=1000000, positive=sys.argv[2] == "true")
np.save("objective.npy", (((y - a @ d) ** 2).sum(axis=1) + penalty * abs(a).sum(axis=1)).astype(np.float32))
`

// The objective of the exact lasso on held-out words is scikit-learn's.
func TestExactRealData(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	const rows, penalty = 50, 0.5
	dir, _, held := heldOut(t, 2000, "paper train", "--center --epochs 3 -k 1200 --quiet")
	m := dir.Model(t, "model")
	dim := held.Dim
	y := make([]float32, rows*dim)
	m.Dictionary.Center(y, held.Data[:rows*dim])
	save := func(name string, shape []int, data []float32) {
		var b bytes.Buffer
		if err := npy.Write(&b, shape, data); err != nil {
			t.Fatal(err)
		}
		dir.Write(t, name, b.Bytes())
	}
	save("y.npy", []int{rows, dim}, y)
	save("d.npy", []int{m.Info.Training.Recipe.Base().Atoms, dim}, m.Dictionary.Atoms)
	for _, nonnegative := range []bool{false, true} {
		cmd := exec.Command(interpreter, "-c", byScikitLearn, fmt.Sprint(penalty), fmt.Sprint(nonnegative))
		cmd.Dir = string(dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		f, err := os.Open(dir.Path("objective.npy"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		a, err := npy.Open(f, -1)
		if err != nil {
			t.Fatal(err)
		}
		want, err := npy.Read[float32](a, a.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := cpu.Device{}.Encoder(&m.Dictionary, encode.Options{Lambda: penalty, Nonnegative: nonnegative, Gap: 1e-4})
		if err != nil {
			t.Fatal(err)
		}
		codes, err := encode.Rows(t.Context(), e, held.Data[:rows*dim])
		if err != nil {
			t.Fatal(err)
		}
		var ours, theirs, most float64
		for i := range rows {
			objective := codes.Loss[i]
			_, value := codes.Row(i)
			for _, v := range value {
				objective += penalty * math.Abs(float64(v))
			}
			ours, theirs = ours+objective/rows, theirs+float64(want[i])/rows
			most = max(most, math.Abs(objective/float64(want[i])-1))
		}
		t.Logf("nonnegative %v: objective %.6f, scikit-learn's %.6f; words differ by up to %.1e; largest gap %.1e",
			nonnegative, ours, theirs, most, slices.Max(codes.Gap))
		// The objective may exceed the minimum by the requested gap.
		if most > 1e-4 || slices.Max(codes.Gap) > 1e-4 {
			t.Errorf("nonnegative %v: objectives differ by up to %v", nonnegative, most)
		}
	}
}

// The codes of held-out words are about as good as the codes of training words. At a sparsity of 92 %, their errors
// were 0.30 and 0.13, of a mean squared norm of 8.7. The error of the paper's recipe was 0.51.
func TestHeldOutRealData(t *testing.T) {
	t.Parallel()
	dir, _, _ := heldOut(t, 8000, "train", "--sparsity 0.92 --quiet")
	dir.MustRun(t, "encode model test.txt -o test --quiet")
	for name, most := range map[string]float64{"model": 0.2, "test": 0.4} {
		if e := dir.Model(t, name).Info.Encoding; e.Error > most || e.Sparsity < 0.915 {
			t.Errorf("%s: error %v with %v %% zeros, want at most %v with 92", name, e.Error, 100*e.Sparsity, most)
		}
	}
}

// Method B's dimensions are more coherent than random directions, as judged by vectors learned from other text.
func TestIntrusionAutoRealData(t *testing.T) {
	t.Parallel()
	x, glove := testonly.Data(t, "vectors/googlenews.300d.8000.txt.gz"), testonly.Data(t, "vectors/glove.6B.50d.9163.txt.gz")
	dir := clitest.New(t)
	dir.MustRun(t, "paper train "+x+" -o model --method B --max-rows 3000 -k 600 --quiet")
	stdout, _ := dir.MustRun(t, "intrusion auto model --input "+x+" --reference "+glove+" --json")
	var r struct {
		Sets []struct {
			Words        int
			Any, Matched struct{ Low, High float64 }
		}
	}
	testonly.Must(t, json.Unmarshal([]byte(stdout), &r))
	model, random := r.Sets[0], r.Sets[1]
	if model.Words < 2000 || random.Any.Low <= .2 || model.Any.Low <= random.Any.High || model.Matched.Low <= random.Matched.High {
		t.Errorf("%+v", r)
	}
}
