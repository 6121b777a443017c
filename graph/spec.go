package graph

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
)

// Epsilon keeps AdaGrad's square roots from 0/0. It is a normal float32 because GPUs flush denormals.
const Epsilon = 1e-30

// LeastUse is the Σa² that the codes of an atom must exceed for it to move. It is scale-free: codes are
// relative to the atoms, and long vectors have long atoms.
const LeastUse = 1e-8

// Spec specifies the model of a step.
type Spec struct {
	Atoms       int     // K
	Dim         int     // L
	Lambda      float64 // λ, the weight of Σ‖a_i‖₁
	Tau         float64 // τ, the weight of ‖D‖²
	Rate        float64 // η, AdaGrad's learning rate; more than 0 in steps that have one
	Norm        float64 // ρ, of every atom that is learned online; more than 0 for these
	Loss        Loss    // of the residual; nil means Squared
	Nonnegative bool    // A ≥ 0 (paper §2.2)
}

// Loss builds the elementwise loss ℓ(r) of a residual r, an n×L node of float64. It may use Gorgonia's Add,
// Sub, HadamardProd, HadamardDiv, Neg, Square, Sqrt, Abs and Rectify, of r and of constants. Its second
// derivative must not exceed 2, that of r²: the line search relies on it.
type Loss func(r *gorgonia.Node) (*gorgonia.Node, error)

// Squared is the paper's reconstruction loss, ℓ(r) = r².
func Squared(r *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Square(r) }

// Huber is r² where |r| ≤ delta and grows linearly beyond, 2δ|r| − δ²: single
// coordinates far off weigh less. It is stated as r² − max(|r|−δ, 0)².
func Huber(delta float64) Loss {
	return func(r *gorgonia.Node) (*gorgonia.Node, error) {
		b := builder{graph: r.Graph()}
		beyond := b.relu(b.sub(b.abs(r), b.constant(delta)))
		loss := b.sub(b.square(r), b.square(beyond))
		return loss, b.err
	}
}

// namedLosses are the losses that hyperparameters name, by their parameter.
var namedLosses = map[string]func(delta float64) Loss{
	"squared": func(float64) Loss { return Squared },
	"huber":   Huber,
}

// LossNames returns the names of the losses that [NamedLoss] knows.
func LossNames() []string { return slices.Sorted(maps.Keys(namedLosses)) }

// NamedLoss returns the loss of a name; delta is the parameter of those that have one.
func NamedLoss(name string, delta float64) (Loss, error) {
	loss, ok := namedLosses[name]
	if !ok {
		return nil, fmt.Errorf("unknown loss (got %.60q, want %s)", name, strings.Join(LossNames(), " or "))
	}
	return loss(delta), nil
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
			return fmt.Errorf("graph: %s is %v", h.name, h.value)
		}
	}
	return nil
}

// Expression is one step as an expression graph, in float64. Its inputs are some of
//
//	X, R     n×L  dense vectors, residuals
//	A, S, Q  n×K  codes, sums and sums of squares of their gradients
//	Z        n×K  the point beyond the codes
//	D, H     K×L  the dictionary, sums of its squared gradients
//	G, B     K×K, K×L  sums of products of codes, with codes and with vectors
//	W        K×L  anchors
//
// and the scalars n (words), t (epoch), s (step size), m (momentum) and c (weight of the anchors).
type Expression struct {
	Name            string
	Graph           *gorgonia.ExprGraph
	Inputs, Outputs []Variable
}

// Variable is an input or an output. An output with the name of an input is that input's new value.
type Variable struct {
	Name string
	Node *gorgonia.Node
}

// Build makes the expression graph of a step for batches of the given number of words: Dictionary, Code,
// Authors, Evaluate, Encode, Learn or LossGradient.
type Build func(s Spec, words int) (*Expression, error)

// LossGradient states the loss ℓ(R) of a residual and its derivative, element by element. Outputs: loss,
// gradient.
func LossGradient(s Spec, words int) (*Expression, error) {
	b, err := newBuilder("loss", s, words)
	if err != nil {
		return nil, err
	}
	R := b.input("R")
	losses := b.losses(R)
	b.output("loss", losses)
	b.output("gradient", b.grads(b.sum(losses), R)[0])
	return b.done()
}

