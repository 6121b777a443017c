package classes

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/interpret"
)

// AUC and its z are those of the definition: all pairs of rows, and the variance of that over
// random columns.
func TestSeparate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := interpret.NewIndex(clitest.RandomCodes(1, 120, 6, 0.4))
	column := make([]string, 120)
	for i := range column {
		column[i] = []string{"a", "b", "b", "rare"}[rng.IntN(4)]
		if i < 100 && column[i] == "rare" || i == 119 {
			column[i] = "b"
		}
	}
	for i := range 9 {
		column[i] = "nine" // are too few
	}
	values := clitest.Matrix(x.Codes)
	auc := func(k int, in func(i int) bool) float64 {
		pairs, sum := 0.0, 0.0
		for i := range column {
			for j := range column {
				if in(i) && !in(j) {
					pairs++
					switch a, b := values[i][k], values[j][k]; {
					case a > b:
						sum++
					case a == b:
						sum += 0.5
					}
				}
			}
		}
		return sum / pairs
	}
	classes, err := Separate(t.Context(), x, column, 2, 6)
	if err != nil || len(classes) != 2 || classes[0].Value != "b" || classes[1].Value != "a" {
		t.Fatalf("%+v, %v", classes, err)
	}
	for _, c := range classes {
		if len(c.Dimensions) != 6 {
			t.Errorf("%d dimensions", len(c.Dimensions))
		}
		for _, d := range c.Dimensions {
			if want := auc(d.Dimension, func(i int) bool { return column[i] == c.Value }); math.Abs(d.AUC-want) > 1e-12 {
				t.Errorf("%s, dimension %d: AUC %v, want %v", c.Value, d.Dimension, d.AUC, want)
			}
		}
	}
	// Over random columns, z has a mean square of 1: with 400 of them, to 0.3 (four deviations).
	squares, significant := 0.0, 0
	const tries = 400
	for range tries {
		rng.Shuffle(len(column), func(i, j int) { column[i], column[j] = column[j], column[i] })
		classes, err := Separate(t.Context(), x, column, 1, 6)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range classes[0].Dimensions {
			squares += d.Z * d.Z
		}
		significant += classes[0].Significant
	}
	if mean := squares / (6 * tries); math.Abs(mean-1) > 0.3 {
		t.Errorf("mean square of z %v, want 1", mean)
	}
	if significant > 12 { // 2.4 are expected of 2,400
		t.Errorf("%d are significant by chance", significant)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Separate(ctx, x, column, 1, 1); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}
