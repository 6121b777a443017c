//go:build !gpu

package kernels

import (
	"overcomplete/graph"
	"overcomplete/train"
)

// Backend trains on a GPU. It implements [train.Backend].
type Backend struct{ train.Backend }

// New fails: this build has no GPU support.
func New(graph.Spec, []float32, Options) (*Backend, error) {
	_, err := Count()
	return nil, err
}

// Device returns the GPU.
func (b *Backend) Device() Device { return Device{} }

// Close releases the GPU.
func (b *Backend) Close() error { return nil }
