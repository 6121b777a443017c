//go:build !gpu

package kernels

import (
	"overcomplete/graph"
	"overcomplete/train"
)

// Backend trains on a GPU. It implements [train.Backend]. This build, without -tags gpu,
// has no support for GPUs, and [New] returns none.
type Backend struct{ train.Backend }

// New prepares training of spec on x, the vectors of V words, V×L row-major. In this build
// it returns an error that wraps [ErrUnavailable].
func New(spec graph.Spec, x []float32, o Options) (*Backend, error) {
	_, err := Count()
	return nil, err
}

// Device returns the GPU that trains.
func (b *Backend) Device() Device { return Device{} }

// Close releases the GPU.
func (b *Backend) Close() error { return nil }
