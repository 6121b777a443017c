package memory

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	total, ok := Total()
	if !ok {
		t.Skip("how much memory this machine has is not known")
	}
	if err := Check(total / 2); err != nil {
		t.Errorf("half of the memory: %v", err)
	}
	most := total - total/8 // the rest is reserved
	for _, bytes := range []uint64{most + 1, total + 1, math.MaxUint64} {
		if err := Check(bytes); !errors.Is(err, ErrTooLarge) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d of %d bytes: %v", bytes, total, err)
		}
	}
	held := make([]byte, 64<<20)
	if err := Check(most - 32<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("all but the reserve and 32 MiB, with 64 MiB in use: %v", err)
	}
	runtime.KeepAlive(held)
	if err := Check(most - 32<<20); err != nil {
		t.Errorf("all but the reserve and 32 MiB, with 64 MiB of garbage: %v", err)
	}
	Recycle(make([]float32, 16<<20))
	if err := Check(most - 32<<20); err != nil {
		t.Errorf("all but the reserve and 32 MiB, with 64 MiB to recycle: %v", err)
	}
}
