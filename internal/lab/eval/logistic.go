package eval

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// A regression is a logistic regression on some rows of X:
//
//	minimise ½‖w‖² + C·Σ loss        over w and unpenalised intercepts
//
// The loss of two classes is log(1 + exp(∓(xw + b))), that of more is −log softmax(xW + b), with a w
// and an intercept per class. scikit-learn's LogisticRegression(C=C) has the same objective.
//
// The minimiser is a truncated Newton method, as in LIBLINEAR, since first-order methods and L-BFGS
// take thousands of steps if C is large. Conjugate gradients solve for the Newton step with products
// of the Hessian and vectors, for which the factors of X are enough; an exact line search follows.
// Rows are centred, which the intercepts compensate, and the objective is divided by C and the
// number of rows n.
type regression struct {
	*features
	rows     []int
	active   []int32 // terms of the rows
	outputs  int     // vectors w: 1 for two classes
	mean     []float64
	axes     *mat.Dense // columns are the principal axes of the rows; nil for the columns of X
	variance []float64  // on each axis

	base []float64 // of each output: the score of a zero row
	z    []float64 // of each term and output: ⟨term, w⟩, or the sum of the residuals of its rows
}

// The precision of a fit is the root mean square change of the rows' scores in its last step, with
// the weights p(1−p) of the loss.
const (
	coarse = 0.2
	fine   = 1e-3
)

// maxProducts limits the products with the Hessian in a fit. No fit takes a thousand in the paper's
// tasks with GoogleNews A.
const maxProducts = 20000

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
			t := x.index[j]
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
	if x.cols <= maxAxes {
		r.findAxes()
	}
	r.base = make([]float64, r.outputs)
	r.z = make([]float64, len(x.terms)*r.outputs)
	return r
}

// maxAxes is the largest number of columns that are expressed in principal axes. Dense vectors need
// many more iterations without them; the time for the axes grows with the cube of the columns.
const maxAxes = 300

// findAxes sets axes and variance to the eigenvectors and eigenvalues of the covariance of rows.
func (r *regression) findAxes() {
	centred := mat.NewDense(len(r.rows), r.cols, nil)
	for n, i := range r.rows {
		row := centred.RawRowView(n)
		for j := r.ptr[i]; j < r.ptr[i+1]; j++ {
			r.terms[r.index[j]].addTo(row, r.weight[j])
		}
		floats.Sub(row, r.mean)
	}
	var covariance mat.SymDense
	covariance.SymOuterK(1/float64(len(r.rows)), centred.T())
	var eigen mat.EigenSym
	if !eigen.Factorize(&covariance, true) {
		return
	}
	r.axes = new(mat.Dense)
	eigen.VectorsTo(r.axes)
	for j, v := range eigen.Values(nil) {
		r.variance[j] = max(0, v)
	}
}

// parameters are the weights W, for each column those of all outputs, then the scores of the mean
// row.
type parameters []float64

// weights returns the number of weights, which the intercepts follow.
func (r *regression) weights() int { return r.outputs * r.cols }

// fit minimises the objective for C = c from start, or from zero if that is nil.
func (r *regression) fit(ctx context.Context, c float64, start parameters, precision float64) (parameters, error) {
	p := make(parameters, r.outputs*(r.cols+1))
	copy(p, start)
	f := &fit{regression: r, penalty: 1 / (c * float64(len(r.rows))), p: p}
	f.scores = make([]float64, len(r.rows)*r.outputs)
	r.score(f.scores, p)
	for f.products < maxProducts {
		f.linearise()
		before := f.products
		change, err := f.newtonStep(ctx, math.Sqrt(precision))
		if err != nil {
			return nil, err
		}
		f.searchLine(change)
		// A step without a product is rounding.
		if change <= precision*precision*floats.Sum(f.spread)/float64(r.outputs) || f.products == before {
			return p, nil
		}
	}
	return nil, fmt.Errorf("logistic regression with C = %g: no convergence in %d iterations", c, maxProducts)
}

// A fit is the state of [regression.fit]. Values for each row and output are stored row by row.
type fit struct {
	*regression
	penalty  float64 // of ½‖w‖² where the loss is the mean
	products int     // with the Hessian

	p           parameters
	scores      []float64 // of the rows, by p
	probability []float64 // of the classes of rows; with one output, of class 1
	spread      []float64 // of each output: the mean of p(1−p)
	gradient    []float64

	step       parameters // from p
	stepScores []float64  // the change of scores by it
}

