package cpu

import (
	"slices"
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/simd"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/backendtest"
	"overcomplete/testonly/encodetest"
)

func TestLearner(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		backendtest.RunLearner(t, backendtest.LearnerFloat32, func(x []float32, d *model.Dictionary, norm float64, o encode.Options, workers int) (backend.Learner, error) {
			return Device{Workers: workers}.Learner(x, d, norm, o)
		})
	})
}

// All levels but plain Go, which rounds products and sums separately, learn the same bits.
func TestLevelBits(t *testing.T) {
	x, d := encodetest.Problem(300, 100, 200)
	batch := backend.Minibatch{Rows: make([]int32, 300)}
	for i := range batch.Rows {
		batch.Rows[i] = int32(i)
	}
	var want []float32
	for _, k := range simd.Levels()[1:] {
		t.Setenv(simd.Variable, k.Name)
		l, err := Device{}.Learner(x, d, 1, encode.Options{Steps: 16, Nonzeros: 12, Nonnegative: true})
		testonly.Must(t, err)
		_, err = l.Learn(t.Context(), []backend.Minibatch{batch, batch}, 1, 1, nil)
		testonly.Must(t, err)
		atoms, err := l.Dictionary()
		testonly.Must(t, err)
		if want == nil {
			want = atoms
		}
		if !slices.Equal(atoms, want) {
			t.Errorf("%s learns other bits than %s", k.Name, simd.Levels()[1].Name)
		}
	}
}
