// Package realdata finds the published vectors that some tests measure against.
// They are not part of the project.
package realdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file in the folder that OVERCOMPLETE_DATA names.
// Where the variable is not set the test is skipped; where it is, a missing file
// is a failure.
func Path(t testing.TB, name string) string {
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
