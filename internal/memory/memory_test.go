package memory

import (
	"runtime"
	"testing"
)

func TestTotal(t *testing.T) {
	bytes, ok := Total()
	known := runtime.GOOS == "linux" || runtime.GOOS == "darwin"
	// This test takes more than 1 MiB, and no machine has an exabyte.
	if ok != known || known && (bytes < 1<<20 || bytes > 1<<60) {
		t.Errorf("%d bytes, known: %v", bytes, ok)
	}
}
