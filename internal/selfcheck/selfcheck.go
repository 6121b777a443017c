// Package selfcheck compares a device with a reference on generated data, and measures its speed:
//
//	result, err := selfcheck.Run(ctx, gpu, cpu.Device{}, selfcheck.Size{Rows: 4096, Compared: 512, Dim: 300, Atoms: 3000})
//	for _, d := range result.Differences {
//		fmt.Println(d.Step, d.Metric, d.Value, d.OK())
//	}
package selfcheck

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/train"
)

// Size is the size of the data. The device encodes all rows. The reference encodes the first Compared rows,
// and both trainings use only these.
type Size struct {
	Rows     int `json:"rows"`
	Compared int `json:"compared"`
	Dim      int `json:"dim"`
	Atoms    int `json:"atoms"`
}

// Difference is a relative difference between the device and the reference, or between two runs on the device.
type Difference struct {
	Step   string  `json:"step"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Limit  float64 `json:"limit"`
}

// OK reports whether the difference is within the limit.
func (d Difference) OK() bool { return d.Value <= d.Limit } // NaN isn't

// Rate is the speed of a step, including waiting and copies.
type Rate struct {
	Step    string  `json:"step"`
	Rows    int     `json:"rows"`
	Seconds float64 `json:"seconds"`
	FLOPs   float64 `json:"flops"` // dense matrix products that every device computes
}

// Result is the result of [Run].
type Result struct {
	Differences []Difference `json:"differences"`
	Rates       []Rate       `json:"rates"`
}

// Limits of the differences. Rounding factors to 11 bits can change the choice between two nearly equal
// codes, and then the dictionary. The devices' own tests avoid such ties and are stricter.
const (
	maxObjectiveDifference  = 0.005 // relative, of objectives and losses
	maxSupportDifference    = 0.01  // fraction of the reference's nonzeros that the device lacks
	maxDictionaryDifference = 0.03  // ‖D − D′‖/‖D′‖
	maxLossDifference       = 1e-4  // fraction of ‖y‖², from the loss of the same codes in float64
)

// check is the state of a [Run]. Rows are noisy sums of atoms of the dictionary.
type check struct {
	Size
	Result
	device, reference backend.Device
	rows              []float32
	dictionary        model.Dictionary
	options           encode.Options
}

const (
	rowNorm     = 3 // typical of word vectors, for which the paper's λ was chosen
	atomsPerRow = 10
	noise       = 0.3 // norm relative to the sum of atoms
)

func generate(s Size) *check {
	rng := rand.New(rand.NewPCG(1, 1))
	c := &check{Size: s, rows: make([]float32, s.Rows*s.Dim), dictionary: model.Dictionary{Dim: s.Dim, Atoms: make([]float32, s.Atoms*s.Dim)}}
	scale := rowNorm / math.Sqrt(float64(s.Dim))
	for i := range c.dictionary.Atoms {
		c.dictionary.Atoms[i] = float32(scale * rng.NormFloat64())
	}
	for i := range s.Rows {
		row := c.rows[i*s.Dim:][:s.Dim]
		for range atomsPerRow {
			a := float32(rng.NormFloat64() / math.Sqrt(atomsPerRow))
			for j, v := range c.dictionary.Atom(rng.IntN(s.Atoms)) {
				row[j] += a * v
			}
		}
		for j := range row {
			row[j] += float32(noise * scale * rng.NormFloat64())
		}
	}
	best := train.Best()
	c.options = encode.Options{Lambda: best.Lambda * rowNorm * rowNorm, Steps: encode.DefaultSteps, Nonzeros: max(1, 3*s.Atoms/100)}
	return c
}

// Run encodes, learns online and trains by the paper's recipe on the device, each twice. It compares the two
// runs, the losses with float64 and, unless reference is nil, the results with the reference's. An error names
// the step that failed; the result has the steps before it.
func Run(ctx context.Context, device, reference backend.Device, s Size) (Result, error) {
	c := generate(s)
	c.device, c.reference = device, reference
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{{"encode", c.encode}, {"learn", c.learn}, {"paper", c.paper}} {
		if err := step.run(ctx); err != nil {
			return c.Result, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return c.Result, nil
}

func (c *check) addDifference(step, metric string, value, limit float64) {
	c.Differences = append(c.Differences, Difference{step, metric, value, limit})
}

// addRate adds the rate of a step that computes the given number of inner products of length L.
func (c *check) addRate(step string, start time.Time, rows, products int) {
	c.Rates = append(c.Rates, Rate{step, rows, time.Since(start).Seconds(), 2 * float64(products) * float64(c.Dim)})
}

func (c *check) compareRuns(step string, first, second any) {
	difference := 0.0
	if !reflect.DeepEqual(first, second) {
		difference = 1
	}
	c.addDifference(step, "second run", difference, 0)
}

func (c *check) encode(ctx context.Context) error {
	run := func(device backend.Device, rows int, rated bool) (codes *encode.Codes, err error) {
		e, err := device.Encoder(&c.dictionary, c.options)
		if err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, e.Close()) }()
		start := time.Now()
		codes, err = e.Encode(ctx, c.rows[:rows*c.Dim])
		if rated {
			c.addRate("encode", start, rows, rows*c.Atoms*c.options.Steps)
		}
		return codes, err
	}
	part, err := run(c.device, c.Compared, false)
	if err != nil {
		return err
	}
	all, err := run(c.device, c.Rows, true)
	if err != nil {
		return err
	}
	nonzeros := all.Nonzeros()
	if c.Compared < c.Rows {
		nonzeros = int(all.Ptr[c.Compared])
	}
	c.compareRuns("encode", part.Value, all.Value[:nonzeros])
	c.addDifference("encode", "loss in float64", c.lossError(part), maxLossDifference)
	if c.reference == nil {
		return nil
	}
	want, err := run(c.reference, c.Compared, false)
	if err != nil {
		return err
	}
	c.addDifference("encode", "objective", relativeDifference(c.objective(part), c.objective(want)), maxObjectiveDifference)
	c.addDifference("encode", "support", 1-supportRecall(part, want), maxSupportDifference)
	return nil
}

func (c *check) objective(codes *encode.Codes) (sum float64) {
	for _, loss := range codes.Loss {
		sum += loss
	}
	for _, v := range codes.Value {
		sum += c.options.Lambda * math.Abs(float64(v))
	}
	return sum
}

// lossError returns the largest |loss − ‖y − aD‖²|/‖y‖² of a row, computed in float64.
func (c *check) lossError(codes *encode.Codes) (largest float64) {
	residual := make([]float64, c.Dim)
	for i := range codes.Rows {
		var square, loss float64
		for j, v := range c.rows[i*c.Dim:][:c.Dim] {
			residual[j] = float64(v)
			square += residual[j] * residual[j]
		}
		index, value := codes.Row(i)
		for n, k := range index {
			for j, v := range c.dictionary.Atom(int(k)) {
				residual[j] -= float64(value[n]) * float64(v)
			}
		}
		for _, v := range residual {
			loss += v * v
		}
		if d := math.Abs(codes.Loss[i]-loss) / square; !(d <= largest) {
			largest = d
		}
	}
	return largest
}

// supportRecall returns the fraction of want's nonzeros that are nonzeros of got.
func supportRecall(got, want *encode.Codes) float64 {
	common := 0
	for i := range want.Rows {
		index, _ := want.Row(i)
		gotIndex, _ := got.Row(i)
		for _, k := range index {
			if _, found := slices.BinarySearch(gotIndex, k); found {
				common++
			}
		}
	}
	return float64(common) / float64(max(1, want.Nonzeros()))
}

func relativeDifference(got, want float64) float64 { return math.Abs(got/want - 1) }

type trainingResult struct {
	objective float64
	atoms     []float32
}

// compareTrainings compares two trainings on the device with each other and with one on the reference.
func (c *check) compareTrainings(step string, run func(device backend.Device, rated bool) (trainingResult, error)) error {
	first, err := run(c.device, false)
	if err != nil {
		return err
	}
	second, err := run(c.device, true)
	if err != nil {
		return err
	}
	c.compareRuns(step, first, second)
	if c.reference == nil {
		return nil
	}
	want, err := run(c.reference, false)
	if err != nil {
		return err
	}
	var difference, square float64
	for i, v := range want.atoms {
		d := float64(first.atoms[i]) - float64(v)
		difference, square = difference+d*d, square+float64(v)*float64(v)
	}
	c.addDifference(step, "objective", relativeDifference(first.objective, want.objective), maxObjectiveDifference)
	c.addDifference(step, "dictionary", math.Sqrt(difference/square), maxDictionaryDifference)
	return nil
}

// learn updates the dictionary from two mini-batches.
func (c *check) learn(ctx context.Context) error {
	rows := make([]int32, c.Compared)
	for i := range rows {
		rows[i] = int32(i)
	}
	return c.compareTrainings("learn", func(device backend.Device, rated bool) (result trainingResult, err error) {
		l, err := device.Learner(c.rows, &c.dictionary, rowNorm, c.options)
		if err != nil {
			return result, err
		}
		defer func() { err = cmp.Or(err, l.Close()) }()
		sums, start := backend.Sums{Used: make([]bool, c.Atoms)}, time.Now()
		for _, half := range [][]int32{rows[:len(rows)/2], rows[len(rows)/2:]} {
			if err := l.Learn(ctx, half, 0.5, 1, &sums); err != nil {
				return result, err
			}
		}
		if rated {
			c.addRate("learn", start, len(rows), len(rows)*c.Atoms*c.options.Steps+2*c.Atoms*c.Atoms)
		}
		result.objective = sums.RunningLoss + c.options.Lambda*sums.L1
		result.atoms, err = l.Dictionary()
		return result, err
	})
}

// paper trains for two epochs by the paper's recipe.
func (c *check) paper(ctx context.Context) error {
	h := train.Paper()
	h.Atoms, h.Epochs, h.DictionarySteps = c.Atoms, 2, 16
	p := backend.Problem{X: c.rows[:c.Compared*c.Dim], Dim: c.Dim, Hyperparameters: h}
	return c.compareTrainings("paper", func(device backend.Device, rated bool) (result trainingResult, err error) {
		t, err := device.Trainer(p)
		if err != nil {
			return result, err
		}
		defer func() { err = cmp.Or(err, t.Close()) }()
		start := time.Now()
		for epoch := range h.Epochs {
			sums, err := t.Epoch(ctx, 1+epoch, p.Batch())
			if err != nil {
				return result, err
			}
			result.objective = sums.Loss + h.Lambda*sums.L1
		}
		if rated {
			c.addRate("paper", start, h.Epochs*p.Len(), h.Epochs*p.Len()*c.Atoms)
		}
		result.atoms, err = t.Dictionary()
		return result, err
	})
}
