package eval

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"overcomplete/eval/evaltest"
	"overcomplete/internal/realdata"
	"overcomplete/vectors"
)

func newEvaluation(r *Representation, o Options) *evaluation {
	return &evaluation{r, o, context.Background(), make(chan struct{}, 1)}
}

// sparsified returns the vectors with a third of their values.
func sparsified(x *vectors.Dense) *Representation {
	return NewSparse("sparse", x.Words, transform(x, func(v float32) float32 {
		if math.Abs(float64(v)) < 0.4 {
			return 0
		}
		return v
	}))
}

// denseFeatures computes features as the protocol says, without any product of
// matrices.
func denseFeatures(e *evaluation, texts []text, l layout) [][]float64 {
	mean := make([]float64, e.cols)
	for i := range e.rows {
		index, value := e.row(i)
		for n, j := range index {
			mean[j] += float64(value[n]) / float64(e.rows)
		}
	}
	var all [][]float64
	for _, t := range texts {
		var parts [][]float64
		for _, token := range t.tokens {
			row, ok := e.word[token]
			if !ok {
				row, ok = e.word[strings.ToLower(token)]
			}
			v := make([]float64, e.cols)
			switch {
			case ok:
				index, value := e.row(row)
				for n, j := range index {
					v[j] = float64(value[n])
				}
			case e.OOV == Mean:
				copy(v, mean)
			case e.OOV == Skip && l == averaged:
				continue
			}
			parts = append(parts, v)
		}
		var x []float64
		if l == appended {
			for _, v := range parts {
				x = append(x, v...)
			}
		} else {
			x = make([]float64, e.cols)
			for _, v := range parts {
				floats.AddScaled(x, 1/float64(len(parts)), v)
			}
		}
		if norm := floats.Norm(x, 2); !e.Raw && norm > 0 {
			floats.Scale(1/norm, x)
		}
		all = append(all, x)
	}
	return all
}

// rows returns X, multiplied out.
func (x *features) rows() [][]float64 {
	var rows [][]float64
	for i := range x.label {
		row := make([]float64, x.cols)
		for j := x.ptr[i]; j < x.ptr[i+1]; j++ {
			x.terms[x.of[j]].addTo(row, x.weight[j])
		}
		rows = append(rows, row)
	}
	return rows
}

func readTask(t *testing.T, name, dir string) *classification {
	t.Helper()
	task, err := ReadTask(name, dir)
	if err != nil {
		t.Fatal(err)
	}
	return task.(*classification)
}

func TestFeatures(t *testing.T) {
	dir, x := evaltest.Write(t)
	for _, name := range []string{"SST", "NP"} {
		task := readTask(t, name, dir)
		for _, oov := range []OOV{Skip, Zero, Mean} {
			for _, raw := range []bool{false, true} {
				e := newEvaluation(sparsified(x), Options{OOV: oov, Case: Fallback, Raw: raw})
				got := newFeatures(e, task.texts, len(task.labels), task.layout).rows()
				for i, want := range denseFeatures(e, task.texts, task.layout) {
					// The mean is kept in float32.
					if !floats.EqualApprox(got[i], want, 1e-7) {
						t.Fatalf("%s, %s, raw %v: features of text %d are\n%v, want\n%v", name, oov, raw, i, got[i], want)
					}
				}
			}
		}
	}
}

// denseLoss is the objective divided by C and the number of rows, as it is written.
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

