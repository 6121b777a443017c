//go:build full

package model

import (
	"math"
	"slices"
	"testing"
)

// A model with the largest number of epochs can be opened, whatever its metrics are.
func TestOpenMostEpochs(t *testing.T) {
	m := testModel(3, 2, 4, false)
	changePaper(m, func(p *Paper) { p.Epochs = maxEpochs })
	const long = -math.MaxFloat64
	m.Info.Training.Epochs = slices.Repeat([]Epoch{{maxEpochs, long, long, long, long, 1.2345678901234567e-300, long, long, math.MaxInt32, long, long}}, maxEpochs)
	got, err := Open(saved(t, m))
	if err != nil || len(got.Info.Training.Epochs) != maxEpochs {
		t.Errorf("error %v", err)
	}
}
