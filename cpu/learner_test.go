package cpu

import (
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/testonly/backendtest"
)

func TestLearner(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		backendtest.RunLearner(t, backendtest.LearnerFloat32, func(x []float32, d *model.Dictionary, norm float64, o encode.Options, workers int) (backend.Learner, error) {
			return Device{Workers: workers}.Learner(x, d, norm, o)
		})
	})
}
