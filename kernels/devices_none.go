//go:build !gpu

package kernels

import "fmt"

// GPUs returns all GPUs of the machine. In this build, without -tags gpu, it returns an
// error that wraps [ErrUnavailable].
func GPUs() ([]GPU, error) {
	_, err := Count()
	return nil, err
}

// Find returns the GPU with an index. In this build, without -tags gpu, it returns an error
// that wraps [ErrUnavailable].
func Find(index int) (GPU, error) {
	_, err := Count()
	return GPU{}, err
}

// Count returns how many GPUs the machine has. In this build, without -tags gpu, it returns
// an error that wraps [ErrUnavailable].
func Count() (int, error) {
	return 0, fmt.Errorf("%w: this program was built without GPU support; build it with -tags gpu", ErrUnavailable)
}