// linearise computes the probabilities, their spread and the gradient at p.
func (f *fit) linearise() {
	f.probability = append(f.probability[:0], f.scores...)
	f.probabilities(f.probability)
	f.spread = make([]float64, f.outputs)
	for i, p := range f.probability {
		f.spread[i%f.outputs] += p * (1 - p) / float64(len(f.rows))
	}
	residual := append([]float64{}, f.probability...)
	f.subtractLabels(residual)
	f.gradient = make([]float64, len(f.p))
	f.transposed(f.gradient, residual)
	if f.outputs > 1 {
		// Adding a constant to all intercepts changes nothing. In the gradient it is rounding, and
		// nothing would bound a step along it.
		intercepts := f.gradient[f.weights():]
		floats.AddConst(-floats.Sum(intercepts)/float64(f.outputs), intercepts)
	}
	floats.AddScaled(f.gradient[:f.weights()], f.penalty, f.p[:f.weights()])
}

// precondition sets z to the product of v and the inverse of the blocks of H for each output, or of
// their diagonals without axes, as if all rows had the same probabilities.
func (f *fit) precondition(z, v []float64) {
	n := f.weights()
	weights := mat.NewDense(f.cols, f.outputs, z[:n])
	weights.Copy(mat.NewDense(f.cols, f.outputs, v[:n]))
	copy(z[n:], v[n:])
	if f.axes != nil {
		weights.Mul(f.axes.T(), weights)
	}
	for j := range z {
		diagonal := f.spread[j%f.outputs]
		if j < n {
			diagonal = diagonal*f.variance[j/f.outputs] + f.penalty
		}
		if diagonal > 0 {
			z[j] /= diagonal
		}
	}
	if f.axes != nil {
		weights.Mul(f.axes, weights)
	}
}

// newtonStep solves H·step = −gradient by preconditioned conjugate gradients. It stops when the last
// iteration lowered the quadratic model by less than truncation times the average of all iterations
// (Nash and Sofer, 1990), and returns stepᵀ·H·step.
func (f *fit) newtonStep(ctx context.Context, truncation float64) (change float64, err error) {
	n := len(f.p)
	f.step, f.stepScores = make(parameters, n), make([]float64, len(f.scores))
	residual := append([]float64{}, f.gradient...)
	floats.Scale(-1, residual)
	z := make([]float64, n)
	f.precondition(z, residual)
	direction, product := append(parameters{}, z...), make([]float64, n)
	directionScores, curved := make([]float64, len(f.scores)), make([]float64, len(f.scores))
	rz := floats.Dot(residual, z)
	for k := 1; rz > 0; k++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		f.score(directionScores, direction)
		copy(curved, directionScores)
		f.curve(curved)
		f.transposed(product, curved)
		floats.AddScaled(product[:f.weights()], f.penalty, direction[:f.weights()])
		f.products++

		curvature := floats.Dot(direction, product)
		if !(curvature > 0) { // rounding
			break
		}
		length := rz / curvature
		floats.AddScaled(f.step, length, direction)
		floats.AddScaled(f.stepScores, length, directionScores)
		floats.AddScaled(residual, -length, product)
		change += length * rz // twice the decrease of the model
		if length*rz*float64(k) <= truncation*change || f.products == maxProducts {
			break
		}
		f.precondition(z, residual)
		next := floats.Dot(residual, z)
		floats.Scale(next/rz, direction)
		floats.Add(direction, z)
		rz = next
	}
	return change, nil
}

// searchLine moves p along the step until the slope of the objective is at most a tenth of the slope
// at p, −change. Scores are linear in the parameters, so that it needs no product with X.
func (f *fit) searchLine(change float64) {
	w, step := f.p[:f.weights()], f.step[:f.weights()]
	linear, quadratic := f.penalty*floats.Dot(w, step), f.penalty*floats.Dot(step, step)
	at := make([]float64, len(f.scores))
	slope := func(t float64) float64 {
		floats.AddScaledTo(at, f.scores, t, f.stepScores)
		f.probabilities(at)
		f.subtractLabels(at)
		return floats.Dot(at, f.stepScores)/float64(len(f.rows)) + linear + t*quadratic
	}
	// Bisection: the slope increases with t.
	low, high, t := 0.0, math.Inf(1), 1.0
	for range 50 {
		s := slope(t)
		if math.Abs(s) <= change/10 {
			break
		}
		if s < 0 {
			low = t
		} else {
			high = t
		}
		t = min((low+high)/2, 2*t)
	}
	floats.AddScaled(f.p, t, f.step)
	floats.AddScaled(f.scores, t, f.stepScores)
}

