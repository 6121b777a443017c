package cpu

import "overcomplete/cpu/simd"

// Limits runs loops that do nothing but what no training can avoid, with the
// instructions that training uses: benchmarks measure it against them. Methods may
// run on several goroutines at once.
type Limits struct {
	kernels *simd.Kernels
	memory  []float32
}

// NewLimits prepares as much memory as S and Q of words×atoms take, kept as they
// are kept. It returns [ErrLevel], wrapped, as [New] does.
func NewLimits(words, atoms int) (*Limits, error) {
	k, _, err := simd.Choose()
	if err != nil {
		return nil, err
	}
	l := &Limits{k, make([]float32, 2*words*atoms)}
	hugePages(l.memory)
	return l, nil
}

// FMA multiplies and adds in registers alone, n times in each, and returns how
// many flops that was.
func (l *Limits) FMA(n int) (flops float64) {
	l.kernels.Peak(n)
	return 2 * float64(n) * float64(l.kernels.Rows*l.kernels.Columns)
}

// Read reads the i-th of n parts of the memory, for i < n, and returns how many
// bytes that was.
func (l *Limits) Read(i, n int) (bytes float64) {
	part := l.part(i, n)
	l.kernels.Sum(part)
	return 4 * float64(len(part))
}

// Update reads the i-th of n parts of the memory and writes it back, as a code pass
// does S and Q, and returns how many bytes passed both ways.
func (l *Limits) Update(i, n int) (bytes float64) {
	part := l.part(i, n)
	l.kernels.Scale(part, part, 1)
	return 8 * float64(len(part))
}

func (l *Limits) part(i, n int) []float32 {
	return l.memory[len(l.memory)*i/n : len(l.memory)*(i+1)/n]
}

// CodePassFlops returns the flops that a code pass cannot do without: 2KL a word
// for RDᵀ, and 2L for each nonzero that the codes had before it, of X − AD, and have
// after it, of aD. Dual averaging is not counted.
func CodePassFlops(words, dim, atoms int, before, after int64) float64 {
	return 2 * float64(dim) * (float64(words)*float64(atoms) + float64(before) + float64(after))
}

// DictionaryPassFlops returns the flops of a dictionary pass's products with codes
// of so many nonzeros: 9L each, 2 for AD, AᵀR and AP, 3 for (A∘A)ᵀ(R∘R). What each step
// does to all of D is not counted.
func DictionaryPassFlops(dim int, nonzeros int64) float64 {
	return 9 * float64(dim) * float64(nonzeros)
}
