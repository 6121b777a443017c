package main

import (
	"context"
	"slices"

	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/train"
)

// hyperparameters returns the defaults of the paper's recipe for these numbers of atoms and epochs.
func hyperparameters(atoms, epochs int) model.Paper {
	h := train.Paper()
	h.Atoms, h.Epochs, h.Seed = atoms, epochs, seed
	return h
}

// recorder is a device that records the sums of each epoch of its last trainer.
type recorder struct {
	train.Device
	epochs []backend.Sums
}

func (r *recorder) Trainer(p backend.Problem) (backend.Trainer, error) {
	t, err := r.Device.Trainer(p)
	r.epochs = nil
	return recorded{t, r}, err
}

// recorded is a trainer that records its epochs.
type recorded struct {
	backend.Trainer
	by *recorder
}

func (t recorded) Epoch(ctx context.Context, epoch, batch int) (backend.Sums, error) {
	sums, err := t.Trainer.Epoch(ctx, epoch, batch)
	t.by.epochs = append(t.by.epochs, sums)
	return sums, err
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
