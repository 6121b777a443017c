package eval

import (
	"math"
	"math/rand/v2"
	"testing"

	"overcomplete/testonly"
)

func TestSpearman(t *testing.T) {
	for _, tt := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{3, 1, 2}, []float64{30, 10, 20}, 1},
		{[]float64{1, 2, 3}, []float64{9, 1, 0}, -1},
		// The ranks are 1, 2½, 2½, 4 and 1, 3, 2, 4. Their correlation is 4.5/√(4.5·5).
		{[]float64{1, 2, 2, 3}, []float64{1, 3, 2, 4}, 4.5 / math.Sqrt(4.5*5)},
	} {
		if got := Spearman(tt.x, tt.y); math.Abs(got-tt.want) > 1e-14 { // rounding of float64
			t.Errorf("ρ of %v and %v is %v, want %v", tt.x, tt.y, got, tt.want)
		}
	}
	if got := Spearman([]float64{1, 1, 1}, []float64{1, 2, 3}); !math.IsNaN(got) {
		t.Errorf("ρ of equal values is %v, want NaN", got)
	}
}

func TestSpearmanAgainstSciPy(t *testing.T) {
	const program = `
import json, sys
from scipy.stats import spearmanr
print(json.dumps([spearmanr(x, y).statistic for x, y in json.load(sys.stdin)]))
`
	rng := rand.New(rand.NewPCG(3, 4))
	var given [][2][]float64
	for range 200 {
		// With few distinct values there are ties.
		n, values := 20+rng.IntN(400), 2+rng.IntN(50)
		var x, y []float64
		for range n {
			x = append(x, float64(rng.IntN(values)))
			y = append(y, math.Floor(x[len(x)-1]/2+float64(rng.IntN(values))))
		}
		given = append(given, [2][]float64{x, y})
	}
	for i, want := range testonly.Python[[]float64](t, program, given) {
		if got := Spearman(given[i][0], given[i][1]); math.Abs(got-want) > 1e-12 { // rounding of sums up to 1e7
			t.Errorf("%d: ρ is %v, SciPy's is %v", i, got, want)
		}
	}
}
