package eval

import (
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
