package cli

import (
	"context"
	"io"
	"testing"

	"overcomplete/testonly/clitest"
)

// A blocked writer never returns.
type blockedWriter struct{ entered chan struct{} }

func (w blockedWriter) Write([]byte) (int, error) {
	close(w.entered)
	select {}
}

// An interrupted command ends even if nobody reads its standard error.
func TestInterruptedWithoutReaders(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	before := dir.Tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	stderr := blockedWriter{make(chan struct{})}
	go func() {
		<-stderr.entered
		cancel()
	}()
	if code := run(ctx, []string{"paper", "train", dir.Path("in.txt"), "-o", dir.Path("model"), "--epochs", "100000"}, io.Discard, stderr); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	dir.Unchanged(t, before)
}
