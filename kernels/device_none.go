//go:build !gpu

package kernels

import (
	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/train"
)

// Trainer implements [train.Device]. In this build, without -tags gpu, it returns an error
// that wraps [ErrUnavailable].
func (d Device) Trainer(p train.Problem) (train.Trainer, error) {
	_, err := Count()
	return nil, err
}

// Learner implements [train.Device]. In this build, without -tags gpu, it returns an error
// that wraps [ErrUnavailable].
func (d Device) Learner(dictionary *model.Dictionary, norm float64, o encode.Options) (train.Learner, error) {
	_, err := Count()
	return nil, err
}

// Encoder implements [encode.Device]. In this build, without -tags gpu, it returns an error
// that wraps [ErrUnavailable].
func (d Device) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	_, err := Count()
	return nil, err
}
