package testonly

import (
	"os/exec"
	"syscall"
	"time"
)

// Run runs a command as [exec.Cmd.Run] does. It ends a program that hangs, so that its test fails instead of the whole
// package. The first signal makes programs in Go print their goroutines.
func Run(cmd *exec.Cmd) error {
	cmd.WaitDelay = 10 * time.Second // for pipes that the program's children hold
	if err := cmd.Start(); err != nil {
		return err
	}
	const limit = 5 * time.Minute
	defer time.AfterFunc(limit, func() { cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
	defer time.AfterFunc(limit+10*time.Second, func() { cmd.Process.Kill() }).Stop()
	return cmd.Wait()
}
