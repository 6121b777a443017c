package kernels

import (
	"errors"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/train"
)

// Learner implements [train.Device].
func (d Device) Learner(dictionary *model.Dictionary, norm float64, o encode.Options) (train.Learner, error) {
	return nil, errors.New("not yet")
}
