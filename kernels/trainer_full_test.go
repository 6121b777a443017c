//go:build gpu && full

package kernels

import (
	"math"
	"testing"

	gonum "gonum.org/v1/gonum/floats"

	"overcomplete/internal/backend"
	"overcomplete/testonly/backendtest"
	"overcomplete/testonly/encodetest"
	"overcomplete/train"
)

// Training with float16 factors, all of one scale, agrees with fp32 for vectors of any norm, even if one is much
// longer than the others.
func TestNorms(t *testing.T) {
	const rows, epochs = 200, 4
	for name, change := range map[string]func(x []float32){
		"0.001": func(x []float32) { resize(x, .001) }, "1": func(x []float32) { resize(x, 1) }, "3": func(x []float32) { resize(x, 3) },
		"300": func(x []float32) { resize(x, 300) }, "1e5": func(x []float32) { resize(x, 1e5) },
		"1, and one of 1000": func(x []float32) { resize(x, 1); resize(x[:21], 1000) },
	} {
		p := sample(rows)
		change(p.X)
		p.Hyperparameters.Lambda *= math.Sqrt(gonum.Dot(encodetest.Widen(p.X), encodetest.Widen(p.X))/rows) / 3
		expectSums(t, "norm "+name, p, trainedSums(t, p, fp16, epochs), trainedSums(t, p, fp32, epochs))
	}
}

// resize scales vectors to a root-mean-square norm.
func resize(x []float32, norm float64) {
	wide := encodetest.Widen(x)
	factor := norm / math.Sqrt(gonum.Dot(wide, wide)/float64(len(x)/21))
	for i := range x {
		x[i] = float32(factor * wide[i])
	}
}

// If an epoch has more dictionary steps than maxRepeated, they are launched without a graph.
func TestManySteps(t *testing.T) {
	const rows = maxRepeated + 1
	h := train.Paper()
	h.Atoms, h.DictionarySteps = 1, rows
	p := backend.Problem{X: make([]float32, rows), Dim: 1, Hyperparameters: h}
	b := open(t, p, tf32, 0)
	defer b.Close()
	b.gpu.cache = launchCache{key: 1, times: 1} // as if it were the second epoch
	if sums := backendtest.Trained(t, b, p.Batch(), 0, 1).Sums; sums.Steps != rows || b.gpu.cache.graph != nil {
		t.Errorf("%d steps, in a graph", sums.Steps)
	}
}
