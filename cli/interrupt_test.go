package cli

import (
	"context"
	"io"
	"testing"

	"overcomplete/testonly/clitest"
)

// An interrupted command ends even if nobody reads its standard error.
func TestInterruptedWithoutReaders(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	before := dir.Tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	stderr := writerFunc(func([]byte) (int, error) { // never returns
		cancel()
		select {}
	})
	if code := run(ctx, []string{"paper", "train", dir.Path("in.txt"), "-o", dir.Path("model"), "--epochs", "100000"}, io.Discard, stderr); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	dir.Unchanged(t, before)
}
