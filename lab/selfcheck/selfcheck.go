// Package selfcheck compares a GPU with the CPU on generated data:
//
//	steps, err := selfcheck.Run(ctx, device, cpu.Device{}, selfcheck.Size{Rows: 4096, Dim: 300, Atoms: 3000})
//	for _, s := range steps {
//		fmt.Println(s.Name, s.Output, s.Err())
//	}
package selfcheck

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/train"
)

// Size is the size of the data.
type Size struct {
	Rows  int `json:"rows"`
	Dim   int `json:"dim"`
	Atoms int `json:"atoms"`
}

// A Step is the result of a step of the check. Differences are relative, and at most 1.
type Step struct {
	Name      string  `json:"step"`       // encode, learn or paper
	Objective float64 `json:"objective"`  // difference from the reference's objective
	Output    float64 `json:"output"`     // ‖x − y‖/‖y‖ of reconstructions or atoms x, where y is the reference
	Repeats   bool    `json:"repeatable"` // whether both runs have the same bits
}

// Limits of the differences. Learned atoms are rounded to 11 bits. This can change which of two nearly equal codes is
// kept, and then the atoms. Tests of the devices have smaller tolerances, on data without such codes.
const (
	MaxObjective = 0.005
	MaxOutput    = 0.03
)

// Err returns an error if a difference is too large.
func (s Step) Err() error {
	for _, d := range []struct {
		of         string
		value, max float64
	}{{"objective", s.Objective, MaxObjective}, {"output", s.Output, MaxOutput}} {
		if d.value > d.max {
			return fmt.Errorf("%s: the %s differs by %.2g (limit %v)", s.Name, d.of, d.value, d.max)
		}
	}
	if !s.Repeats {
		return fmt.Errorf("%s: two runs have different results", s.Name)
	}
	return nil
}

// output is the result of a step on a device.
type output struct {
	objective float64
	values    []float32
	codes     *encode.Codes // set by encode only
}

// Run encodes, learns online and trains by the paper's recipe, twice on device and once on the reference. If a step
// fails, Run returns the steps before it.
func Run(ctx context.Context, device, reference backend.Device, s Size) (steps []Step, err error) {
	d := generate(s)
	for _, step := range []struct {
		name string
		run  func(context.Context, backend.Device) (output, error)
	}{{"encode", d.encode}, {"learn", d.learn}, {"paper", d.paper}} {
		var outputs [3]output
		for i, on := range []backend.Device{device, device, reference} {
			if outputs[i], err = step.run(ctx, on); err != nil {
				return steps, fmt.Errorf("%s: %w", step.name, err)
			}
		}
		steps = append(steps, compare(step.name, outputs[0], outputs[1], outputs[2]))
	}
	return steps, nil
}

// compare returns the result of a step, given its outputs of two runs and the reference's output.
func compare(name string, got, again, want output) Step {
	return Step{
		Name:      name,
		Objective: atMostOne(math.Abs(got.objective/want.objective - 1)),
		Output:    distance(got.values, want.values),
		Repeats:   reflect.DeepEqual(got, again),
	}
}

// atMostOne returns min(x, 1), and 1 for a NaN.
func atMostOne(x float64) float64 {
	if x < 1 {
		return x
	}
	return 1
}

// distance returns ‖x − y‖/‖y‖, but at most 1.
func distance(x, y []float32) float64 {
	var difference, square float64
	for i := range y {
		d := float64(x[i]) - float64(y[i])
		difference += d * d
		square += float64(y[i]) * float64(y[i])
	}
	return atMostOne(math.Sqrt(difference / square))
}

// data holds a dictionary, and rows that are sums of its atoms and noise.
type data struct {
	Size
	rows       []float32
	dictionary model.Dictionary
	options    encode.Options
}

const (
	rowNorm   = 3 // typical of word vectors, and suits the default λ of the paper's recipe
	rowAtoms  = 10
	noiseNorm = 0.3 * rowNorm
)

