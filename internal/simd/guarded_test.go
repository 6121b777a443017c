package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// guarded is memory with NaNs, or large integers, around every slice. Reads beyond a slice give wrong results; check
// finds writes beyond it. Slices aren't aligned.
type guarded struct {
	t       *testing.T
	rng     *rand.Rand
	written []func() (at int, yes bool) // by slice: reports whether something was written beyond it, and where
}

const guards = 80 // more than the widest register has bytes

func newGuarded(t *testing.T) *guarded {
	return &guarded{t: t, rng: rand.New(rand.NewPCG(1, 2))}
}

// floats returns n random numbers between guards.
func (g *guarded) floats(n int) []float32 {
	guard := math.Float32frombits(0x7fc00123)
	x := between(g, n, guard, func(x float32) bool { return math.Float32bits(x) == math.Float32bits(guard) })
	copy(x, g.normal(n))
	return x
}

// between returns n zeros between guards.
func between[T any](g *guarded, n int, guard T, intact func(T) bool) []T {
	at := guards + g.rng.IntN(16)
	block := slices.Repeat([]T{guard}, at+n+guards)
	g.written = append(g.written, func() (int, bool) {
		for j, x := range block {
			if (j < at || j >= at+n) && !intact(x) {
				return j - at, true
			}
		}
		return 0, false
	})
	x := block[at : at+n : at+n]
	clear(x)
	return x
}

// normal returns n random numbers.
func (g *guarded) normal(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(g.rng.NormFloat64())
	}
	return x
}

// check fails if something was written between slices.
func (g *guarded) check(what string) {
	g.t.Helper()
	for i, written := range g.written {
		if at, yes := written(); yes {
			g.t.Errorf("%s: wrote at %d of slice %d", what, at, i)
			return
		}
	}
	g.written = nil
}

// unit is the largest relative error of rounding to float32.
const unit = 1.0 / (1 << 24)

// sum is an expected value: a sum in float64 and the sum of the magnitudes of its terms. In float32, n roundings
// of partial sums, in any order, fused or not, change it by n·unit·size at most.
type sum struct{ value, size float64 }

func (s *sum) add(x float64) {
	s.value += x
	s.size += math.Abs(x)
}

// times returns the sum with each term multiplied by x.
func (s sum) times(x float64) sum { return sum{s.value * x, s.size * math.Abs(x)} }

// near reports whether x is the sum within n roundings.
func (s sum) near(x float32, roundings int) bool {
	return near(x, s.value, float64(roundings)*unit*s.size)
}

// near reports whether x equals want within err plus the spacing of denormal numbers.
func near(x float32, want, err float64) bool {
	return math.Abs(float64(x)-want) <= err+math.SmallestNonzeroFloat32
}

func wide(x float32) float64 { return float64(x) }

var lengths = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 31, 32, 33, 47, 50, 64, 65, 300, 301}
