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

// Device trains and encodes on the processor's cores. It implements [overcomplete/train.Device]. The zero value
// uses all cores. Results don't depend on the number of cores.
type Device struct {
	Workers    int  // number of goroutines; 0 means one per processor
	Overcommit bool // skip the check that the machine has enough memory
}

func (d Device) workers() int {
	if d.Workers > 0 {
		return d.Workers
	}
	return runtime.GOMAXPROCS(0)
}

func name(k *simd.Kernels) string { return "cpu " + k.Name }

// codeShare estimates the share of nonzeros after the first epoch, when it is largest: a half at λ = 0.5 on
// word2vec's vectors.
const codeShare = 0.5

// Memory estimates how many bytes of memory a training needs. The memory holds X, S and Q, the codes of the
// first epoch, matrices of the shape of D, and the workers' buffers.
func (d Device) Memory(rows, dim int, h model.Paper) float64 {
	perVector := 4.0 * 2 // bytes per coordinate of X: X, and a copy made when it was read
	if h.Center {
		perVector += 4 // the centred copy
	}
	const (
		state   = 8         // bytes of S and Q per coordinate
		code    = 8         // bytes of a nonzero: its column and value
		perAtom = 4 * 10    // bytes per coordinate of D: D, H, P, packed atoms, copies
		perTile = 8 + 4*2   // bytes per coordinate of a tile: codes at full capacity, random or dense codes
		program = 100 << 20 // the program and its batches
	)
	v, k, l := float64(rows), float64(h.Atoms), float64(dim)
	inFlight := min(float64(d.workers())*maxRows, v)
	return v*k*(state+codeShare*code) + k*l*perAtom + v*l*perVector + inFlight*k*perTile + program
}

func (d Device) checkMemory(rows, dim int, h model.Paper) error {
	what := fmt.Sprintf("%d rows × %d sparse dimensions need", rows, h.Atoms)
	// No array is larger than this: K columns, and a row per vector (S), per dimension (D) or per row of a tile.
	largest := 4 * float64(h.Atoms) * float64(max(rows, dim)+2*maxRows)
	if h.Atoms > math.MaxInt32 { // columns of codes are int32
		largest = math.Inf(1)
	}
	return d.checkNeed(what, d.Memory(rows, dim, h), largest)
}

// checkNeed returns an error if a task needs more bytes than [memory.Limit]: allocating or filling them would
// end the program. The argument what names the task in the error. With d.Overcommit, checkNeed returns an error only
// if no machine can address the bytes, or the largest array.
func (d Device) checkNeed(what string, bytes, largest float64) error {
	what = fmt.Sprintf("%s about %.1f GB", what, bytes/1e9)
	if max(bytes, largest) > backend.Addressable {
		return fmt.Errorf("%w: %s, which is more than any machine has", backend.ErrMemory, what)
	}
	if limit, ok := memory.Limit(); ok && !d.Overcommit && bytes > float64(limit) {
		return fmt.Errorf("%w: %s, and there can be %.1f GB", backend.ErrMemory, what, float64(limit)/1e9)
	}
	return nil
}
