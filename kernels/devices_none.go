//go:build !gpu

package kernels

import "fmt"

// Devices fails: this build has no GPU support.
func Devices() ([]Device, error) {
	_, err := Count()
	return nil, err
}

// Find fails: this build has no GPU support.
func Find(int) (Device, error) {
	_, err := Count()
	return Device{}, err
}

// Count fails: this build has no GPU support.
func Count() (int, error) {
	return 0, fmt.Errorf("%w: this program was built without GPU support; build it with -tags gpu", ErrUnavailable)
}
