//go:build gpu

package kernels

import (
	"math"
	"testing"
	"time"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/train"
)

// Launches are counted, timed and told apart, and floors are those that the
// kernels' sources state.
func TestProfile(t *testing.T) {
	const words, atoms, dim, batch, codeBatch = 100, 12, 8, 40, 64
	h := train.Paper()
	h.Atoms, h.DictionarySteps = atoms, 2
	p := backend.Problem{X: make([]float32, words*dim), Dim: dim, Hyperparameters: h}
	for i := range p.X {
		p.X[i] = float32(i%7) - 3
	}
	b := open(t, p, FP32, codeBatch)
	defer b.Close()
	passes := func() {
		t.Helper()
		if _, err := b.Epoch(t.Context(), 1, batch); err != nil {
			t.Fatal(err)
		}
	}
	passes()
	b.StartProfile()
	start := time.Now()
	passes()
	wall := time.Since(start).Seconds()
	times, err := b.Profile()
	if err != nil {
		t.Fatal(err)
	}

	// Dictionary steps have 40, 40 and 20 words, code steps 64 and 36. Each has
	// two products of codes and D.
	const steps, codeSteps = 3, 2
	decode := func(n float64) KernelTime {
		return KernelTime{Launches: int(n), Bytes: 4 * (words*(atoms+dim) + n*atoms*dim), Flops: 3 * 2 * words * atoms * dim}
	}
	want := map[string]KernelTime{
		"dictionary 1 decode_fp32": decode(steps),
		"dictionary 2 accumulate_fp32": {Launches: steps, Bytes: 4 * (words*(atoms+dim) + steps*2*atoms*dim),
			Flops: 3 * 4 * words * atoms * dim},
		"dictionary 3 decode_fp32": decode(steps),
		"code 1 decode_fp32":       decode(codeSteps),
		"code 2 correlate_fp32":    {Launches: codeSteps, Bytes: 20*words*atoms + 4*(words*dim+codeSteps*atoms*dim), Flops: 3 * 2 * words * atoms * dim},
		"code 3 decode_fp32":       decode(codeSteps),
		"code 3 finish_codes":      {Launches: codeSteps, Bytes: 4 * words * atoms},
	}
	var sum float64
	for i, k := range times {
		sum += k.Seconds
		if k.Seconds <= 0 || i > 0 && k.Seconds > times[i-1].Seconds {
			t.Errorf("%s took %v s", k.Name, k.Seconds)
		}
		if k.Registers < 1 || k.Local < 0 || !(k.Occupancy > 0 && k.Occupancy <= 1) {
			t.Errorf("%s takes %+v", k.Name, k)
		}
		if k.Name == "body" || k.Name == "totals" {
			countsOnly := k.Name == "totals" && k.Step == "dictionary 4" // adds up no rows
			if (k.Bytes == 0) != countsOnly || k.Flops != 0 {
				t.Errorf("%+v", k)
			}
			continue
		}
		name := k.Step + " " + k.Name
		w, ok := want[name]
		if delete(want, name); !ok || k.Launches != w.Launches || k.Bytes != w.Bytes || k.Flops != w.Flops {
			t.Errorf("%+v, want %+v", k, w)
		}
	}
	if len(want) > 0 || sum > wall {
		t.Errorf("missing %v; %v s in %v", want, sum, wall)
	}

	passes()
	if times, err := b.Profile(); err != nil || len(times) > 0 {
		t.Errorf("error %v and %d kernels when none were to be timed", err, len(times))
	}
}

// Of R = X − P and its row sums, what is read is X and P, what is written R.
// That R is read again is no traffic.
func TestTraffic(t *testing.T) {
	for _, test := range []struct {
		build graph.Build
		want  []int
	}{
		// X − AD; D, H, M, N → D' (as P is), H'; the line search's products with W
		// and R; D − αP.
		{graph.Dictionary, []int{3, 6, 2, 3}},
		{graph.Code, []int{3, 0, 2}},
	} {
		for i, s := range compiled(t, test.build, graph.Spec{Atoms: 10, Dim: 4, Tau: 1e-5, Rate: 0.05}, TF32).steps {
			if s.matrices != test.want[i] {
				t.Errorf("step %d (%T) moves %d matrices, want %d", i+1, s.Step, s.matrices, test.want[i])
			}
		}
	}
}

func TestMeasure(t *testing.T) {
	p, err := Measure(0)
	if err != nil || p.Multiprocessors < 1 {
		t.Errorf("%+v, error %v", p, err)
	}
	for _, x := range []float64{p.Clock, p.L2Size, p.CopyBytes, p.L2Bytes, p.TF32Flops, p.FP16Flops, p.Launch, p.GraphLaunch} {
		if !(x > 0) || math.IsInf(x, 0) {
			t.Errorf("%+v", p)
		}
	}
	if _, err := Measure(99); err == nil {
		t.Error("there is a GPU 99")
	}
}
