//go:build gpu && full && linux

package emulator

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// TestDriver runs each check of testdata/selftest.cpp, which has its own kernels, in a separate process.
func TestDriver(t *testing.T) {
	program := filepath.Join(t.TempDir(), "selftest")
	testonly.Must(t, compile(program, "testdata/selftest.cpp"))
	names, err := exec.Command(program).Output()
	testonly.Must(t, err)
	checks := strings.Fields(string(names))
	if len(checks) == 0 {
		t.Fatal("the self-test has no checks")
	}
	for _, name := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if output, err := exec.Command(program, name).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}
