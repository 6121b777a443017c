//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// inGroup starts a process in a group of its own and ends it with the processes that it started.
func inGroup(process *exec.Cmd) {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
}
