package cpu

import (
	"testing"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/train/backendtest"
)

// G and B are sums in float32 of some tens of terms, of which each atom's way is a ratio:
// a few roundings of 6e-8 add up.
func TestLearner(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		backendtest.RunLearner(t, 3e-6, func(d *model.Dictionary, norm float64, o encode.Options, workers int) (train.Learner, error) {
			return Device{Workers: workers}.Learner(d, norm, o)
		})
	})
}
