package vectors

import (
	"os"
	"path/filepath"
	"testing"

	"overcomplete/testonly"
)

// A file without read permission is refused. Root can read all files except some of the kernel.
func TestReadFilesWithoutPermission(t *testing.T) {
	dir := folder(t, map[string]string{"a": "a 1 2\n"})
	testonly.Must(t, os.Symlink("/proc/sys/vm/compact_memory", filepath.Join(dir, "b")))
	checkError(t, dir, ReadOptions{}, "FILE/b: permission denied")
}
