//go:build !gpu

package kernels

import (
	"fmt"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
)

var errNotBuilt = fmt.Errorf("%w: this program was built without GPU support; build it with -tags gpu", ErrUnavailable)

// GPUs returns an error that wraps [ErrUnavailable]: this build has no GPU support.
func GPUs() ([]GPU, error) { return nil, errNotBuilt }

// Find returns an error that wraps [ErrUnavailable]: this build has no GPU support.
func Find(index int) (GPU, error) { return GPU{}, errNotBuilt }

// Trainer implements [backend.Device]. This build has no GPU support.
func (d Device) Trainer(p backend.Problem) (backend.Trainer, error) { return nil, errNotBuilt }

// Learner implements [backend.Device]. This build has no GPU support.
func (d Device) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	return nil, errNotBuilt
}

// Encoder implements [encode.Device]. This build has no GPU support.
func (d Device) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	return nil, errNotBuilt
}

// Start returns the device. This build has no GPU support.
func (d Device) Start() Device {
	d.pool = new(contextPool)
	return d
}

type contextPool struct{}