// Dictionary is the dictionary step on a micro-batch of n words:
//
//	R = X − AD                            loss = Σ ℓ(R)
//	E = ∂loss/∂X                          so that a word's own gradient with respect to D is −a_iᵀe_i
//	T = ∂τ‖D‖²/∂D                         each word carries the penalty once
//	G = ∂loss/∂D + nT                     M = ∂loss/∂D
//	H += max(0, (A∘A)ᵀ(E∘E) + 2T∘M + nT∘T)    the sum of the words' squared gradients
//	P = ηG/√(H+ε)     W = AP
//	α = clamp(−⟨W,E⟩/2⟨W,W⟩, 0, 1)        1 when ⟨W,W⟩ = 0
//	D −= αP
//
// R becomes R + αW, and α minimises a quadratic above its loss (the loss
// itself, if it is the squared one): a step is never longer than the batch
// that asked for it supports. Outputs: loss, alpha, H, D.
func Dictionary(s Spec, words int) (*Expression, error) {
	b, err := newBuilder("dictionary", s, words)
	if err != nil {
		return nil, err
	}
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

// Code is the code step for n words, D fixed (paper §2.3, with damping):
//
//	g = ∂loss/∂A     S += g     Q += g∘g
//	a = 0 where |S| ≤ tλ, else −sgn(S)·η(|S|−tλ)/√(Q+ε);  nonnegative: max(a, 0)
//	p = aD           β = clamp(⟨x,p⟩/⟨p,p⟩, 0, 1) for each word     A = βa
//
// The damping takes back what RDA, which knows only past gradients, overshoots;
// S and Q never see it. Outputs: S, Q, A, and loss and error, Σℓ(R) and ‖R‖² with the
// new codes, which are the same value for the squared loss.
func Code(s Spec, words int) (*Expression, error) {
	b, err := newBuilder("code", s, words)
	if err != nil {
		return nil, err
	}
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

// Authors is one word's step in the order of the paper's own program: the
// residual first, then an AdaGrad step of D, then RDA with that residual and
// the new D. No line search, no damping. words must be 1 for the algorithm as
// published. Outputs: loss (before the step), H, D, S, Q, A.
func Authors(s Spec, words int) (*Expression, error) {
	b, err := newBuilder("authors", s, words)
	if err != nil {
		return nil, err
	}
	X, A, D, H := b.input("X"), b.input("A"), b.input("D"), b.input("H")
	S, Q, t := b.input("S"), b.input("Q"), b.input("t")

	R := b.sub(X, b.product(A, D))
	loss := b.loss(R)
	grads := b.grads(loss, X, D)
	E, M := grads[0], grads[1]
	G := b.add(M, b.penaltyGradient(D))
	newH := b.add(H, b.square(G))
	newD := b.sub(D, b.adagrad(G, newH))

	// ∂loss/∂A is −EDᵀ; the old residual meets the new dictionary here, which
	// is no expression's gradient.
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

// Evaluate measures n words' codes and does nothing else. Outputs: loss and error, as
// of [Code].
func Evaluate(s Spec, words int) (*Expression, error) {
	b, err := newBuilder("evaluate", s, words)
	if err != nil {
		return nil, err
	}
	X, A, D := b.input("X"), b.input("A"), b.input("D")
	b.measure(b.sub(X, b.product(A, D)))
	return b.done()
}

// Encode is a step of FISTA (Beck and Teboulle 2009) with restart (O'Donoghue and
// Candès 2015) for n words, D fixed. Z is the point beyond the codes A that momentum
// has led to, s the size of the step and m the factor of the momentum:
//
//	R = X − ZD     g = ∂Σℓ(R)/∂Z
//	B = soft(Z − sg, λs), sgn(·)·max(|·| − λs, 0);  nonnegative: max(· − λs, 0)
//	Z = B + m·[⟨Z−B, A−B⟩ ≥ 0]·(B − A) for each word     A = B
//
// The bracket is 0 where the step goes against the word's momentum, which begins again
// from nothing. Outputs: A, Z.
func Encode(s Spec, words int) (*Expression, error) {
	b, err := newBuilder("encode", s, words)
	if err != nil {
		return nil, err
	}
	X, A, Z, D := b.input("X"), b.input("A"), b.input("Z"), b.input("D")
	size, m := b.input("s"), b.input("m")

	R := b.sub(X, b.product(Z, D))
	g := b.grads(b.loss(R), Z)[0]
	newA := b.apply(softOp, b.sub(Z, b.mul(size, g)), b.mul(b.constant(s.Lambda), size))
	if s.Nonnegative {
		newA = b.relu(newA)
	}
	onward := b.notNegative(b.rowSum(b.mul(b.sub(Z, newA), b.sub(A, newA))))

	b.output("A", newA)
	b.output("Z", b.add(newA, b.scaleRows(b.sub(newA, A), b.mul(m, onward))))
	return b.done()
}

// Learn is where each atom goes in a step of online dictionary learning (Mairal et al.
// 2009, Algorithm 2), if the others stay. Of all words so far, G = Σ aᵀa is symmetric,
// K×K, and B = Σ aᵀx. The anchors W, K×L, are where atoms started from:
//
//	∇ = ∂(tr(DᵀGD) − 2tr(DᵀB) + c‖D − W‖²)/∂D
//	u_k = d_k − ½∇_k/(g_kk + c)  d_k where g_kk ≤ [LeastUse]
//	d_k = ρu_k/‖u_k‖             its own direction where u_k = 0
//
// The least of that sum, which is quadratic in d_k, is at u_k. With c = σ²/s² it is −2σ²
// times the logarithm of a posterior density, but for a constant: rows have Gaussian noise
// of variance σ² about aD, and an atom, before anything is known of it, one of s² about its
// anchor. Words do not enter. Output: D.
func Learn(s Spec, words int) (*Expression, error) {
	b, err := newBuilder("learn", s, words)
	if err != nil {
		return nil, err
	}
	D, G, B := b.input("D"), b.input("G"), b.input("B")
	W, c := b.input("W"), b.input("c")

	traces := b.add(b.mul(b.constant(-2), b.sum(b.mul(D, B))), b.sum(b.mul(D, b.product(G, D))))
	pull := b.mul(c, b.sum(b.square(b.sub(D, W))))
	gradient := b.grads(b.add(traces, pull), D)[0]
	step := b.apply(overDiagonalOp(LeastUse), b.mul(b.constant(0.5), gradient), G, c)
	U := b.sub(D, step)

	b.output("D", b.mul(b.positive("norm", s.Norm), b.apply(unitOp, U, D)))
	return b.done()
}
