package kernels

// Options of a training.
type Options struct {
	Device    int             // index of the GPU, as [Devices] counts
	Precision Precision       // of the products; "" means TF32
	Batch     int             // most words of a dictionary step
	Seed      uint64          // of the initial codes and dictionary
	Progress  func(words int) // told of words that a pass is done with; may be nil
}

// Precision is how products of matrices are computed. All else is float32, and
// sums over rows are float64.
type Precision string

const (
	TF32 Precision = "tf32" // factors with 11 bits, as tensor cores take them; sums in float32
	FP32 Precision = "fp32" // factors in two TF32 parts each: three products for one
)
