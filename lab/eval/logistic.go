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
// The loss is log(1 + exp(∓(xw + b))) for two classes. For more classes it is −log softmax(xW + b),
// with a w and an intercept per class. scikit-learn's LogisticRegression(C=C) has the same objective.
//
// The minimiser is a truncated Newton method, as in LIBLINEAR, because first-order methods and L-BFGS need thousands of
// iterations if C is large. Conjugate gradients solve for the Newton step. They need only products of the Hessian and
// vectors, and these products are computed from the factors of X. An exact line search follows. Rows are centred, and
// the intercepts compensate for it. The objective is divided by C and by the number of rows, n.
type regression struct {
	*features
	rows     []int
	active   []int32 // terms that occur in the rows
	outputs  int     // number of vectors w: 1 for two classes
	mean     []float64
	axes     *mat.Dense // columns are the principal axes of the rows; nil to use the columns of X
	variance []float64  // variance of the rows on each axis

	base []float64 // by output: the score of a zero row
	z    []float64 // by term and output: ⟨term, w⟩; in scoreGradient, the residuals, summed over the rows of the term
}

// A fit ends when the rows' scores change by at most this much (root mean square, weighted by p(1−p)).
const (
	coarse = 0.2
	fine   = 1e-3
)

// maxProducts is the largest number of products with the Hessian in a fit. In the paper's tasks with codes of
// GoogleNews by method A, no fit needs a thousand products.
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

// maxAxes is the largest number of columns of X for which the principal axes are computed. Without them, dense vectors
// need many more iterations. The time to compute the axes grows with the cube of the number of columns.
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

// parameters holds the matrix W and then the scores of the mean row, one per output. W has a row for each column of X,
// with a weight for each output.
type parameters []float64

// weights returns the number of weights, which is the index of the first intercept.
func (r *regression) weights() int { return r.outputs * r.cols }

// fit minimises the objective for C = c. It begins at start, or at zero if start is nil.
func (r *regression) fit(ctx context.Context, c float64, start parameters, precision float64) (parameters, error) {
	p := make(parameters, r.outputs*(r.cols+1))
	copy(p, start)
	f := &fit{regression: r, penalty: 1 / (c * float64(len(r.rows))), p: p}
	f.scores = make([]float64, len(r.rows)*r.outputs)
	r.scoreRows(f.scores, p)
	for f.products < maxProducts {
		f.linearise()
		before := f.products
		change, err := f.newtonStep(ctx, math.Sqrt(precision))
		if err != nil {
			return nil, err
		}
		f.searchLine(change)
		// A step that needed no product with the Hessian is only rounding error.
		if change <= precision*precision*floats.Sum(f.spread)/float64(r.outputs) || f.products == before {
			return p, nil
		}
	}
	return nil, fmt.Errorf("logistic regression with C = %g: no convergence in %d iterations", c, maxProducts)
}

// A fit is the state of [regression.fit]. Values for each row and output are stored row by row.
type fit struct {
	*regression
	penalty  float64 // weight of ½‖w‖², where the mean loss has the weight 1
	products int     // number of products with the Hessian

	p           parameters
	scores      []float64 // the rows' scores at p
	probability []float64 // class probabilities by row at p; with one output, only class 1
	spread      []float64 // by output: the mean of p(1−p)
	gradient    []float64 // gradient of the objective at p

	step       parameters // the Newton step
	stepScores []float64  // the change of scores by step
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
	f.scoreGradient(f.gradient, residual)
	if f.outputs > 1 {
		// If all intercepts change equally, the objective stays the same. The gradient's component in that direction is
		// rounding error, and nothing would bound a step along it.
		intercepts := f.gradient[f.weights():]
		floats.AddConst(-floats.Sum(intercepts)/float64(f.outputs), intercepts)
	}
	floats.AddScaled(f.gradient[:f.weights()], f.penalty, f.p[:f.weights()])
}

// precondition sets z to H̃⁻¹v. H̃ holds the Hessian's diagonal block of each output, as if all rows had the same
// probabilities. Without axes, H̃ is the diagonal of these blocks.
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

// newtonStep solves H·step = −gradient by preconditioned conjugate gradients, and returns stepᵀ·H·step. It stops when
// the decrease of the quadratic model in the last iteration, divided by the average decrease of all iterations, is
// below truncation (Nash and Sofer, 1990).
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
		f.scoreRows(directionScores, direction)
		copy(curved, directionScores)
		f.multiplyCurvature(curved)
		f.scoreGradient(product, curved)
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

// searchLine moves p along the step until the slope of the objective has at most a tenth of its first magnitude. The
// first slope is −change. No product with X is necessary, because scores are linear in the parameters.
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

// projectTerms prepares [regression.scoreRow] for rows that contain only the given terms.
func (r *regression) projectTerms(p parameters, terms []int32) {
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

// scoreRow computes the scores of row i from the products of projectTerms.
func (r *regression) scoreRow(i int, scores []float64) {
	copy(scores, r.base)
	for j := r.ptr[i]; j < r.ptr[i+1]; j++ {
		for k, z := range r.z[int(r.index[j])*r.outputs:][:r.outputs] {
			scores[k] += r.weight[j] * z
		}
	}
}

func (r *regression) scoreRows(scores []float64, p parameters) {
	r.projectTerms(p, r.active)
	for n, i := range r.rows {
		r.scoreRow(i, scores[n*r.outputs:][:r.outputs])
	}
}

// scoreGradient sets sum to the gradient of the mean ⟨residual, score⟩ over rows with respect to the
// parameters: the transpose of scoreRows, applied to residual/n.
func (r *regression) scoreGradient(sum, residual []float64) {
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

// probabilities replaces the scores of each row by the probabilities of the classes. With one output, it replaces the
// score by the probability of class 1.
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

// subtractLabels turns probabilities into derivatives of the loss with respect to the scores.
func (r *regression) subtractLabels(probability []float64) {
	for n, i := range r.rows {
		if k := r.class[i] - (r.classes - r.outputs); k >= 0 { // with one output, class 0 has none
			probability[n*r.outputs+k]--
		}
	}
}

// multiplyCurvature multiplies a change of scores by the second derivatives of the loss.
func (f *fit) multiplyCurvature(change []float64) {
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

// classify reports for each given row whether p predicts its class.
func (r *regression) classify(p parameters, rows []int) []bool {
	all := make([]int32, len(r.terms))
	for t := range all {
		all[t] = int32(t)
	}
	r.projectTerms(p, all)
	scores := make([]float64, r.outputs)
	correct := make([]bool, len(rows))
	for n, i := range rows {
		r.scoreRow(i, scores)
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
