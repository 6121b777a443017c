package vectors

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that nobody may read is refused. Root may read any, except for some of the kernel's.
func TestReadFilesWithoutPermission(t *testing.T) {
	dir := folder(t, map[string]string{"a": "a 1 2\n"})
	if err := os.Symlink("/proc/sys/vm/compact_memory", filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	checkError(t, dir, ReadOptions{}, "FILE/b: permission denied")
}
