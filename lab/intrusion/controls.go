package intrusion

import (
	"context"
	"math"
	"math/rand/v2"

	"overcomplete/encode"
	"overcomplete/internal/float32s"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// A Control is a baseline: codes with a dictionary that isn't trained.
type Control string

const (
	// RandomDictionary encodes with atoms of random directions.
	RandomDictionary Control = "random dictionary"
	// WordRows encodes with the vectors of random frequent words as atoms.
	WordRows Control = "word rows"
)

// Controls lists all controls.
var Controls = []Control{RandomDictionary, WordRows}

// controlLambda is the λ of controls, for vectors with a mean squared norm of 1. It gives more nonzeros
// than the codes keep, and no dead atoms.
const controlLambda = 0.04

// Encode encodes x, V×L, with the dictionary of a control. It returns early-stopped codes with at most n nonzeros per
// row; the codes are nonnegative if the method's codes are. [WordRows] has fewer atoms if x has fewer words. The error
// is [train.ErrIdenticalRows] if all frequent words have the same vector.
func Encode(ctx context.Context, x *vectors.Dense, control Control, atoms, n int, method model.Method, seed uint64, device encode.Device) (*model.Model, error) {
	y, norm, err := standardise(x, atoms)
	if err != nil {
		return nil, err
	}
	d := randomAtoms(atoms, y.Dim, seed)
	if control == WordRows {
		d = rowAtoms(y, atoms, seed)
	}
	m, err := encode.Model(ctx, &model.Model{Dictionary: d}, y, device, encode.Options{
		Lambda: controlLambda, Nonnegative: method == model.Nonnegative, Steps: encode.DefaultSteps, Nonzeros: n,
	})
	if err != nil {
		return nil, err
	}
	m.Info.Encoding.Error *= norm * norm
	return m, nil
}

// standardise subtracts the mean of the frequent words from the rows of x, and divides the rows by their root mean
// square norm. It returns the result and that norm.
func standardise(x *vectors.Dense, atoms int) (*vectors.Dense, float64, error) {
	frequent := train.TrainingRows(x, atoms)
	mean := frequent.Mean()
	centred := model.Dictionary{Dim: x.Dim, Mean: mean}
	const rounding = 1e-12 // a smaller share of the squares is rounding error, since float32 has a relative error of 1e-7
	if squares := centred.Squares(frequent.Data); !(squares > rounding*float32s.Squares(frequent.Data)) {
		return nil, 0, train.ErrIdenticalRows
	}
	norm := math.Sqrt(centred.Squares(x.Data) / float64(x.Len()))
	y := &vectors.Dense{IDs: x.IDs, Dim: x.Dim, Data: make([]float32, len(x.Data))}
	for i := range y.Len() {
		for j, v := range x.Row(i) {
			y.Row(i)[j] = float32((float64(v) - float64(mean[j])) / norm)
		}
	}
	return y, norm, nil
}

// randomAtoms returns a dictionary of random directions of norm 1.
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

// rowAtoms returns a dictionary of random frequent rows of y that aren't zero, scaled to norm 1.
func rowAtoms(y *vectors.Dense, atoms int, seed uint64) model.Dictionary {
	y = train.TrainingRows(y, atoms)
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

// normalise scales v to norm 1. It reports false if v is zero.
func normalise(v []float32) bool {
	squares := float32s.Squares(v)
	if squares == 0 {
		return false
	}
	for j, x := range v {
		v[j] = float32(float64(x) / math.Sqrt(squares))
	}
	return true
}
