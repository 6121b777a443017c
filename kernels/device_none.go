//go:build !gpu

package kernels

import (
	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/train"
)

// Trainer implements [train.Device]. This build has no GPU support: it returns
// [ErrUnavailable], wrapped.
func (d Device) Trainer(train.Problem) (train.Trainer, error) {
	_, err := Count()
	return nil, err
}

// Encoder implements [encode.Device]. This build has no GPU support: it returns
// [ErrUnavailable], wrapped.
func (d Device) Encoder(*model.Dictionary, encode.Options) (encode.Encoder, error) {
	_, err := Count()
	return nil, err
}
