package eval

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"overcomplete/testonly"
	"overcomplete/testonly/evaltest"
	"overcomplete/vectors"
)

func newEvaluation(r *Representation) *evaluation { return &evaluation{r, context.Background(), 1} }

// sparsified returns the vectors with a third of their values.
func sparsified(x *vectors.Dense) *Representation {
	s := threshold(x, 0.4, -0.4)
	for i := range s.Rows {
		index, value := s.Row(i)
		for n, j := range index {
			value[n] = x.Row(i)[j]
		}
	}
	return NewSparse("sparse", s)
}

// denseFeatures computes features as the protocol says, without sparse factors.
func denseFeatures(r *Representation, task *classification) [][]float64 {
	var all [][]float64
	for _, t := range task.texts {
		var parts [][]float64
		for _, token := range t.tokens {
			row, ok := r.rows[token]
			if !ok {
				row, ok = r.rows[strings.ToLower(token)]
			}
			v := make([]float64, r.cols)
			if ok {
				index, value := r.row(row)
				for n, j := range index {
					v[j] = float64(value[n])
				}
			} else if !task.concatenate {
				continue
			}
			parts = append(parts, v)
		}
		x := make([]float64, r.cols)
		if task.concatenate {
			x = slices.Concat(parts...)
		} else {
			for _, v := range parts {
				floats.AddScaled(x, 1/float64(len(parts)), v)
			}
		}
		if norm := floats.Norm(x, 2); norm > 0 {
			floats.Scale(1/norm, x)
		}
		all = append(all, x)
	}
	return all
}

// dense returns X as a dense matrix.
func (x *features) dense() [][]float64 {
	var rows [][]float64
	for i := range x.class {
		row := make([]float64, x.cols)
		for j := x.ptr[i]; j < x.ptr[i+1]; j++ {
			x.terms[x.index[j]].addTo(row, x.weight[j])
		}
		rows = append(rows, row)
	}
	return rows
}

func readTask(t *testing.T, name, dir string) *classification {
	t.Helper()
	task, err := ReadTask(name, dir)
	testonly.Must(t, err)
	return task.(*classification)
}

func mustFeatures(t *testing.T, r *Representation, task *classification) *features {
	t.Helper()
	x, err := newFeatures(r, task)
	testonly.Must(t, err)
	return x
}

func TestFeatures(t *testing.T) {
	dir, x := evaltest.Write(t)
	for _, name := range []string{"SST", "NP"} {
		task, r := readTask(t, name, dir), sparsified(x)
		got := mustFeatures(t, r, task).dense()
		for i, want := range denseFeatures(r, task) {
			if !floats.EqualApprox(got[i], want, 1e-14) { // rounding of float64
				t.Fatalf("%s: features of text %d are\n%v, want\n%v", name, i, got[i], want)
			}
		}
	}
}

// denseLoss returns the objective divided by C and the number of rows, by its definition.
func denseLoss(rows [][]float64, labels []int, outputs int, c float64, p []float64) float64 {
	cols := len(rows[0])
	w, intercepts := p[:cols*outputs], p[cols*outputs:]
	var loss float64
	for i, x := range rows {
		scores := make([]float64, outputs)
		for k := range scores {
			scores[k] = intercepts[k]
			for j := range x {
				scores[k] += x[j] * w[j*outputs+k]
			}
		}
		if outputs == 1 {
			scores = []float64{0, scores[0]}
		}
		loss += floats.LogSumExp(scores) - scores[labels[i]]
	}
	return (floats.Dot(w, w)/2 + c*loss) / (c * float64(len(rows)))
}

// uncentred returns parameters whose intercepts apply to uncentred rows.
func (r *regression) uncentred(p parameters) []float64 {
	q := append([]float64{}, p...)
	for k := range r.outputs {
		for j, mean := range r.mean {
			q[r.weights()+k] -= mean * p[j*r.outputs+k]
		}
	}
	return q
}