// project prepares [regression.decide] for rows with the given terms only.
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

// decide computes the scores of row i, after project.
func (r *regression) decide(i int, scores []float64) {
	copy(scores, r.base)
	for j := r.ptr[i]; j < r.ptr[i+1]; j++ {
		for k, z := range r.z[int(r.index[j])*r.outputs:][:r.outputs] {
			scores[k] += r.weight[j] * z
		}
	}
}

// score computes the scores of all rows of the regression.
func (r *regression) score(scores []float64, p parameters) {
	r.project(p, r.active)
	for n, i := range r.rows {
		r.decide(i, scores[n*r.outputs:][:r.outputs])
	}
}

// transposed computes the derivative of the mean ⟨residual, score⟩ over rows by the parameters: the
// transpose of score, times residual/n.
func (r *regression) transposed(sum, residual []float64) {
	for _, t := range r.active {
		clear(r.z[int(t)*r.outputs:][:r.outputs])
	}
	clear(sum)
	intercepts := sum[r.weights():]
	for n, i := range r.rows {
		residual := residual[n*r.outputs:][:r.outputs]
		floats.Add(intercepts, residual)
		for j := r.ptr[i]; j < r.ptr[i+1]; j++ {
			z := r.z[int(r.index[j])*r.outputs:][:r.outputs]
			for k, residual := range residual {
				z[k] += r.weight[j] * residual
			}
		}
	}
	for _, t := range r.active {
		r.terms[t].addOuter(sum[:r.weights()], r.z[int(t)*r.outputs:][:r.outputs])
	}
	for j, mean := range r.mean {
		floats.AddScaled(sum[j*r.outputs:][:r.outputs], -mean, intercepts)
	}
	floats.Scale(1/float64(len(r.rows)), sum)
}

// probabilities replaces the scores of rows by the probabilities of the classes, or of class 1 with
// one output.
func (r *regression) probabilities(scores []float64) {
	if r.outputs == 1 {
		for i, s := range scores {
			e := math.Exp(-math.Abs(s))
			scores[i] = 1 / (1 + e)
			if s < 0 {
				scores[i] = e / (1 + e)
			}
		}
		return
	}
	for n := range r.rows {
		scores := scores[n*r.outputs:][:r.outputs]
		top := floats.Max(scores)
		for k, s := range scores {
			scores[k] = math.Exp(s - top)
		}
		floats.Scale(1/floats.Sum(scores), scores)
	}
}

// subtractLabels turns probabilities into the derivatives of the loss by the scores.
func (r *regression) subtractLabels(probability []float64) {
	for n, i := range r.rows {
		if r.outputs == 1 {
			probability[n] -= float64(r.class[i])
		} else {
			probability[n*r.outputs+r.class[i]]--
		}
	}
}

// curve multiplies a change of scores by the second derivatives of the loss.
func (f *fit) curve(change []float64) {
	if f.outputs == 1 {
		for i, p := range f.probability {
			change[i] *= p * (1 - p)
		}
		return
	}
	for n := range f.rows {
		change, p := change[n*f.outputs:][:f.outputs], f.probability[n*f.outputs:][:f.outputs]
		mean := floats.Dot(change, p)
		for k := range change {
			change[k] = p[k] * (change[k] - mean)
		}
	}
}

// classify reports for each of the rows whether p predicts its class.
func (r *regression) classify(p parameters, rows []int) []bool {
	all := make([]int32, len(r.terms))
	for t := range all {
		all[t] = int32(t)
	}
	r.project(p, all)
	scores := make([]float64, r.outputs)
	correct := make([]bool, len(rows))
	for n, i := range rows {
		r.decide(i, scores)
		class := floats.MaxIdx(scores)
		if r.outputs == 1 {
			class = 0
			if scores[0] > 0 {
				class = 1
			}
		}
		correct[n] = class == r.class[i]
	}
	return correct
}
