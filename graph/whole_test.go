package graph

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	gonum "gonum.org/v1/gonum/floats"
	"gorgonia.org/tensor"

	"overcomplete/internal/testonly/near"
)

// With λ = 0 and a step of size 1, codes go from Z along the loss's gradient.
func TestEncodeGradient(t *testing.T) {
	for _, l := range losses {
		p := newProblem(5, 4, 7, 3)
		p.spec.Loss, p.spec.Lambda = l.loss, 0
		p.inputs["s"] = []float64{1}
		got := slices.Clone(p.inputs["Z"])
		gonum.Sub(got, run(t, Encode, p, tensor.Float64)["A"])
		want := fd.Gradient(nil, func(z []float64) (sum float64) {
			for _, r := range residual(p, map[string][]float64{"X": p.inputs["X"], "A": z, "D": p.inputs["D"]}) {
				sum += l.each(r)
			}
			return sum
		}, p.inputs["Z"], &fd.Settings{Formula: fd.Central})
		near.Equal(t, l.name+" gradient of Z", got, want, 1e-5)
	}
}

// Each atom goes in the direction in which tr(DᵀGD) − 2tr(DᵀB) + c‖D − W‖² is least for it:
// there, at the length that this asks for, its gradient is zero.
func TestLearnMinimises(t *testing.T) {
	p := newProblem(5, 1, 7, 3)
	_, k, l := p.sizes()
	D, G, B, W, c := p.inputs["D"], p.inputs["G"], p.inputs["B"], p.inputs["W"], p.inputs["c"][0]
	got := run(t, Learn, p, tensor.Float64)["D"]
	for a := range k {
		atom := got[a*l:][:l]
		if norm := gonum.Norm(atom, 2); math.Abs(norm-p.spec.Norm) > 1e-12 {
			t.Errorf("atom %d has norm %v, want %v", a, norm, p.spec.Norm)
		}
		traces := func(atom []float64) (sum float64) {
			D := slices.Clone(D)
			copy(D[a*l:], atom)
			for i := range k {
				for j := range l {
					for other := range k {
						sum += D[i*l+j] * G[i*k+other] * D[other*l+j]
					}
					sum += -2*D[i*l+j]*B[i*l+j] + c*(D[i*l+j]-W[i*l+j])*(D[i*l+j]-W[i*l+j])
				}
			}
			return sum
		}
		settings := &fd.Settings{Formula: fd.Central}
		slope := fd.Gradient(nil, traces, D[a*l:][:l], settings)
		direction := slices.Clone(D[a*l:][:l]) // of an atom without use
		if g := G[a*k+a]; g > 0 {
			gonum.AddScaled(direction, -1/(2*(g+c)), slope)
			if norm := gonum.Norm(fd.Gradient(nil, traces, direction, settings), 2); norm > 1e-7 {
				t.Errorf("atom %d: the gradient has norm %v at the minimum", a, norm)
			}
		}
		gonum.Scale(p.spec.Norm/gonum.Norm(direction, 2), direction)
		near.Equal(t, fmt.Sprint("atom ", a), atom, direction, 1e-6)
	}
}

// A row of the problem that is tested with goes on, and another restarts.
func TestEncodeRestarts(t *testing.T) {
	p := newProblem(7, 6, 9, 4)
	out := encodeByHand(p)
	restarts := 0
	for i := range p.words {
		if slices.Equal(out["A"][i*9:][:9], out["Z"][i*9:][:9]) {
			restarts++
		}
	}
	if restarts == 0 || restarts == p.words {
		t.Errorf("%d of %d words restart", restarts, p.words)
	}
}

// The typed steps mean what the tape computes; an atom update what it computes atom by
// atom, each with those before it moved.
func TestWholeProgramsMatchTape(t *testing.T) {
	for _, change := range []func(*Spec){
		func(*Spec) {},
		func(s *Spec) { s.Nonnegative = true },
		func(s *Spec) { s.Lambda = 0 },
		func(s *Spec) { s.Lambda = 10 }, // most codes are 0
		func(s *Spec) { s.Norm = 1 },
	} {
		p := newProblem(7, 6, 9, 4)
		change(&p.spec)
		_, k, l := p.sizes()
		want := run(t, Encode, p, tensor.Float64)
		moved := p
		moved.inputs = map[string][]float64{"D": slices.Clone(p.inputs["D"]), "G": p.inputs["G"], "B": p.inputs["B"], "W": p.inputs["W"], "c": p.inputs["c"]}
		for a := range k {
			atoms := run(t, Learn, moved, tensor.Float64)["D"]
			copy(moved.inputs["D"][a*l:][:l], atoms[a*l:])
		}
		want["D"] = moved.inputs["D"]
		for _, c := range []struct {
			build Build
			names []string
		}{{Encode, []string{"A", "Z"}}, {Learn, []string{"D"}}} {
			program, err := Compile(c.build, p.spec)
			if err != nil {
				t.Fatal(err)
			}
			if len(program.Steps) != 1 {
				t.Errorf("no single step in\n%v", program)
			}
			in := newInterpreter(p, program)
			in.run(program.Steps[0], true)
			for _, name := range c.names {
				near.Equal(t, fmt.Sprintf("%+v: %s", p.spec, name), in.read(name), want[name], 1e-12)
			}
		}
	}
}

// An atom without use keeps its direction, and so does one that the least of the trace
// leaves none.
func TestLearnKeepsAtoms(t *testing.T) {
	p := problem{spec: Spec{Atoms: 3, Dim: 2, Norm: 2}, words: 1, inputs: map[string][]float64{
		"D": {3, 4, 0, -1, 1, 0},
		"G": {1e-9, 0, 0, 0, 5, 0, 0, 0, 5}, // the first has no use
		"B": {7, 7, 0, 0, 0, 3},             // the second goes to 0
		"W": make([]float64, 6), "c": {0},
	}}
	near.Equal(t, "D", run(t, Learn, p, tensor.Float64)["D"], []float64{1.2, 1.6, 0, -2, 0, 2}, 1e-15)
}

// Codes are those of one word's own step, whatever the loss of training is.
func ExampleEncode() {
	p, err := Compile(Encode, Spec{Atoms: 3000, Dim: 300, Lambda: 0.5, Nonnegative: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	// Output:
	// encode: 1 step, 2 products
	//   1 proximal n×K, two steps as one
	//       decode n×L
	//           p1 = Z · D
	//           R = X − p1
	//           keep R
	//       correlate n×K
	//           p2 = R · Dᵀ
	//           A′ = max(soft(Z + 2·s∘p2, 0.5·s), 0)
	//           onward = m∘[Σ_row (Z − A′)∘(A − A′) ≥ 0]
	//           Z′ = A′ + diag(onward)·(A′ − A)
	//           keep A′, Z′
}

func ExampleLearn() {
	p, err := Compile(Learn, Spec{Atoms: 3000, Dim: 300, Norm: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	// Output:
	// learn: 1 step, 1 product
	//   1 atom update K×L, each atom in turn
	//       accumulate K×L
	//           p1 = G · D
	//           U = D − (diag(G) + c)⁻¹·(c∘(D − W) + p1 − B)
	//           D′ = 2·unit(U)
	//           keep D′
}
