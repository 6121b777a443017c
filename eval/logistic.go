package eval

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
)

// A regression is logistic regression on some rows of X:
//
//	minimise ½‖w‖² + C·Σ loss        over w and intercepts, which are not penalised
//
// With two classes the loss is log(1 + exp(∓(xw + b))), with more −log softmax of
// xW + b, which has a w and an intercept for each class. scikit-learn's
// LogisticRegression(C=C) minimises the same.
//
// L-BFGS minimises it in other variables, which it needs far fewer steps in: about
// the mean row of X, which the intercept makes up for, and in units u of each column
// in which the curvature is about 1. The objective is divided by C and the number
// of rows n.
type regression struct {
	*features
	rows     []int
	active   []int32 // terms of the rows
	outputs  int     // vectors w: 1 for two classes
	mean     []float64
	variance []float64

	base     []float64 // of each output: its score of a row of zeros
	z        []float64 // of each term and output: ⟨term, w⟩, or the sum of its rows' residuals
	residual []float64 // of each row and output: the derivative of the loss by its score
	at       []float64 // where residual is of
}

// What ends a fit. A tolerance is of the largest partial derivative by u. With the
// looser one, for choosing C, as many texts of the paper's tasks are right as at the
// optimum, to half a per cent and up to C = 1e4; larger ones take it many steps
// more.
const (
	searchTolerance = 1e-4
	finalTolerance  = 1e-6
	mostSteps       = 1000
	memory          = 30 // steps that L-BFGS remembers; its own work is small here
)

func newRegression(x *features, rows []int) *regression {
	r := &regression{features: x, rows: rows, outputs: x.classes}
	if x.classes == 2 {
		r.outputs = 1
	}
	seen := make([]bool, len(x.terms))
	r.mean, r.variance = make([]float64, x.cols), make([]float64, x.cols)
	row := make([]float64, x.cols)
	for _, i := range rows {
		clear(row)
		for j := x.ptr[i]; j < x.ptr[i+1]; j++ {
			t := x.of[j]
			x.terms[t].addTo(row, x.weight[j])
			if !seen[t] {
				seen[t] = true
				r.active = append(r.active, t)
			}
		}
		for j, v := range row {
			r.mean[j] += v
			r.variance[j] += v * v
		}
	}
	n := float64(len(rows))
	for j := range r.mean {
		r.mean[j] /= n
		r.variance[j] = max(0, r.variance[j]/n-r.mean[j]*r.mean[j])
	}
	r.base = make([]float64, r.outputs)
	r.z = make([]float64, len(x.terms)*r.outputs)
	r.residual = make([]float64, len(rows)*r.outputs)
	return r
}

// parameters are the weights W of each column for all outputs, column by column,
// then the scores of the mean row.
type parameters []float64

// weights returns how many weights there are, which intercepts follow.
func (r *regression) weights() int { return r.outputs * r.cols }

// fit returns the parameters that minimise the objective for C = c, searched for
// from start, or from zero if it is nil.
func (r *regression) fit(ctx context.Context, c float64, start parameters, tolerance float64) (parameters, error) {
	n := float64(len(r.rows))
	penalty := 1 / (c * n)
	unit := make([]float64, r.outputs*(r.cols+1)) // parameter = unit·u
	u := make([]float64, len(unit))
	for j := range unit {
		// A probability's variance is at most ¼.
		curvature := 0.25
		if j < r.weights() {
			curvature = r.variance[j/r.outputs]/4 + penalty
		}
		unit[j] = 1 / math.Sqrt(curvature)
		if start != nil {
			u[j] = start[j] / unit[j]
		}
	}
	p := make(parameters, len(unit))
	problem := optimize.Problem{
		Func: func(u []float64) float64 {
			floats.MulTo(p, unit, u)
			w := p[:r.weights()]
			return r.loss(p) + penalty/2*floats.Dot(w, w)
		},
		Grad: func(grad, u []float64) {
			floats.MulTo(p, unit, u)
			r.gradient(grad, p)
			floats.AddScaled(grad[:r.weights()], penalty, p[:r.weights()])
			floats.Mul(grad, unit)
		},
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, ctx.Err() },
	}
	result, err := optimize.Minimize(problem, u, &optimize.Settings{
		GradientThreshold: tolerance,
		Converger:         optimize.NeverTerminate{},
		MajorIterations:   mostSteps,
	}, &optimize.LBFGS{Linesearcher: &optimize.MoreThuente{}, Store: memory})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, optimize.ErrLinesearcherFailure):
		// Rounding leaves no lower point to be found: this is the optimum.
	case err != nil:
		return nil, fmt.Errorf("logistic regression with C = %g: %w", c, err)
	}
	return floats.MulTo(p, unit, result.X), nil
}

