// Package testonly finds the published vectors and the Python that some tests need, which are not part of the project,
// and compares numbers that a test computes in two ways:
//
//	path := testonly.Data(t, "vectors/glove.6B.50d.9163.txt.gz") // or the test is skipped
//	testonly.Near(t, "codes", got, want, 1e-5)
package testonly

import (
	"os"
	"path/filepath"
	"testing"
)

// Data returns the path of a file in the folder of the environment variable OVERCOMPLETE_DATA. If the variable is
// not set, the test is skipped. If it is set and the file doesn't exist, the test fails.
func Data(t testing.TB, name string) string {
	t.Helper()
	dir, ok := os.LookupEnv("OVERCOMPLETE_DATA")
	if !ok {
		t.Skipf("needs the data set %s: set OVERCOMPLETE_DATA to the folder that holds it", name)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("OVERCOMPLETE_DATA: %v", err)
	}
	return path
}
