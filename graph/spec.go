package graph

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
)

// Epsilon is the ε that prevents 0/0 in AdaGrad. It is a normal float32, because GPUs flush denormals.
const Epsilon = 1e-30

// LeastUse is a bound on G_kk, the sum of the squared codes of atom k: [Learn] updates the atom only if G_kk exceeds
// it. The bound is scale-free, because codes are relative to atoms, and the atoms' norm follows the vectors' norm.
const LeastUse = 1e-8

// Relaxation is the ω of the bound Σ_j|g_kj|/ω on the curvature of atom k in [Learn]. Below 2 the update of a block
// never raises the objective, because diag(Σ_j|g_kj|) − G is positive semidefinite.
const Relaxation = 1.8

// Spec holds the sizes, the hyperparameters and the loss of a step.
type Spec struct {
	Atoms       int     // K
	Dim         int     // L
	Lambda      float64 // λ, the weight of Σ‖a_i‖₁
	Tau         float64 // τ, the weight of ‖D‖²
	Rate        float64 // η, AdaGrad's learning rate; positive in Dictionary, Code and Authors
	Norm        float64 // ρ, the norm of atoms learned online; positive in Learn
	Loss        Loss    // loss of the residual; nil means Squared
	Nonnegative bool    // A ≥ 0 (paper §2.2)
}

// A Loss builds the node of the elementwise loss ℓ(r) from the node of a residual r. Both nodes are n×L, in float64.
// The line search requires ℓ″ ≤ 2. (The second derivative of r² is 2.)
type Loss func(r *gorgonia.Node) (*gorgonia.Node, error)

// Squared is the paper's reconstruction loss, ℓ(r) = r².
func Squared(r *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Square(r) }

// Huber returns Huber's loss: r² for |r| ≤ δ, and 2δ|r| − δ² for |r| > δ. It equals r² − max(|r|−δ, 0)². The loss
// limits the weight of outlying coordinates.
func Huber(delta float64) Loss {
	return func(r *gorgonia.Node) (*gorgonia.Node, error) {
		b := builder{graph: r.Graph()}
		excess := b.relu(b.sub(b.abs(r), b.constant(delta)))
		loss := b.sub(b.square(r), b.square(excess))
		return loss, b.err
	}
}

func (s Spec) check() error {
	for _, h := range []struct {
		name  string
		value float64
		ok    bool
	}{
		{"number of atoms", float64(s.Atoms), s.Atoms > 0},
		{"vector length", float64(s.Dim), s.Dim > 0},
		{"lambda", s.Lambda, s.Lambda >= 0 && !math.IsInf(s.Lambda, 0)},
		{"tau", s.Tau, s.Tau >= 0 && !math.IsInf(s.Tau, 0)},
		{"rate", s.Rate, s.Rate >= 0 && !math.IsInf(s.Rate, 0)},
		{"norm", s.Norm, s.Norm >= 0 && !math.IsInf(s.Norm, 0)},
	} {
		if !h.ok {
			return fmt.Errorf("%s is %v", h.name, h.value)
		}
	}
	return nil
}

// An Expression is a step as an expression graph, in float64. Its inputs are some of
//
//	X, R     n×L  dense vectors, residuals
//	A, S, Q  n×K  codes, sums of their gradients, sums of their squared gradients
//	Z        n×K  codes extrapolated by momentum
//	D, H     K×L  dictionary, sums of its squared gradients
//	G        K×K  sum of products of codes, Σ aᵀa
//	B        K×L  sum of products of codes and vectors, Σ aᵀx
//	W        K×L  anchors
//
// and the scalars n (rows), t (epoch), s (step size), m (momentum) and c (anchor weight).
type Expression struct {
	Name            string
	Graph           *gorgonia.ExprGraph
	Inputs, Outputs []Variable
}

// A Variable is an input or an output. An output with the name of an input is the input's new value.
type Variable struct {
	Name string
	Node *gorgonia.Node
}

// A Build function returns the expression graph of a step for batches of the given number of rows. It is
// Dictionary, Code, Authors, Evaluate, Encode, Learn or LossGradient.
type Build func(s Spec, rows int) (*Expression, error)

// LossGradient returns the loss ℓ(R) of a residual and its derivative, element by element. Outputs: loss,
// gradient.
func LossGradient(s Spec, rows int) (*Expression, error) {
	b := newBuilder("loss", s, rows)
	R := b.input("R")
	losses := b.losses(R)
	b.output("loss", losses)
	b.output("gradient", b.grads(b.sum(losses), R)[0])
	return b.done()
}

