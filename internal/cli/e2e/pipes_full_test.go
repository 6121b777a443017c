//go:build full && linux && amd64

package e2e

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"overcomplete/internal/testonly/clitest"
)

// No command waits for ever where a pipe, to which nobody writes, is in the place of a file
// that it reads: it refuses the pipe, or ends with the first signal. Which files a command
// reads is seen when it is traced.
func TestPipesInPlaceOfFiles(t *testing.T) {
	t.Parallel()
	whole := faultDir(t)
	for _, tt := range faultCases {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			dir := whole.Copy(t)
			before := dir.Tree(t)
			f := &faults{t: t, faultCase: tt, dir: dir}
			opened := map[string]bool{}
			f.run(func(c sysCall) syscall.Errno {
				if _, there := before[c.path]; there && c.class == "open" {
					opened[c.path] = true
				}
				return 0
			})
			for _, name := range slices.Sorted(maps.Keys(opened)) {
				dir.Restore(t, before)
				if err := os.Remove(dir.Path(name)); err != nil {
					t.Fatal(err)
				}
				if err := syscall.Mkfifo(dir.Path(name), 0o666); err != nil {
					t.Fatal(err)
				}
				cmd := dir.Command(strings.Fields(tt.args)...)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				signalAtPipe(t, cmd, dir.Path(name), syscall.SIGTERM)
				code, status := cmd.ProcessState.ExitCode(), cmd.ProcessState.Sys().(syscall.WaitStatus)
				// The signal may come when the program has refused the pipe, and is about to end.
				refused := strings.Contains(stderr.String(), "overcomplete: ") && (code == clitest.Usage || status.Signaled() && status.Signal() == syscall.SIGTERM)
				if !refused && code != clitest.Interrupted {
					t.Errorf("%s is a pipe: %v, %s", name, cmd.ProcessState, &stderr)
				}
				if err := os.Remove(dir.Path(name)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
