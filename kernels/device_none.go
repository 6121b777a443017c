//go:build !gpu

package kernels

import (
	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
)

// Trainer implements [backend.Device]. In this build, without -tags gpu, it returns an error
// that wraps [ErrUnavailable].
func (d Device) Trainer(p backend.Problem) (backend.Trainer, error) {
	_, err := Count()
	return nil, err
}

// Learner implements [backend.Device]. In this build, without -tags gpu, it returns an error
// that wraps [ErrUnavailable].
func (d Device) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	_, err := Count()
	return nil, err
}

// Encoder implements [encode.Device]. In this build, without -tags gpu, it returns an error
// that wraps [ErrUnavailable].
func (d Device) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	_, err := Count()
	return nil, err
}
