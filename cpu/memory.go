package cpu

import (
	"fmt"
	"math"

	"overcomplete/graph"
	"overcomplete/internal/memory"
	"overcomplete/train"
)

// addressable is the most bytes that any machine gives to a process.
const addressable = min(1<<46, math.MaxInt)

// codeShare is the share of codes that are taken to be nonzero after the first
// epoch, when they are most. At λ = 0.5 it is a half on word2vec's vectors; at a
// smaller λ it may be up to 1, and soon gets smaller.
const codeShare = 0.5

// Memory returns about how many bytes training needs for vectors of so many
// words: S and Q, the codes of the first epoch, X, some matrices of D's size, and
// what each worker has in hand.
func Memory(spec graph.Spec, words int, o Options) float64 {
	state := 8.0 // bytes of S and Q, a coordinate
	if o.Float16 {
		state = 4
	}
	const (
		code      = 8         // bytes of a nonzero: its column and value
		asAtoms   = 4 * 10    // bytes a coordinate: D, H, P, packed atoms, copies
		asVectors = 4 * 2     // bytes a coordinate: X, and a copy from when it was read
		asTile    = 8 + 4*2   // bytes a coordinate: codes with room for all, random or dense ones
		program   = 100 << 20 // and batches of words
	)
	v, k, l := float64(words), float64(spec.Atoms), float64(spec.Dim)
	inHand := min(float64(o.workers())*mostWords, v)
	return v*k*(state+codeShare*code) + k*l*asAtoms + v*l*asVectors + inHand*k*asTile + program
}

// checkMemory refuses a training that the machine has no memory for: asking for
// it would end the program, now or, worse, when it is filled. With o.Overcommit
// it only refuses what no machine has.
func checkMemory(spec graph.Spec, words int, o Options) error {
	limit := float64(addressable)
	if total, ok := memory.Total(); ok && !o.Overcommit {
		limit = float64(total)
	}
	if bytes := Memory(spec, words, o); bytes > limit || spec.Atoms > math.MaxInt32 {
		return fmt.Errorf("%w: %d words × %d sparse dimensions need about %.1f GB, and there can be %.1f GB",
			train.ErrMemory, words, spec.Atoms, bytes/1e9, limit/1e9)
	}
	return nil
}
