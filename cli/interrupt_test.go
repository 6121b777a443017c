package cli

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"overcomplete/testonly/clitest"
)

// A computation that would take years ends, too.
func TestInterruptedSteps(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o old --epochs 1")
	before := dir.Tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel) // at whatever step it is
	var stderr bytes.Buffer
	if code := run(ctx, []string{"encode", dir.Path("old"), dir.Path("in.txt"), "-o", dir.Path("new"), "--encode-steps", "2147483647", "--quiet"}, io.Discard, &stderr); code != exitInterrupted {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
	dir.Unchanged(t, before)
}

// A blocked writer never returns.
type blockedWriter struct{ entered chan struct{} }

func (w blockedWriter) Write([]byte) (int, error) {
	close(w.entered)
	select {}
}

// A command ends even if nobody reads its standard error, which has to be told that.
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
