//go:build !gpu

package kernels

import "overcomplete/encode"

// Encoder encodes on a GPU. It implements [encode.Encoder]. This build, without -tags gpu,
// has no support for GPUs, and [NewEncoder] returns none.
type Encoder struct{ encode.Encoder }

// NewEncoder prepares encoding with the dictionary d, K×L row-major, whose atoms have
// length dim, and the mean μ of the words, nil for none. In this build it returns an error
// that wraps [ErrUnavailable].
func NewEncoder(d []float32, dim int, mean []float32, o encode.Options, device int, p Precision) (*Encoder, error) {
	_, err := Count()
	return nil, err
}

// Device returns the GPU that encodes.
func (e *Encoder) Device() Device { return Device{} }

// Close releases the GPU.
func (e *Encoder) Close() error { return nil }
