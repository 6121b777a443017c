package cpu

import (
	"math/rand/v2"
	"testing"
	"time"

	"overcomplete/internal/backend"
	"overcomplete/internal/simd"
	"overcomplete/train"
)

// Benchmarks run at the level that OVERCOMPLETE_CPU names, or the best. Shares of
// the peak are of what the core does in the same run with nothing to load.

// trained returns a trainer of 4,000 words, 300 → 3000, after some epochs, when
// its codes are sparse. S and Q fit in no cache.
func trained(b *testing.B, workers int) *minibatch {
	const words, dim, atoms = 4000, 300, 3000
	rng := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, words*dim)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * 3 / 17.3) // a mean norm of 3
	}
	h := train.Paper()
	h.Atoms = atoms
	be := minibatchOf(b, backend.Problem{X: x, Dim: dim, Hyperparameters: h}, workers)
	for t := 1; t <= 6; t++ {
		if _, err := be.Epoch(b.Context(), t, words/128); err != nil {
			b.Fatal(err)
		}
	}
	return be
}

// peak returns the flops a second of one core that is left alone with its
// registers: the best of many tries, as others may use the machine.
func peak(k *simd.Kernels) float64 {
	best := 0.0
	for range 200 {
		start := time.Now()
		flops := k.FMA(50_000)
		best = max(best, flops/time.Since(start).Seconds())
	}
	return best
}

// report gives what so many flops an iteration are in GFLOP/s, and a share of the
// peak of the lanes' cores.
func report(b *testing.B, be *minibatch, flops float64) {
	rate := flops * float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate/1e9, "GFLOP/s")
	b.ReportMetric(100*rate/float64(len(be.lanes))/peak(be.kernels), "%peak")
}

// The fused step alone, on one core: R·Dᵀ, 2KL flops a word, is its floor; dual
// averaging is not counted.
func BenchmarkCorrelate(b *testing.B) {
	be := trained(b, 1)
	l, x, epoch, tile := be.lanes[0], be.codeStep, 7, 0
	pack(&be.packed, be.kernels, be.dictionary, be.atoms, be.lanes)
	for b.Loop() {
		b.StopTimer()
		lo := tile * be.tileWords
		be.bind(&l.tile, x, lo, lo+be.tileWords, epoch, be.lanes)
		l.tile.packed, l.tile.lent = be.packed, true
		x.step(x.Steps[0], &l.tile, be.lanes)
		b.StartTimer()
		x.step(x.Steps[1], &l.tile, be.lanes)
		if tile++; (tile+1)*be.tileWords > be.words {
			tile = 0
			epoch++
		}
	}
	report(b, be, 2*float64(be.atoms*be.dim*be.tileWords))
}

// A code pass is the fused step, 2KL flops a word, two sparse products, R = X − AD and
// aD, 2L for each nonzero, and the rest, which is small.
func BenchmarkCodePass(b *testing.B) {
	be := trained(b, 0)
	var sums backend.Sums
	be.sum(make([]measures, len(be.tiles)), &sums)
	nonzeros := sums.Nonzeros
	epoch := 7
	for b.Loop() {
		if err := be.codePass(b.Context(), epoch, &sums); err != nil {
			b.Fatal(err)
		}
		epoch++
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*be.words), "µs/word")
	report(b, be, 2*float64(be.dim)*(float64(be.words*be.atoms)+2*float64(nonzeros)))
}

// Nine flops for each nonzero and dimension (AD, AᵀR, (A∘A)ᵀ(R∘R) and AP) are
// the floor of a dictionary pass. So is, for each batch, what passes through level
// 3, five matrices of D's size: D and H, H′, P and D′.
func BenchmarkDictionaryPass(b *testing.B) {
	be := trained(b, 0)
	var sums backend.Sums
	be.sum(make([]measures, len(be.tiles)), &sums)
	nonzeros := sums.Nonzeros
	sums.Steps = 0
	for b.Loop() {
		if err := be.dictionaryPass(b.Context(), be.words/128, &sums); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*be.words), "µs/word")
	report(b, be, 9*float64(be.dim)*float64(nonzeros))
	b.ReportMetric(5*4*float64(be.atoms*be.dim*sums.Steps)/b.Elapsed().Seconds()/1e9, "GB/s")
}
