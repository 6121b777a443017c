package classes

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"overcomplete/interpret"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// separateWithSciPy returns AUC, z, adjusted p and the shares of nonzero rows, by class and dimension.
const separateWithSciPy = `
import json, sys
import numpy as np
from scipy import stats

given = json.load(sys.stdin)
values, column = np.array(given["values"]), np.array(given["column"])
found = []
for value in given["classes"]:
    inside, others = values[column == value], values[(column != value) & (column != "")]
    of, p = [], []
    for a, b in zip(inside.T, others.T):
        test = stats.mannwhitneyu(a, b, use_continuity=False, method="asymptotic")
        auc = float(test.statistic) / len(a) / len(b)
        p.append(1 if np.isnan(test.pvalue) else test.pvalue)
        shares = max([((s * a > 0).mean(), (s * b > 0).mean()) for s in (1, -1)], key=lambda s: abs(s[0] - s[1]))
        of.append([auc, float(np.sign(auc - 0.5) * stats.norm.isf(p[-1] / 2)), *shares])
    found.append([o + [p] for o, p in zip(of, stats.false_discovery_control(p))])
json.dump(found, sys.stdout)
`

// signedCodes returns random codes with values of both signs. The last dimension is dead.
func signedCodes(rows, dimensions int) *vectors.Sparse {
	codes := clitest.RandomCodes(1, rows, dimensions, 0.4)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range codes.Value {
		if codes.Index[i]%2 == 1 && rng.IntN(3) == 0 {
			codes.Value[i] *= -1
		}
	}
	codes.Cols++
	return codes
}

// The statistics equal SciPy's. Rows without a value are left out.
func TestSeparateLikeSciPy(t *testing.T) {
	codes := signedCodes(200, 12)
	x := interpret.NewIndex(codes)
	column := make([]string, codes.Rows)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range column {
		column[i] = []string{"a", "b", "c", ""}[rng.IntN(4)]
		if x.Code(i).At(2) > 0 && rng.IntN(2) == 0 { // so that dimension 2 separates the class
			column[i] = "a"
		}
	}
	names := []string{"b", "a"}
	values := clitest.Matrix(codes)
	found, err := Separate(t.Context(), x, column, names, codes.Cols)
	testonly.Must(t, err)
	want := testonly.Python[[][][5]float64](t, separateWithSciPy, map[string]any{"values": values, "column": column, "classes": names})
	for c, class := range found {
		significant, listed := 0, make([]Separation, codes.Cols)
		for _, d := range class.Dimensions {
			listed[d.Dimension] = d
		}
		for k, w := range want[c] {
			got := listed[k]
			if w[4] < Level {
				significant++
			}
			if w[1] == 0 { // dimensions with z = 0 aren't listed
				continue
			}
			testonly.Near(t, class.Value, []float64{got.AUC, got.Z, got.Share, got.OtherShare, got.P}, w[:], 1e-9)
		}
		if class.Value != names[c] || class.Significant != significant {
			t.Errorf("%+v, want %s with %d significant dimensions", class, names[c], significant)
		}
	}
	if found[1].Significant == 0 || found[1].Dimensions[0].Dimension != 2 {
		t.Errorf("dimension 2 does not separate: %+v", found[1].Dimensions[0])
	}
}

// Examples are the strongest rows of the class if its share is larger, else of the others. Empty texts are left out.
func TestExamples(t *testing.T) {
	codes := signedCodes(60, 5)
	codes.Texts = new(vectors.Texts)
	column := make([]string, codes.Rows)
	for i := range column {
		codes.Texts.Add([]string{"text", "", " "}[max(0, i%4-1)], nil)
		column[i] = []string{"a", "b", "", "b", "a"}[i%5]
	}
	found, err := Separate(t.Context(), interpret.NewIndex(codes), column, []string{"a"}, 5)
	testonly.Must(t, err)
	values := clitest.Matrix(codes)
	for _, d := range found[0].Dimensions {
		side := "b"
		if d.Share >= d.OtherShare {
			side = "a"
		}
		sign := 1.0
		if d.Negative {
			sign = -1
		}
		var want []int
		for i := range column {
			if column[i] == side && codes.Texts.Text[i] == "text" && sign*values[i][d.Dimension] > 0 {
				want = append(want, i)
			}
		}
		slices.SortStableFunc(want, func(i, j int) int {
			return int(math.Copysign(1, sign*(values[j][d.Dimension]-values[i][d.Dimension])))
		})
		best := func(rows []int) (v []float64) {
			for _, i := range rows {
				v = append(v, values[i][d.Dimension])
			}
			return v
		}
		if !slices.Equal(best(d.Examples), best(want[:min(maxExamples, len(want))])) {
			t.Errorf("%+v, want examples %v", d, want)
		}
	}
}

// Over random columns, z has a mean square of 1, and few columns have a significant dimension.
func TestSeparateByChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := interpret.NewIndex(clitest.RandomCodes(1, 120, 6, 0.4))
	column := slices.Concat(slices.Repeat([]string{"a"}, 40), slices.Repeat([]string{"b"}, 80))
	squares, discoveries := 0.0, 0
	const tries = 400
	for range tries {
		rng.Shuffle(len(column), func(i, j int) { column[i], column[j] = column[j], column[i] })
		classes, err := Separate(t.Context(), x, column, []string{"a"}, 6)
		testonly.Must(t, err)
		for _, d := range classes[0].Dimensions {
			squares += d.Z * d.Z
		}
		if classes[0].Significant > 0 {
			discoveries++
		}
	}
	if mean := squares / (6 * tries); math.Abs(mean-1) > 0.3 { // four standard deviations
		t.Errorf("mean square of z %v, want 1", mean)
	}
	if discoveries > 38 { // 20 are expected; four standard deviations more
		t.Errorf("%d of %d random columns have significant dimensions", discoveries, tries)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Separate(ctx, x, column, []string{"a"}, 1); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}
