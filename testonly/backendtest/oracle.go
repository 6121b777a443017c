// Package backendtest tests the trainers of devices against Gorgonia's tape machine. A test of a device calls
// [Run]:
//
//	func TestTrainer(t *testing.T) { backendtest.Run(t, false, backendtest.Float32, newTrainer) }
package backendtest

import (
	"context"
	"math"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/testonly/encodetest"
)

// Oracle trains on the tape machine, densely, in float64, one node at a time, for small problems.
type Oracle struct {
	spec             graph.Spec
	authorsOrder     bool
	rows             int
	x, a, d, s, q, h []float64

	shortened int // number of dictionary steps with α < 1
	damped    int // number of rows with 0 < β < 1
}

// NewOracle returns an oracle with the same initial random numbers as every trainer.
func NewOracle(p backend.Problem) *Oracle {
	h := p.Hyperparameters
	o := &Oracle{spec: p.Spec(), authorsOrder: h.AuthorsOrder, rows: p.Len(), x: encodetest.Widen(p.X)}
	o.d = encodetest.Widen(p.InitialDictionary())
	code := make([]float32, h.Atoms)
	for i := range o.rows {
		backend.InitialCode(code, h.Seed, i)
		o.a = append(o.a, encodetest.Widen(code)...)
	}
	o.s, o.q = make([]float64, len(o.a)), make([]float64, len(o.a))
	o.h = make([]float64, len(o.d))
	return o
}

// step runs a graph on the rows from lo to hi and stores its outputs.
func (o *Oracle) step(build graph.Build, lo, hi, epoch int) (map[string][]float64, error) {
	k, l := o.spec.Atoms, o.spec.Dim
	expression, err := build(o.spec, hi-lo)
	if err != nil {
		return nil, err
	}
	state := map[string][]float64{
		"X": o.x[lo*l : hi*l], "A": o.a[lo*k : hi*k], "D": o.d, "H": o.h,
		"S": o.s[lo*k : hi*k], "Q": o.q[lo*k : hi*k],
		"n": {float64(hi - lo)}, "t": {float64(epoch)},
	}
	out, err := expression.Run(state)
	if err != nil {
		return nil, err
	}
	for name, value := range out {
		copy(state[name], value)
	}
	return out, nil
}

// Epoch runs an epoch, as a [backend.Trainer] does.
func (o *Oracle) Epoch(_ context.Context, epoch, batch int) (sums backend.Sums, err error) {
	if o.authorsOrder {
		return o.authors(epoch)
	}
	for lo := 0; lo < o.rows; lo += batch {
		out, err := o.step(graph.Dictionary, lo, min(lo+batch, o.rows), 0)
		if err != nil {
			return sums, err
		}
		sums.RunningLoss += out["loss"][0]
		sums.Steps++
		if out["alpha"][0] < 1 {
			sums.Shortened++
		}
	}
	o.shortened += sums.Shortened
	if _, err := o.step(graph.Code, 0, o.rows, epoch); err != nil {
		return sums, err
	}
	o.damped += o.countDamped(epoch)
	return sums, o.measure(&sums)
}

// authors runs an epoch in the order of the authors' program.
func (o *Oracle) authors(epoch int) (sums backend.Sums, err error) {
	for i := range o.rows {
		out, err := o.step(graph.Authors, i, i+1, epoch)
		if err != nil {
			return sums, err
		}
		sums.RunningLoss += out["loss"][0]
		sums.Steps++
	}
	return sums, o.measure(&sums)
}

// countDamped counts the codes that differ from the shrunk sums.
func (o *Oracle) countDamped(epoch int) (damped int) {
	shrinkage := graph.Shrinkage{Lambda: o.spec.Lambda, Rate: o.spec.Rate}
	for i := range o.rows {
		for j, a := range o.a[i*o.spec.Atoms:][:o.spec.Atoms] {
			at := i*o.spec.Atoms + j
			if a != 0 && math.Abs(a) < 0.99*math.Abs(shrinkage.Apply(o.s[at], o.q[at], float64(epoch))) {
				damped++
				break
			}
		}
	}
	return damped
}

// measure computes the metrics of the codes. It sums the squared error without a graph.
func (o *Oracle) measure(sums *backend.Sums) error {
	out, err := o.step(graph.Evaluate, 0, o.rows, 0)
	if err != nil {
		return err
	}
	sums.Loss = out["loss"][0]
	k, l := o.spec.Atoms, o.spec.Dim
	for i := range o.rows {
		for j := range l {
			r := o.x[i*l+j]
			for n, a := range o.a[i*k : (i+1)*k] {
				r -= a * o.d[n*l+j]
			}
			sums.Error += r * r
		}
	}
	sums.Used = make([]bool, k)
	for i, a := range o.a {
		if a != 0 {
			sums.Nonzeros++
			sums.L1 += math.Abs(a)
			sums.Used[i%k] = true
		}
	}
	return nil
}
