//go:build unix

package judge

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Answers go to a file: what else there is is refused at once, without an end or not.
func TestAnswersSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, holes := filepath.Join(dir, "pipe"), filepath.Join(dir, "holes")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(holes, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(holes, 1<<40); err != nil {
		t.Skip(err) // this file system has no such files
	}
	for path, want := range map[string]string{
		"/dev/zero": "is not a regular file", "/dev/null": "is not a regular file", pipe: "is not a regular file",
		dir: "is a directory", holes: "has more than 67108864 bytes",
	} {
		if _, _, err := OpenAnswers(path, sampleKey(3).Test()); err == nil || !strings.Contains(err.Error(), path+": "+want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if _, err := ReadTest("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero: more than 67108864 bytes") {
		t.Errorf("error %v", err)
	}
}
