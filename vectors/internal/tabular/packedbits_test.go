package tabular

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCheckBits(t *testing.T) {
	const rows, dim = 20, 96 // bytes
	rng := rand.New(rand.NewPCG(1, 2))
	mean := make([]float64, 8*dim) // mean of each dimension: in most embeddings, some dimensions have the same sign in most rows
	for k := range mean {
		mean[k] = 0.5 * rng.NormFloat64()
	}
	var bits, signed, quantised, bytes, pixels []float32
	for range rows {
		for k := range dim {
			x := 0
			for i, m := range mean[8*k:][:8] {
				if rng.NormFloat64()+m > 0 {
					x |= 1 << i
				}
			}
			bits, signed = append(bits, float32(x)), append(signed, float32(x-128))
			q := max(-128, min(127, int(127*(rng.NormFloat64()+mean[k])/3.3)))
			quantised, bytes = append(quantised, float32(q)), append(bytes, float32(q+128))
			pixels = append(pixels, float32(max(0, rng.IntN(1024)-768)))
		}
	}
	for _, tt := range []struct {
		name    string
		numbers []float32
		packed  bool
	}{{"bits", bits, true}, {"bits − 128", signed, true}, {"int8", quantised, false}, {"uint8", bytes, false}, {"pixels", pixels, false}, {"few", bits[:100], false},
		{"more than 8 bits", append(slices.Clone(bits), 256), false}, {"fewer than −128", append(slices.Clone(signed), -129), false}} {
		if err := CheckBits(tt.numbers); (err != nil) != tt.packed {
			t.Errorf("%s: error %v, want one: %t", tt.name, err, tt.packed)
		}
	}
}
