package cpu

import (
	"context"
	"math/rand/v2"
	"testing"

	"overcomplete/graph"
)

// trained returns a backend of 1,000 words, 300 → 3000, after some epochs, when
// its codes are sparse.
func trained(b *testing.B) *Backend {
	const words, dim, atoms = 1000, 300, 3000
	rng := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, words*dim)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * 3 / 17.3) // a mean norm of 3
	}
	be, err := New(graph.Spec{Atoms: atoms, Dim: dim, Lambda: 0.5, Tau: 1e-5, Rate: 0.05}, x, Options{Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	for t := 1; t <= 4; t++ {
		if _, err := be.DictionaryPass(context.Background(), 8); err != nil {
			b.Fatal(err)
		}
		if _, err := be.CodePass(context.Background(), t); err != nil {
			b.Fatal(err)
		}
	}
	return be
}

// The dense product R·Dᵀ, 2KL flops a word, is the floor of a code pass.
func BenchmarkCodePass(b *testing.B) {
	be := trained(b)
	epoch := 5
	for b.Loop() {
		if _, err := be.CodePass(context.Background(), epoch); err != nil {
			b.Fatal(err)
		}
		epoch++
	}
	passes := float64(b.N) * float64(be.words)
	b.ReportMetric(b.Elapsed().Seconds()*1e6/passes, "µs/word")
	b.ReportMetric(2*float64(be.spec.Atoms*be.spec.Dim)*passes/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// Eight flops for each nonzero and dimension (AD, AᵀR, (A∘A)ᵀ(R∘R) and AP) are
// the floor of a dictionary pass, and the update of D and H for each batch.
func BenchmarkDictionaryPass(b *testing.B) {
	be := trained(b)
	nonzeros := float64(be.summary(make([]float64, len(be.tiles))).Nonzeros)
	for b.Loop() {
		if _, err := be.DictionaryPass(context.Background(), 8); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/float64(be.words), "µs/word")
	b.ReportMetric(8*nonzeros*float64(be.spec.Dim)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
