package cpu

import (
	"fmt"
	"math"
	"runtime"

	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
	"overcomplete/internal/simd"
	"overcomplete/model"
)

// Device trains and encodes on the processor's cores: it is a [overcomplete/train.Device]. The zero value
// uses all of them. Results do not depend on their number.
type Device struct {
	Workers    int  // goroutines; 0 means one for each processor
	Overcommit bool // train even if the machine seems to have too little memory
}

func (d Device) workers() int {
	if d.Workers > 0 {
		return d.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// name identifies the device in results.
func name(k *simd.Kernels) string { return "cpu " + k.Name }

// addressable bounds the bytes of a process on any machine.
const addressable = min(1<<46, math.MaxInt)

// codeShare estimates the share of nonzeros after the first epoch, when it is largest: a half at λ = 0.5 on
// word2vec's vectors.
const codeShare = 0.5

// Memory estimates the bytes of a training: S and Q, the codes of the first epoch, X, matrices of the size
// of D, and the memory of the workers.
func (d Device) Memory(words, dim int, h model.Paper) float64 {
	state := 8.0 // bytes of S and Q, a coordinate
	if h.Float16 {
		state = 4
	}
	asVectors := 4.0 * 2 // bytes a coordinate: X, and a copy from when it was read
	if h.Center {
		asVectors += 4 // or less the mean
	}
	const (
		code    = 8         // bytes of a nonzero: its column and value
		asAtoms = 4 * 10    // bytes a coordinate: D, H, P, packed atoms, copies
		asTile  = 8 + 4*2   // bytes a coordinate: codes with room for all, random or dense ones
		program = 100 << 20 // and batches of words
	)
	v, k, l := float64(words), float64(h.Atoms), float64(dim)
	inHand := min(float64(d.workers())*mostWords, v)
	return v*k*(state+codeShare*code) + k*l*asAtoms + v*l*asVectors + inHand*k*asTile + program
}

// checkMemory refuses a training that the machine has no memory for.
func (d Device) checkMemory(words, dim int, h model.Paper) error {
	what := fmt.Sprintf("%d words × %d sparse dimensions need", words, h.Atoms)
	// The largest array of rows of K numbers: S has one per word, D one per dimension, workers some more.
	largest := 4 * float64(h.Atoms) * float64(max(words, dim)+2*mostWords)
	if h.Atoms > math.MaxInt32 { // which columns of codes can't be
		largest = math.Inf(1)
	}
	return d.checkNeed(what, d.Memory(words, dim, h), largest)
}

// checkNeed refuses a need of more bytes than there can be: allocating them would end the program, at once
// or when they are filled. With d.Overcommit it refuses only arrays that no machine can address.
func (d Device) checkNeed(what string, bytes, largest float64) error {
	what = fmt.Sprintf("%s about %.1f GB", what, bytes/1e9)
	if max(bytes, largest) > addressable {
		return fmt.Errorf("%w: %s, which is more than any machine has", backend.ErrMemory, what)
	}
	if total, ok := memory.Total(); ok && !d.Overcommit && bytes > float64(total) {
		return fmt.Errorf("%w: %s, and there can be %.1f GB", backend.ErrMemory, what, float64(total)/1e9)
	}
	return nil
}
