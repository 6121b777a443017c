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
