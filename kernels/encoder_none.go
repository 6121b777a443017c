//go:build !gpu

package kernels

import "overcomplete/encode"

// Encoder encodes on a GPU. It implements [encode.Encoder].
type Encoder struct{ encode.Encoder }

// NewEncoder fails: this build has no GPU support.
func NewEncoder([]float32, int, []float32, encode.Options, int, Precision) (*Encoder, error) {
	_, err := Count()
	return nil, err
}

// Device returns the GPU.
func (e *Encoder) Device() Device { return Device{} }

// Close releases the GPU.
func (e *Encoder) Close() error { return nil }
