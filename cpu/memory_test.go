package cpu

import (
	"errors"
	"testing"

	"overcomplete/internal/memory"
	"overcomplete/train"
)

func TestMemory(t *testing.T) {
	total, ok := memory.Total()
	if !ok {
		t.Skip("how much memory this machine has is not known")
	}
	spec := small
	spec.Atoms = 10 * spec.Dim
	fits := func(bytes float64, overcommit bool) bool {
		words := int(bytes / Memory(spec, 1_000_000_000, Options{}) * 1e9) // so many that what comes with every training is little
		err := checkMemory(spec, words, Options{Overcommit: overcommit})
		if err != nil && !errors.Is(err, train.ErrMemory) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, tt := range []struct {
		bytes      float64
		overcommit bool
		want       bool
	}{
		{0.9 * float64(total), false, true},
		{1.1 * float64(total), false, false},
		{1.1 * float64(total), true, true},
		{1.1 * addressable, true, false},
	} {
		if got := fits(tt.bytes, tt.overcommit); got != tt.want {
			t.Errorf("%.1f GB of %.1f, overcommit %v: fits %v", tt.bytes/1e9, float64(total)/1e9, tt.overcommit, got)
		}
	}
	// A training of 100,000 × 300 → 3000 was seen to take 3.74 GB.
	spec.Atoms, spec.Dim = 3000, 300
	single, half := Memory(spec, 100_000, Options{}), Memory(spec, 100_000, Options{Float16: true})
	if single < 3.5e9 || single > 4.5e9 {
		t.Errorf("100,000 words take %.2f GB", single/1e9)
	}
	// S and Q are 4 bytes a coordinate less.
	if single-half != 4*100_000*3000 {
		t.Errorf("%.2f GB with float16", half/1e9)
	}
}
