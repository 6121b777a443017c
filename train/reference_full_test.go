//go:build full

package train_test

import (
	"math"
	"testing"

	"overcomplete/train"
)

// TestAuthorsReference compares AuthorsOrder with the authors' program. Runs of that program with other
// random numbers and precisions spread over half of these tolerances.
func TestAuthorsReference(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for minutes; skipped by -short")
	}
	h := train.Paper()
	h.AuthorsOrder, h.Lambda, h.Atoms, h.Epochs = true, 0.1, 500, 26
	got := trainReal(t, gloVe, h)
	within(t, "error", got.err, 0.4459, 0.03)
	within(t, "objective", got.obj, 1.2799, 0.01)
	within(t, "mean atom norm", got.norm, 2.4720, 0.01)
	if math.Abs(got.sparsity-45.73) > 1 {
		t.Errorf("sparsity %.2f %%, want 45.73 ± 1", got.sparsity)
	}
}

// TestRealDataFloat16 compares trainings with sums in float16 and float32: objectives within 0.5 %,
// sparsity within 0.1 points. Other roundings of the same training stay within these tolerances.
func TestRealDataFloat16(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for half a minute; skipped by -short")
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
		if math.Abs(half.sparsity-single.sparsity) > 0.1 {
			t.Errorf("sparsity %.2f %%, with float32 sums %.2f %%", half.sparsity, single.sparsity)
		}
	}
}
