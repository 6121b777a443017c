package testonly

import (
	"io"
	"os"
	"testing"
)

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Opened returns c, which is closed at the end of the test. It ends the test if err is not nil.
func Opened[C io.Closer](t testing.TB, c C, err error) C {
	t.Helper()
	Must(t, err)
	t.Cleanup(func() { Must(t, c.Close()) })
	return c
}

// ReadFile returns the content of a file. It ends the test if that can't be read.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	Must(t, err)
	return content
}
