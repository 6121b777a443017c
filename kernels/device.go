package kernels

import (
	"errors"
	"fmt"

	"overcomplete/model"
)

// GPU is an NVIDIA GPU.
type GPU struct {
	Index        int    // from 0, among the GPUs that CUDA_VISIBLE_DEVICES permits
	Name         string // for a MIG instance it ends like "MIG 1g.5gb"
	UUID         string // a value for CUDA_VISIBLE_DEVICES; "" if the driver has no UUIDs
	Major, Minor int    // compute capability
	Total        uint64 // bytes of memory
	Driver       string // newest version of CUDA that the driver supports, such as "12.4"
}

// Device trains and encodes on an NVIDIA GPU. It implements [overcomplete/train.Device]. The zero value is the
// first GPU, with TF32. If the GPU can't be used, Trainer, Learner and Encoder return an error that wraps
// [ErrUnavailable].
type Device struct {
	Index     int       // index of the GPU; see [GPU]
	Precision Precision // precision of the paper's training; "" means tf32
	Memory    int64     // limit of device memory in bytes; 0 means the free memory

	// Compiling, if not nil, is called for each new CUDA context before the driver compiles kernels.
	// Compilation takes seconds unless the kernels are cached. Afterwards done is called.
	Compiling func() (done func())

	pool *contextPool // set by Start; nil means a CUDA context for each use
}

// Precision is the precision of the matrix products of the paper's training: fp16, tf32 or fp32. Other computations
// are in float32, and sums over rows in float64. Encoders and learners ignore it. Instead of fp16, a training uses tf32
// if its loss isn't the squared one, if vectors have more than 320 elements, or on a GPU with less than 163 KB of
// shared memory per block.
type Precision string

const (
	fp16 Precision = "fp16" // products of scaled float16 factors (11 bits), with float32 sums
	tf32 Precision = "tf32" // products of TF32 factors (11 bits), with float32 sums
	fp32 Precision = "fp32" // each factor is a sum of two TF32 numbers, so that a product takes three TF32 products
)

// Supports returns an error that wraps [ErrUnsupported] if only the CPU trains with these hyperparameters.
func Supports(h model.Paper) error {
	if h.AuthorsOrder {
		return fmt.Errorf("%w: the authors' order, which updates word by word", ErrUnsupported)
	}
	return nil
}

// ErrUnsupported is wrapped by the errors of features that only the CPU supports.
var ErrUnsupported = errors.New("not supported on GPUs")

// ErrUnavailable is wrapped by the errors of a GPU that can't be used.
var ErrUnavailable = errors.New("GPU unavailable")

// oldestMajor is the lowest major compute capability that the kernels support: the A100's.
const oldestMajor = 8

// Usable returns nil if the kernels can run on the GPU, otherwise an error that wraps [ErrUnavailable].
func (g GPU) Usable() error {
	if g.Major < oldestMajor {
		return fmt.Errorf("%w: GPU %d (%s) has compute capability %d.%d, want %d.0 or higher",
			ErrUnavailable, g.Index, g.Name, g.Major, g.Minor, oldestMajor)
	}
	return nil
}
