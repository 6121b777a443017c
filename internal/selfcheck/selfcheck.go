// Package selfcheck tries a device on generated data: whether it agrees with a reference, and how fast it is.
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

// Size is the size of the data. Only the first Compared rows are encoded by the reference, learned from,
// and trained on by the paper's recipe.
type Size struct {
	Rows     int `json:"rows"`
	Compared int `json:"compared"`
	Dim      int `json:"dim"`
	Atoms    int `json:"atoms"`
}

// A Difference is one between the device and the reference, or between two runs on the device.
type Difference struct {
	Step   string  `json:"step"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"` // relative
	Limit  float64 `json:"limit"`
}

// OK reports whether the difference is within the limit.
func (d Difference) OK() bool { return d.Value <= d.Limit } // NaN isn't

// A Rate is the speed of a step, waiting and copies included.
type Rate struct {
	Step    string  `json:"step"`
	Rows    int     `json:"rows"`
	Seconds float64 `json:"seconds"`
	FLOPs   float64 `json:"flops"` // of the dense products that no device can do without
}

// Result is the result of [Run].
type Result struct {
	Differences []Difference `json:"differences"`
	Rates       []Rate       `json:"rates"`
}

// The largest differences. Rounding to 11 bits changes which of two nearly equal codes is kept, and atoms
// follow: tests of the devices are stricter, on data where that doesn't happen.
const (
	mostObjective = 0.005 // of objectives and losses
	mostSupport   = 0.01  // the share of nonzeros that are elsewhere
	mostAtoms     = 0.03  // of ‖D‖
	mostLoss      = 1e-4  // of ‖y‖², from the loss of the codes in float64
)

// check is the state of a [Run]: rows and the dictionary whose atoms they are sums of.
type check struct {
	Size
	Result
	device, reference backend.Device
	rows              []float32
	dictionary        model.Dictionary
	options           encode.Options
}

const (
	rowNorm = 3 // of usual word vectors, which the default λ of the paper's recipe suits
	summed  = 10
	noise   = 0.3 // relative to the sum
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
		for range summed {
			a := float32(rng.NormFloat64() / math.Sqrt(summed))
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

// Run encodes, learns online and trains by the paper's recipe on the device, each twice. Without a reference
// it compares only the two runs, and the losses of codes with float64.
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

func (c *check) compare(step, what string, value, limit float64) {
	c.Differences = append(c.Differences, Difference{step, what, value, limit})
}

// rate adds the rate of a step with this number of inner products of length L.
func (c *check) rate(step string, start time.Time, rows, products int) {
	c.Rates = append(c.Rates, Rate{step, rows, time.Since(start).Seconds(), 2 * float64(products) * float64(c.Dim)})
}

func (c *check) repeated(step string, first, second any) {
	different := 0.0
	if !reflect.DeepEqual(first, second) {
		different = 1
	}
	c.compare(step, "second run", different, 0)
}

func (c *check) encode(ctx context.Context) error {
	run := func(on backend.Device, rows int, rated bool) (codes *encode.Codes, err error) {
		e, err := on.Encoder(&c.dictionary, c.options)
		if err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, e.Close()) }()
		start := time.Now()
		codes, err = e.Encode(ctx, c.rows[:rows*c.Dim])
		if rated {
			c.rate("encode", start, rows, rows*c.Atoms*c.options.Steps)
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
	first := all.Nonzeros() // of the rows that are compared
	if c.Compared < c.Rows {
		first = int(all.Ptr[c.Compared])
	}
	c.repeated("encode", part.Value, all.Value[:first])
	c.compare("encode", "loss in float64", c.lossError(part), mostLoss)
	if c.reference == nil {
		return nil
	}
	want, err := run(c.reference, c.Compared, false)
	if err != nil {
		return err
	}
	c.compare("encode", "objective", relative(c.objective(part), c.objective(want)), mostObjective)
	c.compare("encode", "support", 1-shared(part, want), mostSupport)
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

// lossError returns the largest difference of a loss from the loss of its code in float64, over ‖y‖².
func (c *check) lossError(codes *encode.Codes) (most float64) {
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
		if d := math.Abs(codes.Loss[i]-loss) / square; !(d <= most) {
			most = d
		}
	}
	return most
}

// shared returns the share of want's nonzeros that are nonzeros of got.
func shared(got, want *encode.Codes) float64 {
	common := 0
	for i := range want.Rows {
		index, _ := want.Row(i)
		ours, _ := got.Row(i)
		for _, k := range index {
			if _, found := slices.BinarySearch(ours, k); found {
				common++
			}
		}
	}
	return float64(common) / float64(max(1, want.Nonzeros()))
}

func relative(got, want float64) float64 { return math.Abs(got/want - 1) }

// learned is the result of a training.
type learned struct {
	objective float64
	atoms     []float32
}

// both compares two trainings on the device, and one on the reference.
func (c *check) both(step string, run func(on backend.Device, rated bool) (learned, error)) error {
	first, err := run(c.device, false)
	if err != nil {
		return err
	}
	second, err := run(c.device, true)
	if err != nil {
		return err
	}
	c.repeated(step, first, second)
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
	c.compare(step, "objective", relative(first.objective, want.objective), mostObjective)
	c.compare(step, "dictionary", math.Sqrt(difference/square), mostAtoms)
	return nil
}

// learn makes two updates of a dictionary.
func (c *check) learn(ctx context.Context) error {
	rows := make([]int32, c.Compared)
	for i := range rows {
		rows[i] = int32(i)
	}
	return c.both("learn", func(on backend.Device, rated bool) (result learned, err error) {
		l, err := on.Learner(c.rows, &c.dictionary, rowNorm, c.options)
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
			c.rate("learn", start, len(rows), len(rows)*c.Atoms*c.options.Steps+2*c.Atoms*c.Atoms)
		}
		result.objective = sums.RunningLoss + c.options.Lambda*sums.L1
		result.atoms, err = l.Dictionary()
		return result, err
	})
}

// paper trains for two epochs.
func (c *check) paper(ctx context.Context) error {
	h := train.Paper()
	h.Atoms, h.Epochs, h.DictionarySteps = c.Atoms, 2, 16
	p := backend.Problem{X: c.rows[:c.Compared*c.Dim], Dim: c.Dim, Hyperparameters: h}
	return c.both("paper", func(on backend.Device, rated bool) (result learned, err error) {
		t, err := on.Trainer(p)
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
			c.rate("paper", start, h.Epochs*p.Len(), h.Epochs*p.Len()*c.Atoms)
		}
		result.atoms, err = t.Dictionary()
		return result, err
	})
}
