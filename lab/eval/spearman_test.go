package eval

import (
	"math"
	"testing"
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
