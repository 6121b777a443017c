//go:build unix

package input

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"overcomplete/testonly"
)

func TestOpenRefusesAllButFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	testonly.Must(t, syscall.Mkfifo(pipe, 0o666))
	for path, want := range map[string]string{
		pipe: "is not a regular file", os.DevNull: "is not a regular file", "/dev/zero": "is not a regular file",
		dir: "is a directory", filepath.Join(dir, "none"): "no such file or directory",
	} {
		if f, err := Open(path); err == nil || !strings.HasSuffix(err.Error(), " "+path+": "+want) {
			t.Errorf("%s: opened %v, error %v, want %q", path, f, err, want)
		}
	}
}

// A File doesn't contain bytes that were appended after it was opened.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	testonly.Must(t, os.WriteFile(path, []byte("one\n"), 0o666))
	f, err := Open(path)
	testonly.Must(t, err)
	defer f.Close()
	testonly.Must(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o666))
	if text, err := io.ReadAll(f); err != nil || string(text) != "one\n" || f.Size() != 4 {
		t.Errorf("%q of %d bytes, %v", text, f.Size(), err)
	}
	for limit, want := range map[int]string{8: "", 7: "too large (want at most 7 bytes)"} {
		text, err := ReadRegular(path, limit)
		if want == "" && (err != nil || string(text) != "one\ntwo\n") || want != "" && (err == nil || err.Error() != "read "+path+": "+want) {
			t.Errorf("at most %d bytes: %q, %v", limit, text, err)
		}
	}
}

// Read reads a pipe to its end, and stops at the limit of an endless device.
func TestRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	testonly.Must(t, syscall.Mkfifo(pipe, 0o666))
	long := strings.Repeat("text\n", 50_000)
	go os.WriteFile(pipe, []byte(long), 0o666)
	if text, err := Read(pipe, 1<<20); err != nil || string(text) != long {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	zero, err := os.Open("/dev/zero")
	testonly.Must(t, err)
	defer zero.Close()
	_, err = ReadAll(zero, 1<<20)
	testonly.ErrorSays(t, "an endless file", err, "want at most 1048576 bytes")
}

func TestWait(t *testing.T) {
	failed := errors.New("failed")
	if n, err := Wait(t.Context(), func() (int, error) { return 3, failed }); n != 3 || err != failed {
		t.Errorf("%d, %v", n, err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	testonly.Must(t, syscall.Mkfifo(pipe, 0o666))
	ctx, cancel := context.WithCancel(t.Context())
	begun, done := make(chan bool), make(chan error)
	go func() {
		_, err := Wait(ctx, func() ([]byte, error) {
			begun <- true
			return Read(pipe, 1<<20)
		})
		done <- err
	}()
	<-begun
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	os.WriteFile(pipe, nil, 0o666) // end the abandoned read
	if _, err := Wait(ctx, func() (int, error) { panic("called") }); err != context.Canceled {
		t.Errorf("done context: error %v, want %v", err, context.Canceled)
	}
}