func TestRegressionAgainstItsDefinition(t *testing.T) {
	dir, x := evaltest.Write(t)
	for _, name := range []string{"SST", "TREC", "NP"} {
		task := readTask(t, name, dir)
		f := mustFeatures(t, sparsified(x), task)
		rng := rand.New(rand.NewPCG(1, 2))
		train := rng.Perm(len(task.texts))[:100]
		r := newRegression(f, train)
		all := f.dense()
		var rows [][]float64
		var labels []int
		for _, i := range train {
			rows, labels = append(rows, all[i]), append(labels, f.class[i])
		}
		loss := func(c float64) func([]float64) float64 {
			return func(p []float64) float64 { return denseLoss(rows, labels, r.outputs, c, p) }
		}

		// The gradient and products with the Hessian equal finite differences of the loss.
		p := make(parameters, r.outputs*(r.cols+1))
		v := make(parameters, len(p))
		for j := range p {
			p[j], v[j] = rng.NormFloat64(), rng.NormFloat64()
		}
		const noPenalty = 1e30
		central := &fd.Settings{Formula: fd.Central}
		linearised := func(p parameters) *fit {
			f := &fit{regression: r, p: p, scores: make([]float64, len(train)*r.outputs)}
			r.scoreRows(f.scores, p)
			f.linearise()
			return f
		}
		f0 := linearised(p)
		// Central differences are off by the square of their step (gonum's is 6e-6) times a third
		// derivative, and by the loss's rounding, 1e-14, divided by that step.
		want := fd.Gradient(nil, func(p []float64) float64 { return loss(noPenalty)(r.uncentred(p)) }, p, central)
		if !floats.EqualApprox(f0.gradient, want, 1e-8) {
			t.Errorf("%s: gradient is off by %v", name, floats.Distance(f0.gradient, want, math.Inf(1)))
		}
		curved, product := make([]float64, len(f0.scores)), make([]float64, len(p))
		r.scoreRows(curved, v)
		f0.multiplyCurvature(curved)
		r.scoreGradient(product, curved)
		const h = 1e-5
		floats.AddScaledTo(want, p, h, v)
		after := linearised(want).gradient
		want = make([]float64, len(p))
		floats.AddScaledTo(want, p, -h, v)
		floats.SubTo(want, after, linearised(want).gradient)
		floats.Scale(1/(2*h), want)
		if !floats.EqualApprox(product, want, 1e-8) {
			t.Errorf("%s: product with the Hessian is off by %v", name, floats.Distance(product, want, math.Inf(1)))
		}

		// The objective is convex, so that it is smallest where its gradient is zero.
		var start parameters
		for _, c := range []float64{0.1, 10, 1000, 1e6} {
			p, err := r.fit(t.Context(), c, start, 1e-6)
			if err != nil {
				t.Fatalf("%s, C = %v: %v", name, c, err)
			}
			q := r.uncentred(p)
			g := fd.Gradient(nil, loss(c), q, central)
			zero := floats.Norm(fd.Gradient(nil, loss(c), make([]float64, len(q)), central), 2)
			if norm := floats.Norm(g, 2); norm > 1e-6*zero {
				t.Errorf("%s, C = %v: gradient has norm %v, %v at zero", name, c, norm, zero)
			}
			start = p
		}
	}
}

// regressScikitLearn fits the training rows of each test fold to the optimum, for each C, and counts the test rows that
// are classified correctly. Then it chooses C on the tune folds. If there are more columns than rows, it expresses the
// rows in an orthonormal basis of their span, which doesn't change the optimum.
const regressScikitLearn = `
import base64, json, sys, warnings
import numpy as np
from sklearn.linear_model import LogisticRegression
warnings.simplefilter("error")

def right(task, x, y, fold, cs):
    train, test = x[fold["train"]], x[fold["test"]]
    mean = train.mean(axis=0)
    train, test = train - mean, test - mean
    if train.shape[1] > train.shape[0]:
        u, s, v = np.linalg.svd(train, full_matrices=False)
        train, test = u * s, test @ v.T
    counts = []
    for c in cs:
        model = LogisticRegression(C=c, solver="newton-cholesky", tol=1e-8, max_iter=1000).fit(train, y[fold["train"]])
        counts.append(int((model.predict(test) == y[fold["test"]]).sum()))
    return np.array(counts)

out = []
given = json.load(sys.stdin)
for task in given["tasks"]:
    y = np.array(task["y"])
    x = np.frombuffer(base64.b64decode(task["x"])).reshape(len(y), -1)
    tuned = sum(right(task, x, y, fold, given["grid"]) for fold in task["tune"])
    out.append({
        "right": sum(right(task, x, y, fold, given["c"]) for fold in task["test"]).tolist(),
        "tuned": tuned.tolist(),
        "best": given["grid"][int(tuned.argmax())],
    })
print(json.dumps(out))
`

// If all texts have the same vector and classes are balanced, the gradient is rounding error. The
// objective may have no curvature in its direction.
func TestNothingToLearn(t *testing.T) {
	for _, value := range []float32{0, 0.5, 1} {
		x := NewDense("x", &vectors.Dense{IDs: []string{"a"}, Dim: 1, Data: []float32{value}})
		for n := 3; n <= 60; n += 3 {
			task := &classification{classes: map[string]int{"0": 0, "1": 1, "2": 2}}
			for i := range n {
				task.texts = append(task.texts, text{fmt.Sprint(i % 3), []string{"a"}})
			}
			r := newRegression(mustFeatures(t, x, task), span(0, n))
			for _, c := range grid {
				p, err := r.fit(t.Context(), c, nil, fine)
				if err != nil || !(floats.Norm(p, math.Inf(1)) < 1e-6) {
					t.Errorf("%d texts of value %v, C = %g: %v, %v", n, value, c, p, err)
				}
			}
		}
	}
}

