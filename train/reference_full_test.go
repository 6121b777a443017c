//go:build full

package train_test

import (
	"math"
	"testing"

	"overcomplete/train"
)

// TestAuthorsReference holds --authors-order against the program whose order
// it keeps; that program's own runs, which differ in random numbers and
// precision, spread over half of these bands.
func TestAuthorsReference(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for minutes; left out by -short")
	}
	h := train.Paper()
	h.AuthorsOrder, h.Lambda, h.Atoms, h.Epochs = true, 0.1, 500, 26
	got := trainReal(t, gloVe, h)
	within(t, "error", got.err, 0.4459, 0.03)
	within(t, "objective", got.obj, 1.2799, 0.01)
	within(t, "mean atom norm", got.norm, 2.4720, 0.01)
	if math.Abs(got.zeros-45.73) > 1 {
		t.Errorf("%.2f %% zeros, want 45.73 ± 1", got.zeros)
	}
}

// TestRealDataFloat16 holds trainings with sums of 16 bits to the bands that other
// roundings of the same training keep: the objective within 0.5 %, zeros within
// 0.1 points.
func TestRealDataFloat16(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for half a minute; left out by -short")
	}
	for _, ref := range references {
		if ref.method != "A" || ref.lambda != 0.5 {
			continue
		}
		h := train.Paper()
		h.Lambda, h.Atoms, h.Epochs = ref.lambda, ref.atoms, ref.epochs
		single := trainReal(t, ref.vectors, h)
		h.Float16 = true
		half := trainReal(t, ref.vectors, h)
		within(t, "objective", half.obj, single.obj, 0.005)
		if math.Abs(half.zeros-single.zeros) > 0.1 {
			t.Errorf("%.2f %% zeros, with float32 sums %.2f %%", half.zeros, single.zeros)
		}
	}
}
