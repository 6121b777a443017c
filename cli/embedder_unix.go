//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// inGroup makes a process start in a group of its own. Cancelling the process ends the whole group.
func inGroup(process *exec.Cmd) {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
}
