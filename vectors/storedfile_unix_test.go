//go:build unix

package vectors

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"overcomplete/testonly"
)

// A Read that waits for the writer of a named pipe returns when it is cancelled.
func TestReadCancelOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	testonly.Must(t, syscall.Mkfifo(path, 0o666))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := Read(ctx, []string{path}, ReadOptions{})
		done <- err
	}()
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
	// Release the abandoned open. O_RDWR doesn't block, even without such an open.
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	testonly.Must(t, err)
	w.Close()
}
