//go:build !gpu

package kernels

import "fmt"

// GPUs fails: this build has no GPU support.
func GPUs() ([]GPU, error) {
	_, err := Count()
	return nil, err
}

// Find fails: this build has no GPU support.
func Find(int) (GPU, error) {
	_, err := Count()
	return GPU{}, err
}

// Count fails: this build has no GPU support.
func Count() (int, error) {
	return 0, fmt.Errorf("%w: this program was built without GPU support; build it with -tags gpu", ErrUnavailable)
}
