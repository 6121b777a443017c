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

	// Peaks by clock rates; 0 if unknown.
	FLOPS     float64 // of TF32 products, per second: half of fp16's, three times fp32's
	Bandwidth float64 // of its memory, in bytes per second
}

// Device trains and encodes on an NVIDIA GPU: it is a [overcomplete/train.Device]. The zero value is the
// first GPU, with TF32. If the GPU can't be used, its methods return an error that wraps [ErrUnavailable].
type Device struct {
	Index     int       // of the GPU, as [GPUs] counts
	Precision Precision // of the products; "" means TF32
	Memory    int64     // bytes of the GPU's memory to use at most; 0 for what is free

	// Compiling, if not nil, is called before the driver compiles the kernels, which takes seconds unless
	// it has cached them; done is called after.
	Compiling func() (done func())

	// Timed, if not nil, is called after each kernel launch. Timing separates kernels that could overlap:
	// passes take longer.
	Timed func(Timing)

	pool *contextPool // of Start; nil means a CUDA context for each use
}

// Timing is the time of a kernel launch, and a lower bound of its work.
type Timing struct {
	Step    string // of a training's program, such as "dictionary 1", or empty
	Kernel  string
	Seconds float64
	FLOPs   float64 // of matrix products
	Bytes   float64 // read and written in device memory; 0 where it isn't known
}

// Precision is the precision of the products of matrices. All else is float32, and sums over rows are
// float64.
type Precision string

const (
	fp16 Precision = "fp16" // factors are float16, of 11 bits, scaled
	tf32 Precision = "tf32" // factors with 11 bits, as tensor cores take them; sums in float32
	fp32 Precision = "fp32" // factors in two TF32 parts each: three products for one
)

// Supports returns nil if GPUs train by the recipe, or an error that wraps [ErrUnsupported].
func Supports(h model.Paper) error {
	if h.AuthorsOrder {
		return fmt.Errorf("%w: the authors' order, which goes word by word", ErrUnsupported)
	}
	return nil
}

// ErrUnsupported is wrapped by errors of what only the CPU supports.
var ErrUnsupported = errors.New("no GPU does this")

// ErrUnavailable is wrapped by errors of a GPU that can't be used.
var ErrUnavailable = errors.New("GPU unavailable")

// oldestMajor is the major compute capability of the A100, which the kernels are compiled for.
const oldestMajor = 8

// Usable returns the reason why the kernels can't run on the GPU, or nil.
func (g GPU) Usable() error {
	if g.Major < oldestMajor {
		return fmt.Errorf("%w: GPU %d (%s) has compute capability %d.%d, want %d.0 or higher",
			ErrUnavailable, g.Index, g.Name, g.Major, g.Minor, oldestMajor)
	}
	return nil
}
