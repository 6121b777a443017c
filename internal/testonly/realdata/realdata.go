// Package realdata finds the published vectors, the evaluation data and the Python that some tests need. They are
// not part of the project.
//
//	path := realdata.Path(t, "vectors/glove.6B.50d.9163.txt.gz") // or the test is skipped
package realdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file in the folder of the environment variable OVERCOMPLETE_DATA. If the variable is
// not set, the test is skipped. If it is set and the file doesn't exist, the test fails.
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