// project prepares the scores of rows that have only the given terms.
func (r *regression) project(p parameters, terms []int32) {
	copy(r.base, p[r.weights():])
	for j, mean := range r.mean {
		for k, w := range p[j*r.outputs:][:r.outputs] {
			r.base[k] -= mean * w
		}
	}
	for _, t := range terms {
		r.terms[t].times(p[:r.weights()], r.z[int(t)*r.outputs:][:r.outputs])
	}
}

// decide sets scores to those of row i, after project.
func (r *regression) decide(i int, scores []float64) {
	copy(scores, r.base)
	for j := r.ptr[i]; j < r.ptr[i+1]; j++ {
		for k, z := range r.z[int(r.of[j])*r.outputs:][:r.outputs] {
			scores[k] += r.weight[j] * z
		}
	}
}

// loss returns the mean loss of the rows and computes the residuals.
func (r *regression) loss(p parameters) float64 {
	r.project(p, r.active)
	var sum float64
	for n, i := range r.rows {
		scores := r.residual[n*r.outputs:][:r.outputs]
		r.decide(i, scores)
		if r.outputs == 1 {
			sum += binaryLoss(scores, r.label[i])
		} else {
			sum += softmaxLoss(scores, r.label[i])
		}
	}
	r.at = append(r.at[:0], p...)
	return sum / float64(len(r.rows))
}

// binaryLoss returns log(1 + exp(−s)) for class 1 and log(1 + exp(s)) for 0, and
// replaces the score s by the derivative.
func binaryLoss(score []float64, label int) float64 {
	s := score[0]
	e := math.Exp(-math.Abs(s))
	probability := 1 / (1 + e) // of class 1
	if s < 0 {
		probability = e / (1 + e)
	}
	score[0] = probability - float64(label)
	if label == 1 {
		s = -s
	}
	return math.Log1p(e) + max(0, s)
}

// softmaxLoss returns −log softmax(scores)[label] and replaces the scores by the
// derivatives.
func softmaxLoss(scores []float64, label int) float64 {
	top := floats.Max(scores)
	loss := top - scores[label]
	var sum float64
	for k, s := range scores {
		scores[k] = math.Exp(s - top)
		sum += scores[k]
	}
	floats.Scale(1/sum, scores)
	scores[label]--
	return loss + math.Log(sum)
}

// gradient sets grad to the gradient of the mean loss at p.
func (r *regression) gradient(grad []float64, p parameters) {
	if !floats.Equal(p, r.at) {
		r.loss(p)
	}
	for _, t := range r.active {
		clear(r.z[int(t)*r.outputs:][:r.outputs])
	}
	clear(grad)
	intercepts := grad[r.weights():]
	for n, i := range r.rows {
		residual := r.residual[n*r.outputs:][:r.outputs]
		floats.Add(intercepts, residual)
		for j := r.ptr[i]; j < r.ptr[i+1]; j++ {
			z := r.z[int(r.of[j])*r.outputs:][:r.outputs]
			for k, residual := range residual {
				z[k] += r.weight[j] * residual
			}
		}
	}
	for _, t := range r.active {
		r.terms[t].addOuter(grad[:r.weights()], r.z[int(t)*r.outputs:][:r.outputs])
	}
	for j, mean := range r.mean {
		floats.AddScaled(grad[j*r.outputs:][:r.outputs], -mean, intercepts)
	}
	floats.Scale(1/float64(len(r.rows)), grad)
}

// correct reports for each of the rows whether p gives it its class.
func (r *regression) correct(p parameters, rows []int) []bool {
	all := make([]int32, len(r.terms))
	for t := range all {
		all[t] = int32(t)
	}
	r.project(p, all)
	scores := make([]float64, r.outputs)
	right := make([]bool, len(rows))
	for n, i := range rows {
		r.decide(i, scores)
		class := floats.MaxIdx(scores)
		if r.outputs == 1 && scores[0] > 0 {
			class = 1
		}
		right[n] = class == r.label[i]
	}
	return right
}
