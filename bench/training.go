package main

import (
	"context"
	"slices"

	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/train"
)

// hyperparameters are the defaults, for so many atoms and epochs.
func hyperparameters(atoms, epochs int) model.Paper {
	h := train.Paper()
	h.Atoms, h.Epochs, h.Seed = atoms, epochs, seed
	return h
}

// A recorder is a device that keeps its last trainer, and what that measured.
type recorder struct {
	train.Device
	trainer backend.Trainer
	epochs  []backend.Sums
}

func (r *recorder) Trainer(p backend.Problem) (t backend.Trainer, err error) {
	r.epochs = nil
	r.trainer, err = r.Device.Trainer(p)
	return recorded{r.trainer, r}, err
}

// recorded is a trainer whose epochs are kept.
type recorded struct {
	backend.Trainer
	by *recorder
}

func (t recorded) Epoch(ctx context.Context, epoch, batch int) (backend.Sums, error) {
	sums, err := t.Trainer.Epoch(ctx, epoch, batch)
	t.by.epochs = append(t.by.epochs, sums)
	return sums, err
}

// seconds is how long the passes of an epoch took.
func seconds(s backend.Sums) float64 { return s.DictionarySeconds + s.CodeSeconds }

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
