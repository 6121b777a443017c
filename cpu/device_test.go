package cpu

import (
	"errors"
	"testing"

	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
	"overcomplete/model"
)

func TestMemory(t *testing.T) {
	limit, ok := memory.Limit()
	if !ok {
		t.Skip("how much memory this machine has is not known")
	}
	h := model.Paper{Common: model.Common{Atoms: 20}}
	fits := func(bytes float64, overcommit bool) bool {
		rows := int(bytes / (Device{}).Memory(1_000_000_000, 2, h) * 1e9) // the constant part is negligible
		err := Device{Overcommit: overcommit}.checkMemory(rows, 2, h)
		if err != nil && !errors.Is(err, backend.ErrMemory) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, tt := range []struct {
		bytes      float64
		overcommit bool
		want       bool
	}{
		{0.9 * float64(limit), false, true},
		{1.1 * float64(limit), false, false},
		{1.1 * float64(limit), true, true},
		{1.1 * backend.Addressable, true, false},
	} {
		if got := fits(tt.bytes, tt.overcommit); got != tt.want {
			t.Errorf("%.1f GB of %.1f, overcommit %v: fits %v", tt.bytes/1e9, float64(limit)/1e9, tt.overcommit, got)
		}
	}
	// Measured: a training of 100,000 × 300 → 3000 uses 3.74 GB.
	h.Atoms = 3000
	if bytes := (Device{}).Memory(100_000, 300, h); bytes < 3.5e9 || bytes > 4.5e9 {
		t.Errorf("100,000 words take %.2f GB", bytes/1e9)
	}
}

// searchRowBytes is the size per atom of a row that lists all atoms, within 1 % for padding.
func TestSearchRowBytes(t *testing.T) {
	const atoms = 10_000
	row := searchRow{members: make([]byte, (atoms+63)/64*8)}
	row.reserve(atoms)
	got := float64(4*(cap(row.index)+cap(row.z)+cap(row.b)+cap(row.share)+cap(row.dots)) + cap(row.members))
	if want := searchRowBytes * float64(atoms); got > 1.01*want || got < 0.99*want {
		t.Errorf("%.0f bytes, want about %.0f", got, want)
	}
}
