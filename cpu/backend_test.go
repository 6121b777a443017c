package cpu

import (
	"testing"

	"overcomplete/graph"
	"overcomplete/train"
	"overcomplete/train/backendtest"
)

func newBackend(spec graph.Spec, x []float32, seed uint64, authors bool, workers int) (train.Backend, error) {
	return New(spec, x, Options{Seed: seed, Authors: authors, Workers: workers})
}

func TestBackend(t *testing.T)        { backendtest.Run(t, newBackend) }
func TestAuthorsBackend(t *testing.T) { backendtest.RunAuthors(t, newBackend) }