func generate(s Size) *data {
	rng := rand.New(rand.NewPCG(1, 1))
	d := &data{Size: s, rows: make([]float32, s.Rows*s.Dim), dictionary: model.Dictionary{Dim: s.Dim, Atoms: make([]float32, s.Atoms*s.Dim)}}
	root := math.Sqrt(float64(s.Dim))
	for i := range d.dictionary.Atoms {
		d.dictionary.Atoms[i] = float32(rowNorm / root * rng.NormFloat64())
	}
	for i := range s.Rows {
		row := d.rows[i*s.Dim:][:s.Dim]
		for range rowAtoms {
			d.addAtom(row, rng.IntN(s.Atoms), float32(rng.NormFloat64()/math.Sqrt(rowAtoms)))
		}
		for j := range row {
			row[j] += float32(noiseNorm / root * rng.NormFloat64())
		}
	}
	d.options = encode.Options{Lambda: train.Best().Lambda * rowNorm * rowNorm, Steps: encode.DefaultSteps, Nonzeros: max(1, 3*s.Atoms/100)}
	return d
}

// addAtom adds a multiple of an atom to a row.
func (d *data) addAtom(row []float32, atom int, value float32) {
	for j, x := range d.dictionary.Atom(atom) {
		row[j] += value * x
	}
}

// encode encodes all rows. Its values are their reconstructions.
func (d *data) encode(ctx context.Context, on backend.Device) (o output, err error) {
	e, err := on.Encoder(&d.dictionary, d.options)
	if err != nil {
		return o, err
	}
	defer func() { err = cmp.Or(err, e.Close()) }()
	codes, err := encode.Rows(ctx, e, d.rows)
	if err != nil {
		return o, err
	}
	o.values, o.codes = make([]float32, len(d.rows)), codes
	for i, loss := range codes.Loss {
		o.objective += loss
		index, value := codes.Row(i)
		for n, k := range index {
			o.objective += d.options.Lambda * math.Abs(float64(value[n]))
			d.addAtom(o.values[i*d.Dim:][:d.Dim], int(k), value[n])
		}
	}
	return o, nil
}

// learn updates the dictionary twice, each time from half of the rows. Its values are the atoms.
func (d *data) learn(ctx context.Context, on backend.Device) (o output, err error) {
	l, err := on.Learner(d.rows, &d.dictionary, rowNorm, d.options)
	if err != nil {
		return o, err
	}
	defer func() { err = cmp.Or(err, l.Close()) }()
	rows := make([]int32, d.Rows)
	for i := range rows {
		rows[i] = int32(i)
	}
	const noise = rowNorm * rowNorm
	sums, err := l.Learn(ctx, []backend.Minibatch{{Rows: rows[:d.Rows/2], Forgetting: 0.5}, {Rows: rows[d.Rows/2:], Forgetting: 0.5}}, 1/noise, noise, nil)
	if err != nil {
		return o, err
	}
	o.objective = sums.RunningLoss + d.options.Lambda*sums.L1
	o.values, err = l.Dictionary()
	return o, err
}

// paper trains for two epochs by the paper's recipe. Its values are the atoms.
func (d *data) paper(ctx context.Context, on backend.Device) (o output, err error) {
	h := train.Paper()
	h.Atoms, h.Epochs, h.DictionarySteps = d.Atoms, 2, 16
	p := backend.Problem{X: d.rows, Dim: d.Dim, Hyperparameters: h}
	t, err := on.Trainer(p)
	if err != nil {
		return o, err
	}
	defer func() { err = cmp.Or(err, t.Close()) }()
	for epoch := range h.Epochs {
		sums, err := t.Epoch(ctx, 1+epoch, p.Batch())
		if err != nil {
			return o, err
		}
		o.objective = sums.Loss + h.Lambda*sums.L1
	}
	o.values, err = t.Dictionary()
	return o, err
}
