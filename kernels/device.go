package kernels

import (
	"errors"
	"fmt"

	"overcomplete/model"
)

// GPU is an NVIDIA GPU.
type GPU struct {
	Index        int    // as the CUDA driver counts, which CUDA_VISIBLE_DEVICES may change
	Name         string // which ends with such as "MIG 1g.5gb" for a slice of a GPU
	UUID         string // as CUDA_VISIBLE_DEVICES takes it, "" where the driver does not tell
	Major, Minor int    // compute capability
	Total        uint64 // bytes of memory
	Driver       string // newest version of CUDA that the driver supports, such as "12.4"
}

// Device trains and encodes on an NVIDIA GPU: it is a [overcomplete/train.Device]. Its zero value is
// the first GPU, with TF32. Where there is no GPU, or the kernels can't run on it, its
// methods return [ErrUnavailable], wrapped.
type Device struct {
	Index     int       // of the GPU, as [GPUs] counts
	Precision Precision // of the products; "" means TF32
	Memory    int64     // bytes of the GPU's memory to use at most; 0 for what is free

	// Compiling, if not nil, is called before the driver compiles kernels for the GPU, which
	// takes seconds where it does not have them from an earlier time, and done when it has.
	Compiling func() (done func())

	// Timed, if not nil, is called with the seconds of each kernel launch; step is that of a training's
	// program, such as "dictionary 1", or empty. Timing keeps kernels apart that could follow each
	// other at once, so that passes take longer than without.
	Timed func(step, kernel string, seconds float64)
}

// Precision is how products of matrices are computed. All else is float32, and
// sums over rows are float64.
type Precision string

const (
	FP16 Precision = "fp16" // factors are float16, of 11 bits, scaled
	TF32 Precision = "tf32" // factors with 11 bits, as tensor cores take them; sums in float32
	FP32 Precision = "fp32" // factors in two TF32 parts each: three products for one
)

// Supports returns nil if GPUs train by the recipe, or else an error that
// wraps [ErrUnsupported] and names what is of the CPU only.
func Supports(r model.Recipe) error {
	if paper, is := r.(model.Paper); is && paper.Algorithm == model.Authors {
		return fmt.Errorf("%w: the algorithm authors, which goes word by word", ErrUnsupported)
	}
	return nil
}

// ErrUnsupported is returned, wrapped, for what is done on the CPU only.
var ErrUnsupported = errors.New("no GPU does this")

// ErrUnavailable is returned, wrapped, when no GPU can be used, or not the one
// that was asked for.
var ErrUnavailable = errors.New("GPU unavailable")

// oldestMajor is the compute capability (its first number) that the kernels are
// compiled for, and newer ones can run: that of the A100, the first with TF32.
const oldestMajor = 8

// Usable returns why the kernels can't run on the device, or nil.
func (g GPU) Usable() error {
	if g.Major < oldestMajor {
		return fmt.Errorf("%w: GPU %d (%s) has compute capability %d.%d, want %d.0 or higher",
			ErrUnavailable, g.Index, g.Name, g.Major, g.Minor, oldestMajor)
	}
	return nil
}
