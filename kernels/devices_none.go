//go:build !gpu

package kernels

import "fmt"

// Devices returns all GPUs of the machine. In this build, without -tags gpu, it returns an
// error that wraps [ErrUnavailable].
func Devices() ([]Device, error) {
	_, err := Count()
	return nil, err
}

// Find returns the GPU with an index. In this build it returns an error that wraps
// [ErrUnavailable].
func Find(index int) (Device, error) {
	_, err := Count()
	return Device{}, err
}

// Count returns how many GPUs the machine has. In this build it returns an error that wraps
// [ErrUnavailable], and says how to build the program with GPU support.
func Count() (int, error) {
	return 0, fmt.Errorf("%w: this program was built without GPU support; build it with -tags gpu", ErrUnavailable)
}
