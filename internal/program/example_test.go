package program_test

import (
	"fmt"

	"overcomplete/graph"
	"overcomplete/internal/program"
)

// `overcomplete graph` prints the listing.
func ExampleDictionary() {
	p, err := program.Dictionary(graph.Spec{Atoms: 3000, Dim: 300, Lambda: 0.5, Tau: 1e-5, Rate: 0.05})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(p)
	// Output:
	// dictionary
	//   1 decode n×L
	//       p1 = A · D
	//       R = X − p1
	//       loss = Σ R²
	//   2 update, three steps as one
	//       accumulate K×L
	//           p2 = Aᵀ · R
	//           p3 = (A²)ᵀ · (R²)
	//           H′ = H + max(4·p3 − 8e−05·D∘p2 + 4e−10·n∘D², 0)
	//           P = (2e−05·n∘D − 2·p2)/√(H′ + 1e−30)
	//       decode n×L
	//           p4 = A · P
	//           alpha = clamp(−20·Σ R∘p4 / Σ p4², 0, 1)
	//       elementwise K×L
	//           D′ = D − 0.05·alpha∘P
}

// Another loss changes instructions of the program, and nothing else.
func ExampleCode() {
	p, err := program.Code(graph.Spec{Atoms: 3000, Dim: 300, Lambda: 0.5, Tau: 1e-5, Rate: 0.05, Loss: graph.Huber(0.3), Nonnegative: true})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(p)
	// Output:
	// code
	//   1 decode n×L
	//       p1 = A · D
	//       R = X − p1
	//       E = R − max(|R| − 0.3, 0)∘sign(R)
	//   2 correlate n×K
	//       p = E · Dᵀ
	//       S′ = S − 2·p
	//       Q′ = Q + 4·p²
	//       a = shrink(S′, Q′, t; λ=0.5, η=0.05), at least 0
	//   3 decode n×L
	//       p = a · D
	//       β = clamp(Σ_row X∘p / Σ_row p², 0, 1)
	//       A′ = diag(β)·a
	//       R′ = X − β∘p
	//       loss = Σ (R′² − max(|R′| − 0.3, 0)²)
	//       error = Σ R′²
}
