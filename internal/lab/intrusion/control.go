package intrusion

import (
	"context"
	"math"
	"math/rand/v2"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// A Control is codes that nothing was learned for.
type Control string

const (
	// RandomDirections are the dense vectors projected on them, with as many nonzeros for each
	// word as the model has.
	RandomDirections Control = "random directions"
	// RandomDictionary is atoms of random directions, with early-stopped codes as sparse as the
	// model's.
	RandomDictionary Control = "random dictionary"
	// WordRows is the same with frequent words, drawn at random, for atoms: as many as the
	// model has atoms, or as there are.
	WordRows Control = "word rows"
)

// Controls are all.
var Controls = []Control{RandomDirections, RandomDictionary, WordRows}

// controlLambda is the λ of controls, which are encoded at a mean squared norm of 1. It
// leaves more nonzeros than are kept, and no atom unused.
const controlLambda = 0.04

// Standardised is vectors less the mean of the frequent ones, and over the root of their mean
// squared norm, so that the same λ does for any.
type Standardised struct {
	*vectors.Dense
	norm float64 // that root
}

// Standardise returns x, V×L, standardised for so many atoms. The error is [train.ErrAllSame]
// if all frequent words are equal but for rounding.
func Standardise(x *vectors.Dense, atoms int) (Standardised, error) {
	y := &vectors.Dense{Words: x.Words, Dim: x.Dim, Data: make([]float32, len(x.Data))}
	frequent := train.Frequent(x, atoms)
	mean := frequent.Mean()
	const rounding = 1e-12 // of numbers that single precision rounded by 1e-7 at most
	if squares, before := squaresAbout(frequent, mean); !(squares > rounding*before) {
		return Standardised{}, train.ErrAllSame
	}
	squares, _ := squaresAbout(x, mean)
	norm := math.Sqrt(squares / float64(x.Len()))
	for i := range y.Len() {
		for j, v := range x.Row(i) {
			y.Row(i)[j] = float32((float64(v) - float64(mean[j])) / norm)
		}
	}
	return Standardised{y, norm}, nil
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

// Encode returns early-stopped codes with the dictionary of a control, [RandomDictionary] or
// [WordRows], of K atoms: of the sign of a method, and with so many nonzeros a word at most.
// What its encoding says was measured is of the vectors before they were standardised, and of
// K atoms, though there may be fewer words.
func (y Standardised) Encode(ctx context.Context, control Control, atoms, most int, method model.Method, seed uint64, device encode.Device) (*model.Model, error) {
	d := randomAtoms(atoms, y.Dim, seed)
	if control == WordRows {
		d = rowAtoms(y.Dense, atoms, seed)
	}
	m, err := encode.Model(ctx, &model.Model{Dictionary: d}, y.Dense, device, encode.Options{
		Lambda: controlLambda, Nonnegative: method == model.Nonnegative, Steps: encode.DefaultSteps, Nonzeros: most,
	})
	if err != nil {
		return nil, err
	}
	c, norm := m.Info.Encoding, y.norm
	c.Error, c.Objective = c.Error*norm*norm, c.Objective*norm*norm
	c.Lambda, c.FirstLambda = c.Lambda*norm*norm, c.FirstLambda*norm*norm
	c.Sparsity = 1 - float64(m.Codes.Nonzeros())/float64(m.Codes.Rows*atoms)
	c.UnusedAtoms += atoms - m.Codes.Cols
	return m, nil
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
