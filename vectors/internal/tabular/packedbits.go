package tabular

import (
	"errors"
	"slices"
)

// CheckBits returns an error if the 8-bit integers in numbers seem to be bits of binary embeddings, packed by
// numpy.packbits. Packed bits are spread evenly: each quarter of the 8-bit range has about 25 % of them. In quantised
// embeddings, the outer two quarters together have at most 10 % of the numbers, as measured with five sets of vectors.
func CheckBits(numbers []float32) error {
	const (
		minimum   = 256 // count of numbers that suffices to decide
		low, high = 0.15, 0.35
	)
	if len(numbers) < minimum {
		return nil
	}
	lowest := float32(0)
	if slices.ContainsFunc(numbers, func(x float32) bool { return x < 0 }) {
		lowest = -128
	}
	var quarters [4]int
	for _, x := range numbers {
		if x < lowest || x > lowest+255 { // damaged
			return nil
		}
		quarters[int(x-lowest)/64]++
	}
	for _, n := range quarters {
		if share := float64(n) / float64(len(numbers)); share < low || share > high {
			return nil
		}
	}
	return errors.New("seems to have packed bits of binary embeddings; unpack them first with numpy.unpackbits, after adding 128 if they are int8")
}