// uncentred returns parameters with the intercepts of rows as they are.
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
		f := newFeatures(newEvaluation(sparsified(x), Options{OOV: Skip, Case: Fallback}), task.texts, len(task.labels), task.layout)
		rng := rand.New(rand.NewPCG(1, 2))
		train := rng.Perm(len(task.texts))[:100]
		r := newRegression(f, train)
		all := f.rows()
		var rows [][]float64
		var labels []int
		for _, i := range train {
			rows, labels = append(rows, all[i]), append(labels, f.label[i])
		}
		loss := func(c float64) func([]float64) float64 {
			return func(p []float64) float64 { return denseLoss(rows, labels, r.outputs, c, p) }
		}

		p := make(parameters, r.outputs*(r.cols+1))
		for j := range p {
			p[j] = rng.NormFloat64()
		}
		const noPenalty = 1e30
		if got, want := r.loss(p), loss(noPenalty)(r.uncentred(p)); math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s: loss %v, want %v", name, got, want)
		}
		grad := make([]float64, len(p))
		r.gradient(grad, p)
		want := fd.Gradient(nil, func(p []float64) float64 { return loss(noPenalty)(r.uncentred(p)) }, p, &fd.Settings{Formula: fd.Central})
		if !floats.EqualApprox(grad, want, 1e-8) {
			t.Errorf("%s: gradient is off by %v", name, floats.Distance(grad, want, math.Inf(1)))
		}

		// The objective is convex: where its gradient is zero is the optimum.
		var start parameters
		for _, c := range []float64{0.1, 10, 1000} {
			p, err := r.fit(context.Background(), c, start, finalTolerance)
			if err != nil {
				t.Fatal(err)
			}
			q := r.uncentred(p)
			g := fd.Gradient(nil, loss(c), q, &fd.Settings{Formula: fd.Central})
			zero := floats.Norm(fd.Gradient(nil, loss(c), make([]float64, len(q)), &fd.Settings{Formula: fd.Central}), 2)
			if norm := floats.Norm(g, 2); norm > 1e-4*zero {
				t.Errorf("%s, C = %v: gradient has norm %v, %v at zero", name, c, norm, zero)
			}
			start = p
		}
	}
}

// regressScikitLearn fits, for each C, on the training rows of each fold, to the
// optimum, and counts the other rows that are right.
const regressScikitLearn = `
import json, sys
import numpy as np
from sklearn.linear_model import LogisticRegression
out = []
given = json.load(sys.stdin)
for task in given["tasks"]:
    x, y = np.array(task["x"]), np.array(task["y"])
    out.append([])
    for c in given["c"]:
        right = 0
        for fold in task["folds"]:
            model = LogisticRegression(C=c, solver="newton-cholesky", tol=1e-8).fit(x[fold["train"]], y[fold["train"]])
            right += int((model.predict(x[fold["test"]]) == y[fold["test"]]).sum())
        out[-1].append(right)
print(json.dumps(out))
`

// compareWithScikitLearn holds the accuracies of all tasks at fixed C against those
// of scikit-learn on the same features: within 0.2 points.
func compareWithScikitLearn(t *testing.T, r *Representation, dir string, cs []float64) {
	type givenFold struct {
		Train []int `json:"train"`
		Test  []int `json:"test"`
	}
	type givenTask struct {
		X     [][]float64 `json:"x"`
		Y     []int       `json:"y"`
		Folds []givenFold `json:"folds"`
	}
	var given []givenTask
	var ours [][][]bool // of each task and C
	names := TaskNames()[2:]
	e := newEvaluation(r, Options{OOV: Skip, Case: Fallback, Seed: 1})
	for _, name := range names {
		task := readTask(t, name, dir)
		g := givenTask{X: denseFeatures(e, task.texts, task.layout)}
		for _, text := range task.texts {
			g.Y = append(g.Y, text.label)
		}
		folds := task.split(e).test
		for _, f := range folds {
			g.Folds = append(g.Folds, givenFold{f.train, f.test})
		}
		given, ours = append(given, g), append(ours, nil)
		x := newFeatures(e, task.texts, len(task.labels), task.layout)
		for _, c := range cs {
			right, err := test(e, x, folds, []float64{c})
			if err != nil {
				t.Fatal(err)
			}
			ours[len(ours)-1] = append(ours[len(ours)-1], right)
		}
	}
	for i, want := range pythonOutput[[][]int](t, regressScikitLearn, map[string]any{"tasks": given, "c": cs}) {
		for n, c := range cs {
			got, total := count(ours[i][n]), len(ours[i][n])
			t.Logf("%s, C = %g: %d of %d right, %d of scikit-learn", names[i], c, got, total, want[n])
			if math.Abs(float64(got-want[n])) > 0.002*float64(total) {
				t.Errorf("%s, C = %g: %d of %d right, %d of scikit-learn", names[i], c, got, total, want[n])
			}
		}
	}
}

func TestAgainstScikitLearn(t *testing.T) {
	dir, x := evaltest.Write(t)
	compareWithScikitLearn(t, sparsified(x), dir, []float64{0.1, 10, 1000})
}

func TestRealDataAgainstScikitLearn(t *testing.T) {
	path := realdata.Path(t, "vectors/glove.6B.50d.9163.txt.gz")
	x, _, err := vectors.Read(context.Background(), path, vectors.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	compareWithScikitLearn(t, NewDense("glove", x), realdata.Path(t, "eval"), []float64{1, 100, 10000})
}
