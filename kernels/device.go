package kernels

import (
	"errors"
	"fmt"
)

// Device is an NVIDIA GPU.
type Device struct {
	Index        int // as the CUDA driver counts, which CUDA_VISIBLE_DEVICES may change
	Name         string
	Major, Minor int    // compute capability
	Free, Total  uint64 // bytes of memory; Free is 0 where it is not known
	Driver       string // newest version of CUDA that the driver supports, such as "12.4"
	Problem      string // why the GPU can't be started now, "" if it can or was not tried
}

// ErrUnavailable is returned, wrapped, when no GPU can be used, or not the one
// that was asked for.
var ErrUnavailable = errors.New("GPU unavailable")

// oldestMajor is the compute capability (its first number) that the kernels are
// compiled for, and newer ones can run: that of the A100, the first with TF32.
const oldestMajor = 8

// Usable returns why the kernels can't run on the device, or nil.
func (d Device) Usable() error {
	if d.Major < oldestMajor {
		return fmt.Errorf("%w: GPU %d (%s) has compute capability %d.%d, want %d.0 or higher",
			ErrUnavailable, d.Index, d.Name, d.Major, d.Minor, oldestMajor)
	}
	if d.Problem != "" {
		return fmt.Errorf("%w: GPU %d (%s): %s", ErrUnavailable, d.Index, d.Name, d.Problem)
	}
	return nil
}