// compareWithScikitLearn compares the accuracies of tasks at fixed C, and the chosen C, with scikit-learn on the same
// features. Both stop near the same optimum, but not at it. Up to 0.2 % of the texts may therefore get another label,
// because they are near the decision boundary.
func compareWithScikitLearn(t *testing.T, r *Representation, dir string, names []string, cs []float64) {
	type givenFold struct {
		Train []int `json:"train"`
		Test  []int `json:"test"`
	}
	type givenTask struct {
		X    []byte      `json:"x"` // float64
		Y    []int       `json:"y"`
		Tune []givenFold `json:"tune"`
		Test []givenFold `json:"test"`
	}
	var given []givenTask
	var ours [][][]bool // by task, C and text: whether the text is classified correctly
	var best []float64
	e := newEvaluation(r)
	for _, name := range names {
		task := readTask(t, name, dir)
		var g givenTask
		for _, row := range denseFeatures(r, task) {
			for _, v := range row {
				g.X = binary.LittleEndian.AppendUint64(g.X, math.Float64bits(v))
			}
		}
		for _, text := range task.texts {
			g.Y = append(g.Y, task.classes[text.label])
		}
		s := task.split(e.seed)
		for _, f := range s.tune {
			g.Tune = append(g.Tune, givenFold{f.train, f.test})
		}
		for _, f := range s.test {
			g.Test = append(g.Test, givenFold{f.train, f.test})
		}
		given, ours = append(given, g), append(ours, nil)
		x := mustFeatures(t, r, task)
		for _, c := range cs {
			right, err := test(e, x, s.test, c)
			if err != nil {
				t.Fatalf("%s, C = %g: %v", name, c, err)
			}
			ours[len(ours)-1] = append(ours[len(ours)-1], right)
		}
		c, err := tune(e, x, s.tune)
		testonly.Must(t, err)
		best = append(best, c)
	}
	type result struct {
		Right, Tuned []int
		Best         float64
	}
	for i, want := range testonly.Python[[]result](t, regressScikitLearn, map[string]any{"tasks": given, "c": cs, "grid": grid}) {
		for n, c := range cs {
			got, total := count(ours[i][n]), len(ours[i][n])
			t.Logf("%s, C = %g: %d of %d right, %d of scikit-learn", names[i], c, got, total, want.Right[n])
			if math.Abs(float64(got-want.Right[n])) > 0.002*float64(total) {
				t.Errorf("%s, C = %g: %d of %d right, %d of scikit-learn", names[i], c, got, total, want.Right[n])
			}
		}
		t.Logf("%s: C = %g is chosen, %g by scikit-learn from %d", names[i], best[i], want.Best, want.Tuned)
		if best[i] != want.Best {
			t.Errorf("%s: C = %g is chosen, %g by scikit-learn from %d", names[i], best[i], want.Best, want.Tuned)
		}
	}
}

// overcompleteCodes returns sparse vectors of k columns without training. The values of a word are the dot products of
// its direction and k random vectors that exceed 1.75 in absolute value, about 8 %.
func overcompleteCodes(x *vectors.Dense, k int) *Representation {
	rng := rand.New(rand.NewPCG(3, 4))
	atoms := make([]float64, k*x.Dim)
	for i := range atoms {
		atoms[i] = rng.NormFloat64()
	}
	s := &vectors.Sparse{IDs: x.IDs, CSR: vectors.CSR{Cols: k, Ptr: []int64{0}}}
	for i := range x.Len() {
		row := make([]float64, x.Dim)
		for j, v := range x.Row(i) {
			row[j] = float64(v)
		}
		norm := floats.Norm(row, 2)
		var index []int32
		var value []float32
		for j := range k {
			if product := floats.Dot(row, atoms[j*x.Dim:][:x.Dim]); math.Abs(product) > 1.75*norm {
				index, value = append(index, int32(j)), append(value, float32(product))
			}
		}
		s.AppendRow(index, value)
	}
	return NewSparse("codes", s)
}

func TestAgainstScikitLearn(t *testing.T) {
	dir, x := evaltest.Write(t)
	compareWithScikitLearn(t, sparsified(x), dir, []string{"SST", "TREC", "NP"}, []float64{0.1, 10, 1000})
	if !testonly.Full {
		return
	}
	compareWithScikitLearn(t, overcompleteCodes(x, 1000), dir, []string{"SST"}, []float64{1e-3, 1, 1e6}) // more columns than rows
}
