package program

import "overcomplete/graph"

// residual begins a program, which computes R = X − AD first. It returns the loss ℓ(R), and two factors of the
// loss's derivative: the number c and the matrix E, with ∂ℓ(R)/∂R = c·E.
func (b *builder) residual(D *value) (loss *value, c float64, E *value) {
	b.begin("decode n×L", Rows)
	R := b.define("R", b.sub(b.x(), b.product("p1", "A · D", DecodeProduct)))
	loss, gradient := b.loss(R)
	c, E = gradient.constantFactor()
	b.program.Squared = loss == b.square(R)
	return loss, c, b.keep("E", E)
}

// Dictionary compiles [graph.Dictionary] for a batch of rows.
func Dictionary(s graph.Spec) (*Program, error) {
	b := newBuilder("dictionary", s)
	D, H, n := b.input("D"), b.input("H"), b.rows()
	u := &Update{D: b.matrices[D], H: b.matrices[H]}

	loss, c, E := b.residual(D)
	b.output("loss", b.total(loss))
	b.step(&Decode{Atoms: u.D, Body: b.end()})

	b.begin("accumulate K×L", Atoms)
	p2, p3 := b.product("p2", "Aᵀ · "+E.name, AccumulateProduct), b.product("p3", "(A²)ᵀ · ("+E.name+"²)", SquaresProduct)
	M, T := b.scaled(-c, p2), b.scaled(2*s.Tau, D)
	squares := b.add(b.add(b.scaled(c*c, p3), b.scaled(2, b.mul(T, M))), b.mul(n, b.square(T)))
	newH := b.replace(H, b.add(H, b.unary(opRelu, squares)))
	G := b.add(M, b.mul(n, T))
	factor, P := b.div(G, b.unary(opSqrt, b.add(newH, b.constant(graph.Epsilon)))).constantFactor() // factor is not 1 if τ is 0
	P = b.keep("P", P)
	u.Accumulate, u.P = &Accumulate{Residuals: b.matrices[E], Squares: true, Body: b.end()}, b.matrices[P]

	b.begin("decode n×L", Rows)
	W := b.scaled(s.Rate*factor, b.product("p4", "A · P", DecodeProduct))
	descent := b.scaled(-1, b.total(b.mul(W, b.scaled(c, E))))
	alpha := b.ratio(descent, b.scaled(2, b.total(b.square(W))))
	b.output("alpha", alpha)
	u.Search, u.Alpha = &Decode{Atoms: u.P, Body: b.end()}, b.scalar(alpha)

	b.begin("elementwise K×L", Atoms)
	b.replace(D, b.sub(D, b.mul(alpha, b.scaled(s.Rate*factor, P))))
	u.Move = &Elementwise{Body: b.end()}

	for i, coefficient := range []*value{
		b.constant(c * c), b.scaled(-c, b.constant(4*s.Tau)), b.scaled(4*s.Tau*s.Tau, n),
		b.scaled(2*s.Tau/factor, n), b.constant(-c / factor), b.constant(-s.Rate * factor),
	} {
		u.Coefficients[i] = b.scalar(coefficient)
	}
	b.step(u)
	return b.done()
}

// Code compiles [graph.Code] for a batch of rows.
func Code(s graph.Spec) (*Program, error) {
	b := newBuilder("code", s)
	D := b.input("D")
	_, c, E := b.residual(D)
	b.step(&Decode{Atoms: b.matrices[D], Body: b.end()})
	b.correlate(s, c, E, D)

	b.begin("decode n×L", Rows)
	X, p := b.x(), b.product("p", "a · D", DecodeProduct)
	beta := b.define("β", b.ratio(b.rowSum(b.mul(X, p)), b.rowSum(b.square(p))))
	b.scaleCodes(beta)
	damped := b.mul(beta, p)
	b.row(damped) // store it, rounded to float32, before the subtraction
	b.measure(b.define("R′", b.sub(X, damped)))
	b.step(&Decode{Atoms: b.matrices[D], Body: b.end()})
	return b.done()
}

// correlate adds the dual averaging step, with the gradient −c·E·Dᵀ of the codes.
func (b *builder) correlate(s graph.Spec, c float64, E, D *value) {
	b.begin("correlate n×K", Rows)
	product := b.vector("p of the codes")
	product.name = "p"
	b.list("p = %s · %sᵀ", E, D)
	b.list("S′ = %v", b.sub(b.vector("S"), b.scaled(c, product)))
	b.list("Q′ = %v", b.add(b.vector("Q"), b.scaled(c*c, b.square(product))))
	b.list("a = shrink(S′, Q′, t; λ=%g, η=%g)%s", s.Lambda, s.Rate, map[bool]string{true: ", at least 0"}[s.Nonnegative])
	b.step(&Correlate{
		Residuals: b.matrices[E], Atoms: b.matrices[D], Gradient: -c, Square: c * c,
		Shrinkage: graph.Shrinkage{Lambda: s.Lambda, Rate: s.Rate}, Nonnegative: s.Nonnegative, listing: b.body.listing,
	})
}

func (b *builder) measure(R *value) {
	loss, _ := b.loss(R)
	b.output("loss", b.total(loss))
	b.output("error", b.total(b.square(R)))
}

// Authors compiles [graph.Authors] for one row.
func Authors(s graph.Spec) (*Program, error) {
	b := newBuilder("authors", s)
	D, H := b.input("D"), b.input("H")
	loss, c, E := b.residual(D)
	b.output("loss", b.total(loss))
	b.step(&Decode{Atoms: b.matrices[D], Body: b.end()})

	b.begin("accumulate K×L", Atoms)
	G := b.add(b.scaled(-c, b.product("p2", "Aᵀ · "+E.name, AccumulateProduct)), b.scaled(2*s.Tau, D))
	newH := b.replace(H, b.add(H, b.square(G)))
	root := b.unary(opSqrt, b.add(newH, b.constant(graph.Epsilon)))
	newD := b.replace(D, b.sub(D, b.div(b.scaled(s.Rate, G), root)))
	b.step(&Accumulate{Residuals: b.matrices[E], Body: b.end()})

	b.correlate(s, c, E, newD)
	return b.done()
}

// Evaluate compiles [graph.Evaluate] for a batch of rows.
func Evaluate(s graph.Spec) (*Program, error) {
	b := newBuilder("evaluate", s)
	D := b.input("D")
	b.begin("decode n×L", Rows)
	b.measure(b.define("R", b.sub(b.x(), b.product("p1", "A · D", DecodeProduct))))
	b.step(&Decode{Atoms: b.matrices[D], Body: b.end()})
	return b.done()
}
