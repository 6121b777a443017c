package main

import (
	"overcomplete/internal/memory"
	"overcomplete/internal/simd"
)

// limits runs loops that do nothing but what no training can avoid, with the
// instructions that training uses. Methods may run on several goroutines at once.
type limits struct {
	kernels *simd.Kernels
	memory  []float32 // as much as S and Q take
}

// newLimits returns [simd.ErrLevel], wrapped, if the environment asks for
// instructions that there are not.
func newLimits(words, atoms int) (*limits, error) {
	k, _, err := simd.Choose()
	if err != nil {
		return nil, err
	}
	return &limits{k, memory.Zeros[float32](2 * words * atoms)}, nil
}

// read reads the i-th of n parts of the memory, for i < n, and returns how many
// bytes that was.
func (l *limits) read(i, n int) (bytes float64) {
	part := l.part(i, n)
	l.kernels.Sum(part)
	return 4 * float64(len(part))
}

// update reads the i-th of n parts of the memory and writes it back, as a code pass
// does S and Q, and returns how many bytes passed both ways.
func (l *limits) update(i, n int) (bytes float64) {
	part := l.part(i, n)
	l.kernels.Scale(part, part, 1)
	return 8 * float64(len(part))
}

func (l *limits) part(i, n int) []float32 {
	return l.memory[len(l.memory)*i/n : len(l.memory)*(i+1)/n]
}

// codePassFlops returns the flops that a code pass cannot do without: 2KL a word
// for RDᵀ, and 2L for each nonzero that the codes had before it, of X − AD, and have
// after it, of aD. Dual averaging is not counted.
func codePassFlops(words, dim, atoms int, before, after int64) float64 {
	return 2 * float64(dim) * (float64(words)*float64(atoms) + float64(before) + float64(after))
}

// dictionaryPassFlops returns the flops of a dictionary pass's products with codes
// of so many nonzeros: 9L each, 2 for AD, AᵀR and AP, 3 for (A∘A)ᵀ(R∘R). What each step
// does to all of D is not counted.
func dictionaryPassFlops(dim int, nonzeros int64) float64 {
	return 9 * float64(dim) * float64(nonzeros)
}
