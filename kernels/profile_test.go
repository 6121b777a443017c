//go:build gpu

package kernels

import (
	"math"
	"testing"
	"time"

	"overcomplete/graph"
	"overcomplete/train"
)

// Launches are counted, timed and told apart, and floors are those that the
// kernels' sources state.
func TestProfile(t *testing.T) {
	const words, atoms, dim, batch, codeBatch = 100, 12, 8, 40, 64
	h := train.Paper()
	h.Atoms, h.DictionarySteps = atoms, 2
	p := train.Problem{X: make([]float32, words*dim), Dim: dim, Hyperparameters: h}
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
	const decodes = 2 * (steps + codeSteps)
	want := map[string]KernelTime{
		"decode_fp32": {Launches: decodes, Bytes: 4 * (4*words*(atoms+dim) + decodes*atoms*dim), Flops: 3 * 4 * 2 * words * atoms * dim},
		"accumulate_fp32": {Launches: steps, Bytes: 4 * (words*(atoms+dim) + steps*2*atoms*dim),
			Flops: 3 * 4 * words * atoms * dim},
		"correlate_fp32": {Launches: codeSteps, Bytes: 20*words*atoms + 4*(words*dim+codeSteps*atoms*dim), Flops: 3 * 2 * words * atoms * dim},
		"finish_codes":   {Launches: codeSteps, Bytes: 4 * words * atoms},
	}
	var sum float64
	for i, k := range times {
		sum += k.Seconds
		if k.Seconds <= 0 || i > 0 && k.Seconds > times[i-1].Seconds {
			t.Errorf("%s took %v s", k.Name, k.Seconds)
		}
		if k.Name == "body" || k.Name == "totals" {
			if k.Bytes == 0 || k.Flops != 0 {
				t.Errorf("%+v", k)
			}
			continue
		}
		w, ok := want[k.Name]
		if delete(want, k.Name); !ok || k.Launches != w.Launches || k.Bytes != w.Bytes || k.Flops != w.Flops {
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
	if err != nil || !(p.CopyBytes > 0 && p.TF32Flops > 0) || math.IsInf(p.CopyBytes+p.TF32Flops, 0) {
		t.Errorf("%+v, error %v", p, err)
	}
	if _, err := Measure(99); err == nil {
		t.Error("there is a GPU 99")
	}
}