// Dictionary returns the dictionary step on a micro-batch of n rows:
//
//	R = X − AD                            loss = Σ ℓ(R)
//	E = ∂loss/∂X                          the gradient of word i by D is −a_iᵀe_i
//	T = ∂τ‖D‖²/∂D                         the penalty counts once per word
//	G = ∂loss/∂D + nT                     M = ∂loss/∂D
//	H += max(0, (A∘A)ᵀ(E∘E) + 2T∘M + nT∘T)    the sum of the words' squared gradients
//	P = ηG/√(H+ε)     W = AP
//	α = clamp(−⟨W,E⟩/2⟨W,W⟩, 0, 1)        1 when ⟨W,W⟩ = 0
//	D −= αP
//
// The step changes R to R + αW. α minimises a quadratic upper bound of the loss after the step. For the squared
// loss, the bound equals the loss. G, M and W are local to this step. Outputs: loss, alpha, H, D.
func Dictionary(s Spec, rows int) (*Expression, error) {
	b := newBuilder("dictionary", s, rows)
	X, A, D, H := b.input("X"), b.input("A"), b.input("D"), b.input("H")
	n := b.input("n")

	R := b.sub(X, b.product(A, D))
	loss := b.loss(R)
	grads := b.grads(loss, X, D)
	E, M := grads[0], grads[1]
	T := b.penaltyGradient(D)

	G := b.add(M, b.mul(n, T))
	squares := b.product(b.transpose(b.square(A)), b.square(E))
	cross := b.mul(b.constant(2), b.mul(T, M))
	squares = b.add(b.add(squares, cross), b.mul(n, b.square(T)))
	newH := b.add(H, b.relu(squares))
	P := b.adagrad(G, newH)

	W := b.product(A, P)
	descent := b.neg(b.sum(b.mul(W, E)))
	curvature := b.mul(b.constant(2), b.sum(b.square(W)))
	alpha := b.ratio(descent, curvature)

	b.output("loss", loss)
	b.output("alpha", alpha)
	b.output("H", newH)
	b.output("D", b.sub(D, b.mul(alpha, P)))
	return b.done()
}

// Code returns the code step for n rows with D fixed (paper §2.3, with damping):
//
//	g = ∂loss/∂A     S += g     Q += g∘g
//	a = 0 where |S| ≤ tλ, else −sgn(S)·η(|S|−tλ)/√(Q+ε);  nonnegative: max(a, 0)
//	p = aD           β = clamp(⟨x,p⟩/⟨p,p⟩, 0, 1) for each word     A = βa
//
// Regularised dual averaging (RDA) knows only past gradients and overshoots; the damping β shortens the code. β
// doesn't enter S and Q. Outputs: S, Q, A, loss = Σℓ(R) and error = ‖R‖², with the residual R of the new codes.
// For the squared loss, loss and error are equal.
func Code(s Spec, rows int) (*Expression, error) {
	b := newBuilder("code", s, rows)
	X, A, D := b.input("X"), b.input("A"), b.input("D")
	S, Q, t := b.input("S"), b.input("Q"), b.input("t")

	R := b.sub(X, b.product(A, D))
	g := b.grads(b.loss(R), A)[0]
	newS, newQ, a := b.dualAveraging(g, S, Q, t)

	p := b.product(a, D)
	beta := b.ratio(b.rowSum(b.mul(X, p)), b.rowSum(b.square(p)))

	b.output("S", newS)
	b.output("Q", newQ)
	b.output("A", b.scaleRows(a, beta))
	b.measure(b.sub(X, b.scaleRows(p, beta)))
	return b.done()
}

// Authors returns the step of one row in the order of the authors' program: the residual, an AdaGrad step of
// D, then RDA with that residual and the new D. It has neither line search nor damping. The argument rows is 1
// in the published algorithm. Outputs: loss (before the step), H, D, S, Q, A.
func Authors(s Spec, rows int) (*Expression, error) {
	b := newBuilder("authors", s, rows)
	X, A, D, H := b.input("X"), b.input("A"), b.input("D"), b.input("H")
	S, Q, t := b.input("S"), b.input("Q"), b.input("t")

	R := b.sub(X, b.product(A, D))
	loss := b.loss(R)
	grads := b.grads(loss, X, D)
	E, M := grads[0], grads[1]
	G := b.add(M, b.penaltyGradient(D))
	newH := b.add(H, b.square(G))
	newD := b.sub(D, b.adagrad(G, newH))

	// ∂loss/∂A is −EDᵀ, here with the old residual and the new dictionary.
	g := b.neg(b.product(E, b.transpose(newD)))
	newS, newQ, a := b.dualAveraging(g, S, Q, t)

	b.output("loss", loss)
	b.output("H", newH)
	b.output("D", newD)
	b.output("S", newS)
	b.output("Q", newQ)
	b.output("A", a)
	return b.done()
}

