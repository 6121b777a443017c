//go:build full

package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

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

// Held-out words get codes about as good as training words: 0.13 and 0.30 of a mean
// squared norm of 8.7 were measured at 92 % zeros, where the paper's recipe has 0.51.
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
