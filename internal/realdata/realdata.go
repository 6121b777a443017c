// Package realdata finds the published vectors that some tests measure against.
// They are not part of the project.
package realdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file in the folder that OVERCOMPLETE_DATA names, or
// for packages one folder below the project's root in shared/data beside the
// project. Without the file the test is skipped, but fails if the variable is
// set.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, required := os.LookupEnv("OVERCOMPLETE_DATA")
	if !required {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if required {
			t.Fatalf("OVERCOMPLETE_DATA: %v", err)
		}
		t.Skipf("needs the data set %s: set OVERCOMPLETE_DATA to the folder that holds it", name)
	}
	return path
}
