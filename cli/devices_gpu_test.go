//go:build gpu && linux

package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"overcomplete/lab/selfcheck"
	"overcomplete/testonly"
	"overcomplete/testonly/emulator"
)

// devices --check passes on the emulated driver, with the tag full in each precision.
func TestCheckGPU(t *testing.T) {
	const child = "CHECK_GPU"
	if os.Getenv(child) == "" { // in its own process, because a process loads only one driver
		library, err := emulator.Build()
		testonly.Must(t, err)
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestCheckGPU$")
		cmd.Env = append(os.Environ(), "OVERCOMPLETE_LIBCUDA="+library, child+"=1")
		if output, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(output), "Check of GPU 0") {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	size := selfcheck.Size{Rows: 80, Dim: 20, Atoms: 96}
	precisions := []string{"tf32"}
	if testonly.Full {
		precisions = []string{"tf32", "fp16", "fp32"}
	}
	for _, precision := range precisions {
		c, err := runCheck(t.Context(), &deviceFlags{device: "auto", precision: precision}, size, t.Output())
		testonly.Must(t, err)
		var b strings.Builder
		c.print(&b)
		t.Log(b.String())
		if c.Failed != "" || len(c.Steps) != 3 {
			t.Errorf("%s: %s: %d steps", precision, c.Failed, len(c.Steps))
		}
	}
}
