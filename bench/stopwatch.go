package main

import (
	"context"
	"slices"
	"time"

	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// stopwatch times the passes of a backend.
type stopwatch struct {
	train.Backend
	epochs []passes
}

// passes are those of an epoch.
type passes struct {
	dictionary, codes float64 // seconds
	nonzeros          int64   // of the codes, after it
}

func (p passes) seconds() float64 { return p.dictionary + p.codes }

func (s *stopwatch) DictionaryPass(ctx context.Context, batch int) (train.DictionaryPass, error) {
	start := time.Now()
	p, err := s.Backend.DictionaryPass(ctx, batch)
	s.epochs = append(s.epochs, passes{dictionary: time.Since(start).Seconds()})
	return p, err
}

func (s *stopwatch) CodePass(ctx context.Context, epoch int) (train.CodePass, error) {
	start := time.Now()
	p, err := s.Backend.CodePass(ctx, epoch)
	e := &s.epochs[len(s.epochs)-1]
	e.codes, e.nonzeros = time.Since(start).Seconds(), p.Nonzeros
	return p, err
}

// timeTraining trains on a prepared backend, with the defaults for what is not
// said here, and returns how long the passes of each epoch took and the model,
// which has no words.
func timeTraining(b train.Backend, method string, words, dim, atoms, epochs int) ([]passes, *model.Model, error) {
	h := model.Defaults()
	h.Method, h.Atoms, h.Epochs = method, atoms, epochs
	s := &stopwatch{Backend: b}
	m := &model.Model{
		Info:       model.Info{Training: h, Input: model.Input{Words: words, Dim: dim}},
		Codes:      new(vectors.Sparse),
		Dictionary: model.Dictionary{Dim: dim},
	}
	err := train.Run(context.Background(), s, m, train.Progress{}, nil)
	return s.epochs, m, err
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
