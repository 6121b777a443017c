// Package backendtest tests training backends against Gorgonia's tape machine.
//
// A backend gets all tests by calling [Run] from one of its own.
package backendtest

import (
	"context"
	"math"

	"gorgonia.org/tensor"

	"overcomplete/graph"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Oracle trains on the tape machine: dense, in float64, one node at a time. It
// implements [train.Backend] and [train.AuthorsBackend] and is meant for small
// problems.
type Oracle struct {
	train.Resumable // which it is not

	spec             graph.Spec
	words            int
	x, a, d, s, q, h []float64

	shortened int // dictionary steps with α < 1
	damped    int // words with 0 < β < 1
}

// NewOracle starts from the same random numbers as every backend.
func NewOracle(spec graph.Spec, x []float32, seed uint64) *Oracle {
	o := &Oracle{spec: spec, words: len(x) / spec.Dim, x: widen(x)}
	o.d = widen(train.InitialDictionary(seed, spec.Atoms, spec.Dim))
	code := make([]float32, spec.Atoms)
	for i := range o.words {
		train.InitialCode(code, seed, i)
		o.a = append(o.a, widen(code)...)
	}
	o.s, o.q = make([]float64, len(o.a)), make([]float64, len(o.a))
	o.h = make([]float64, len(o.d))
	return o
}

func widen(x []float32) []float64 {
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	return wide
}

// step runs a graph on the words from lo to hi and stores what it replaces.
func (o *Oracle) step(build graph.Build, lo, hi, epoch int) (map[string][]float64, error) {
	k, l := o.spec.Atoms, o.spec.Dim
	expr, err := build(o.spec, hi-lo, tensor.Float64)
	if err != nil {
		return nil, err
	}
	tape := graph.NewTape(expr)
	defer tape.Close()
	state := map[string][]float64{
		"X": o.x[lo*l : hi*l], "A": o.a[lo*k : hi*k], "D": o.d, "H": o.h,
		"S": o.s[lo*k : hi*k], "Q": o.q[lo*k : hi*k],
		"n": {float64(hi - lo)}, "t": {float64(epoch)},
	}
	out, err := tape.Run(state)
	if err != nil {
		return nil, err
	}
	for name, value := range out {
		copy(state[name], value)
	}
	return out, nil
}

// DictionaryPass implements [train.Backend].
func (o *Oracle) DictionaryPass(_ context.Context, batch int) (pass train.DictionaryPass, err error) {
	for lo := 0; lo < o.words; lo += batch {
		out, err := o.step(graph.Dictionary, lo, min(lo+batch, o.words), 0)
		if err != nil {
			return pass, err
		}
		pass.Loss += out["loss"][0]
		pass.Steps++
		if out["alpha"][0] < 1 {
			pass.Shortened++
			o.shortened++
		}
	}
	return pass, nil
}

// CodePass implements [train.Backend].
func (o *Oracle) CodePass(_ context.Context, epoch int) (train.CodePass, error) {
	out, err := o.step(graph.Code, 0, o.words, epoch)
	if err != nil {
		return train.CodePass{}, err
	}
	o.damped += o.countDamped(epoch)
	return o.summary(out["loss"][0]), nil
}

// countDamped compares the codes with what their sums shrink to.
func (o *Oracle) countDamped(epoch int) (damped int) {
	shrinkage := graph.Shrinkage{Lambda: o.spec.Lambda, Rate: o.spec.Rate}
	for i := range o.words {
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

// AuthorsPass implements [train.AuthorsBackend].
func (o *Oracle) AuthorsPass(_ context.Context, epoch int) (running float64, pass train.CodePass, err error) {
	for i := range o.words {
		out, err := o.step(graph.Authors, i, i+1, epoch)
		if err != nil {
			return running, pass, err
		}
		running += out["loss"][0]
	}
	out, err := o.step(graph.Evaluate, 0, o.words, epoch)
	if err != nil {
		return running, pass, err
	}
	return running, o.summary(out["loss"][0]), nil
}

func (o *Oracle) summary(loss float64) train.CodePass {
	pass := train.CodePass{Loss: loss}
	used := make(map[int]bool)
	for i, a := range o.a {
		if a != 0 {
			pass.Nonzeros++
			pass.L1 += math.Abs(a)
			used[i%o.spec.Atoms] = true
		}
	}
	pass.UsedAtoms = len(used)
	return pass
}

// Dictionary implements [train.Backend].
func (o *Oracle) Dictionary() ([]float32, error) {
	d := make([]float32, len(o.d))
	for i, x := range o.d {
		d[i] = float32(x)
	}
	return d, nil
}

// Codes implements [train.Backend].
func (o *Oracle) Codes() (*vectors.CSR, error) {
	s := &vectors.CSR{Rows: o.words, Cols: o.spec.Atoms, Ptr: []int64{0}}
	for i := range o.words {
		for k, a := range o.a[i*o.spec.Atoms:][:o.spec.Atoms] {
			if a != 0 {
				s.Index, s.Value = append(s.Index, int32(k)), append(s.Value, float32(a))
			}
		}
		s.Ptr = append(s.Ptr, int64(len(s.Value)))
	}
	return s, nil
}
