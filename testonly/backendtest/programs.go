package backendtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/program"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
	"overcomplete/vectors"
)

// RunProgram runs a program once on all of a trainer's rows and returns the outputs that are numbers. The other
// outputs are part of the trainer's state.
type RunProgram func(b backend.Trainer, p *program.Program, epoch int) (map[string]float64, error)

// oneStep is the tolerance after one step in float32, relative to the largest number. Sums of some tens of terms
// are rounded by 6e-8 each, and AdaGrad and ratios divide by small sums.
const oneStep = 2e-5

// RunPrograms tests that a device's results of the programs equal the tape machine's results of their graphs, for
// each loss. It runs an update both as one step and as three.
func RunPrograms(t *testing.T, newTrainer New, run RunProgram) {
	inParts := func(s graph.Spec) (*program.Program, error) {
		p, err := program.Dictionary(s)
		if err == nil {
			u := p.Steps[1].(*program.Update)
			p.Steps = []program.Step{p.Steps[0], u.Accumulate, u.Search, u.Move}
		}
		return p, err
	}
	for _, c := range []struct {
		name    string
		graph   graph.Build
		program func(graph.Spec) (*program.Program, error)
		method  model.Method
	}{
		{"dictionary", graph.Dictionary, program.Dictionary, model.Signed},
		{"dictionary in parts", graph.Dictionary, inParts, model.Signed},
		{"code", graph.Code, program.Code, model.Signed},
		{"nonnegative code", graph.Code, program.Code, model.Nonnegative},
		{"authors", graph.Authors, program.Authors, model.Signed},
		{"evaluate", graph.Evaluate, program.Evaluate, model.Signed},
	} {
		for _, loss := range []string{model.Squared, model.Huber} {
			taus := []float64{1e-3, 0}
			if strings.HasPrefix(c.name, "dictionary") {
				taus = append(taus, 0.5) // the coefficient 4τ² of H is 1 per row
			}
			for _, tau := range taus {
				t.Run(fmt.Sprintf("%s/%s/tau %v", c.name, loss, tau), func(t *testing.T) {
					runProgram(t, newTrainer, run, c.graph, c.program, func(p *backend.Problem) {
						if p.Hyperparameters.Method, p.Hyperparameters.Tau = c.method, tau; loss == model.Huber {
							huber(p)
						}
					})
				})
			}
		}
	}
}

// start opens a trainer for a small problem.
func start(t *testing.T, newTrainer New, change func(*backend.Problem)) (backend.Trainer, backend.Problem) {
	t.Helper()
	p := problem{rows: 20, atoms: 17, dim: 6, batch: 20, change: change}.make(false, 1)
	return newTrainer.open(t, p, 2), p
}

// runProgram compares a program with the tape machine, for a random state.
func runProgram(t *testing.T, newTrainer New, run RunProgram, build graph.Build, compile func(graph.Spec) (*program.Program, error), change func(*backend.Problem)) {
	const epoch = 3
	b, p := start(t, newTrainer, change)
	rows, k := p.Len(), p.Hyperparameters.Atoms
	in := map[string][]float64{"X": encodetest.Widen(p.X), "n": {float64(rows)}, "t": {epoch}}

	rng := rand.New(rand.NewPCG(7, 7))
	codes := &vectors.CSR{Rows: rows, Cols: k, Ptr: []int64{0}}
	for range rows {
		for j := range k {
			if rng.IntN(3) == 0 {
				codes.Index, codes.Value = append(codes.Index, int32(j)), append(codes.Value, float32(rng.NormFloat64()))
			}
		}
		codes.Ptr = append(codes.Ptr, int64(len(codes.Value)))
	}
	in["A"] = dense(t, codes)
	random := func(name string, n int, squares bool) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
			if squares {
				x[i] *= x[i]
			}
		}
		in[name] = encodetest.Widen(x)
		return x
	}
	testonly.Must(t, b.Restore(random("D", k*p.Dim, false), codes))
	matrices := map[string]checkpoint.Matrix{"H": checkpoint.SquaredGradients, "S": checkpoint.GradientSums, "Q": checkpoint.SquareSums}
	for name, m := range matrices {
		rest := random(name, map[string]int{"H": k * p.Dim, "S": rows * k, "Q": rows * k}[name], name != "S")
		testonly.Must(t, b.LoadState(m, func(part []float32) error {
			rest = rest[copy(part, rest):]
			return nil
		}))
	}

	expression, err := build(p.Spec(), rows)
	testonly.Must(t, err)
	want, err := expression.Run(in)
	testonly.Must(t, err)
	compiled, err := compile(p.Spec())
	testonly.Must(t, err)
	numbers, err := run(b, compiled, epoch)
	testonly.Must(t, err)
	for name, w := range want {
		var got []float64
		switch m, ok := matrices[name]; {
		case ok:
			got = encodetest.Widen(Saved(t, b, m))
		case name == "A":
			got = dense(t, Learned(t, b).Codes)
		case name == "D":
			got = encodetest.Widen(Learned(t, b).Dictionary)
		default:
			got = []float64{numbers[name]}
		}
		testonly.Near(t, name, got, w, oneStep)
	}
}
