package cli

import (
	"context"
	"math"
	"math/rand/v2"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// controlLambda is the λ of controls, which are encoded at a mean squared norm of 1. It
// leaves more nonzeros than are kept, and no atom unused.
const controlLambda = 0.04

// standardised returns x less the mean of the frequent words for so many atoms, and over the root
// of its mean squared norm, so that the same λ does for any input, and that root, or nil if all
// those words are equal but for rounding.
func standardised(x *vectors.Dense, atoms int) (y *vectors.Dense, norm float64) {
	y = &vectors.Dense{Words: x.Words, Dim: x.Dim, Data: make([]float32, len(x.Data))}
	frequent := train.Frequent(x, atoms)
	mean := frequent.Mean()
	const rounding = 1e-12 // of numbers that single precision rounded by 1e-7 at most
	if squares, before := squaresAbout(frequent, mean); !(squares > rounding*before) {
		return nil, 0
	}
	squares, _ := squaresAbout(x, mean)
	norm = math.Sqrt(squares / float64(x.Len()))
	for i := range y.Len() {
		for j, v := range x.Row(i) {
			y.Row(i)[j] = float32((float64(v) - float64(mean[j])) / norm)
		}
	}
	return y, norm
}

// squaresAbout returns the sums of squares of x less a mean, and of x.
func squaresAbout(x *vectors.Dense, mean []float32) (squares, before float64) {
	for i := range x.Len() {
		for j, v := range x.Row(i) {
			y := float64(v) - float64(mean[j])
			squares += y * y
			before += float64(v) * float64(v)
		}
	}
	return squares, before
}

// randomAtoms returns a dictionary of random directions, of norm 1.
func randomAtoms(atoms, dim int, seed uint64) model.Dictionary {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := model.Dictionary{Dim: dim, Atoms: make([]float32, atoms*dim)}
	for i := range d.Atoms {
		d.Atoms[i] = float32(rng.NormFloat64())
	}
	for k := range atoms {
		normalise(d.Atom(k))
	}
	return d
}

// rowAtoms returns a dictionary of rows of y, drawn at random from the frequent ones and of norm
// 1: as many as atoms says, or all but zeros where those are fewer.
func rowAtoms(y *vectors.Dense, atoms int, seed uint64) model.Dictionary {
	y = train.Frequent(y, atoms)
	d := model.Dictionary{Dim: y.Dim}
	for _, i := range rand.New(rand.NewPCG(seed, 2)).Perm(y.Len()) {
		if d.Len() == atoms {
			break
		}
		d.Atoms = append(d.Atoms, y.Row(i)...)
		if !normalise(d.Atom(d.Len() - 1)) {
			d.Atoms = d.Atoms[:len(d.Atoms)-y.Dim]
		}
	}
	return d
}

// normalise scales v to norm 1 and reports whether it could: zeros have no direction.
func normalise(v []float32) bool {
	squares := 0.0
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return false
	}
	for j, x := range v {
		v[j] = float32(float64(x) / math.Sqrt(squares))
	}
	return true
}

// encodeControl returns early-stopped codes of y with a dictionary of atoms of norm 1:
// of the sign of a method, and with so many nonzeros a word at most.
func encodeControl(ctx context.Context, d model.Dictionary, y *vectors.Dense, device encode.Device, method model.Method, most int) (*model.Model, error) {
	return encode.Model(ctx, &model.Model{Dictionary: d}, y, device, encode.Options{
		Lambda: controlLambda, Nonnegative: method == model.Nonnegative, Steps: encode.DefaultSteps, Most: most,
	})
}