// Evaluate returns the loss and the error of the codes of n rows. Outputs: loss, error, as in [Code].
func Evaluate(s Spec, rows int) (*Expression, error) {
	b := newBuilder("evaluate", s, rows)
	X, A, D := b.input("X"), b.input("A"), b.input("D")
	b.measure(b.sub(X, b.product(A, D)))
	return b.done()
}

// Encode returns an iteration of FISTA (Beck and Teboulle 2009) with restart (O'Donoghue and Candès 2015) for n
// rows with D fixed. Z is the codes extrapolated by momentum, s the step size and m the momentum:
//
//	R = X − ZD     g = ∂Σℓ(R)/∂Z
//	B = soft(Z − sg), with soft(v) = sgn(v)·max(|v| − λs, 0);  nonnegative: max(v − λs, 0)
//	Z = B + m·[⟨Z−B, A−B⟩ ≥ 0]·(B − A) for each word     A = B
//
// The bracket is 1 if its condition holds. Otherwise it is 0: the step opposes the row's momentum, and the row
// restarts with Z = B. Outputs: A, Z.
func Encode(s Spec, rows int) (*Expression, error) {
	b := newBuilder("encode", s, rows)
	X, A, Z, D := b.input("X"), b.input("A"), b.input("Z"), b.input("D")
	size, m := b.input("s"), b.input("m")

	R := b.sub(X, b.product(Z, D))
	g := b.grads(b.loss(R), Z)[0]
	newA := b.apply(softOp, b.sub(Z, b.mul(size, g)), b.mul(b.constant(s.Lambda), size))
	if s.Nonnegative {
		newA = b.relu(newA)
	}
	keepsMomentum := b.notNegative(b.rowSum(b.mul(b.sub(Z, newA), b.sub(A, newA))))

	b.output("A", newA)
	b.output("Z", b.add(newA, b.scaleRows(b.sub(newA, A), b.mul(m, keepsMomentum))))
	return b.done()
}

// Learn returns the update of a block of atoms in a step of online dictionary learning (Mairal et al. 2009,
// Algorithm 2). All atoms are updated at once, from the old values of the other atoms. G = Σ aᵀa, K×K, and B = Σ aᵀx,
// K×L, sum over all rows so far. The anchors W, K×L, are the initial atoms, and c is their weight:
//
//	∇ = ∂(tr(DᵀGD) − 2tr(DᵀB) + c‖D − W‖²)/∂D
//	h_k = max(g_kk, Σ_j|g_kj|/[Relaxation])
//	u_k = d_k − ½∇_k/(h_k + c)  or d_k if g_kk ≤ [LeastUse]
//	d_k = ρu_k/‖u_k‖            or ρd_k/‖d_k‖ if u_k = 0
//
// If h_k = g_kk, u_k minimises the objective, which is quadratic in d_k, given the other atoms. With c = σ²/s² the
// minimum is the MAP estimate under x = aD + noise, noise ~ N(0, σ²), and d_k ~ N(w_k, s²). Atoms that many rows
// use together would overshoot; the greater h_k shortens their steps, so that U never has a greater objective than D.
//
// A learner updates the blocks of a dictionary in turn: x is then a row minus the parts that other blocks decode.
// The argument rows has no effect. Output: D.
func Learn(s Spec, rows int) (*Expression, error) {
	b := newBuilder("learn", s, rows)
	D, G, B := b.input("D"), b.input("G"), b.input("B")
	W, c := b.input("W"), b.input("c")

	traces := b.add(b.mul(b.constant(-2), b.sum(b.mul(D, B))), b.sum(b.mul(D, b.product(G, D))))
	anchorPenalty := b.mul(c, b.sum(b.square(b.sub(D, W))))
	gradient := b.grads(b.add(traces, anchorPenalty), D)[0]
	step := b.apply(overCurvatureOp(LeastUse, Relaxation), b.mul(b.constant(0.5), gradient), G, c)
	U := b.sub(D, step)

	b.output("D", b.mul(b.positive("norm", s.Norm), b.apply(unitOp, U, D)))
	return b.done()
}
